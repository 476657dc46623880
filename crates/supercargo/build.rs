//! Links the binary that is released with a script that puts what every pod goes through side by side (docs/adr/0014).

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script what it needs to know in the environment"
)]

#[path = "src/linkers.rs"]
mod linkers;

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    println!("cargo::rerun-if-env-changed=SUPERCARGO_LAYOUT");
    let told = |name: &str| env::var(name).unwrap_or_default();
    // The binary does the same without the script, a little slower. Which linker a compiler uses is not always to be seen.
    let is_wanted = told("SUPERCARGO_LAYOUT") != "0"
        && linkers::takes_scripts(&told("RUSTC_LINKER"), &told("CARGO_ENCODED_RUSTFLAGS"));
    // Of our profiles only `dist` optimises everything.
    if told("OPT_LEVEL") == "3" && told("CARGO_CFG_TARGET_OS") == "linux" && is_wanted {
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={}/layout.ld", told("CARGO_MANIFEST_DIR"));
    }
}
