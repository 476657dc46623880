//! A scheduler with the plugin `NodeNumber`.

use std::process::ExitCode;

use node_number::NodeNumber;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<NodeNumber>())
}
