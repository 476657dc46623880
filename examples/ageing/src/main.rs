//! A scheduler with the plugin `Ageing`.

use std::process::ExitCode;

use ageing::Ageing;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Ageing>())
}
