//! A scheduler with the plugin `sample2`.

use std::process::ExitCode;

use sample2::Sample2;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Sample2>())
}
