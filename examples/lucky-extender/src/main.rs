//! `lucky-extender extender` answers a kube-scheduler with the plugin `Lucky`.

use std::process::ExitCode;

use lucky_extender::Lucky;

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Lucky>())
}
