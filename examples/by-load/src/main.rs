//! A scheduler with ByLoad.

use std::process::ExitCode;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<by_load::ByLoad>())
}
