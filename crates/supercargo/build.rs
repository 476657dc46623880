//! Links the binary that is released with a script that puts what every pod goes through side by side (docs/adr/0014).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Of our profiles only `dist` optimises everything, and only linkers for Linux are known to take such a script.
    if is("OPT_LEVEL", "3") && is("CARGO_CFG_TARGET_OS", "linux") {
        let folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo says where the crate is");
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={folder}/layout.ld");
    }
}
