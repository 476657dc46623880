//! A scheduler with the plugin `Allowance`.

use std::process::ExitCode;

use allowance::Allowance;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Allowance>())
}
