//! A scheduler with the plugin `Gangs`.

use std::process::ExitCode;

use gangs::Gangs;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Gangs>())
}
