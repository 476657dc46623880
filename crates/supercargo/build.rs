//! Links the binary that is released with a script that puts what every pod goes through side by side (docs/adr/0014).

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script what it needs to know in the environment"
)]

use std::env;

/// Linkers that take no such script. The binary does the same without it, a little slower.
const WITHOUT_SCRIPTS: [&str; 3] = ["mold", "gold", "wild"];

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    let told = |name: &str| env::var(name).unwrap_or_default();
    let linker = told("RUSTC_LINKER") + &told("CARGO_ENCODED_RUSTFLAGS");
    let takes_scripts = !WITHOUT_SCRIPTS.iter().any(|name| linker.contains(name));
    // Of our profiles only `dist` optimises everything.
    if told("OPT_LEVEL") == "3" && told("CARGO_CFG_TARGET_OS") == "linux" && takes_scripts {
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={}/layout.ld", told("CARGO_MANIFEST_DIR"));
    }
}
