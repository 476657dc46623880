//! Installed as `kubectl-supercargo`, the binary is a plugin of kubectl.

use std::path::Path;
use std::process::{Command, Output};

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("the binary runs")
}

#[test]
fn help_and_usage_show_what_was_typed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let plugin = folder.join("kubectl-supercargo");
    let _ = std::fs::remove_file(&plugin);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_supercargo"), &plugin).expect("a link can be made");
    for (program, name) in
        [(&*plugin, "kubectl supercargo"), (Path::new(env!("CARGO_BIN_EXE_supercargo")), "supercargo")]
    {
        for (arguments, usage) in [
            (&["--help"][..], format!("Usage: {name} <COMMAND>")),
            (&["explain", "--help"], format!("Usage: {name} explain [OPTIONS] [[NAMESPACE/][KIND/]NAME]")),
            (&["config", "check", "--help"], format!("Usage: {name} config check [OPTIONS]")),
            (&["explain", "--wrong"], format!("Usage: {name} explain ")),
        ] {
            let output = run(program, arguments);
            let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(&usage), "{usage:?} is missing in:\n{text}");
        }
    }
}
