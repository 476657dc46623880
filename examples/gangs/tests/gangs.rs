//! What the plugin is allowed, and what its configuration says.

use gangs::Gangs;

fn printed(words: &[&str]) -> String {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let words: Vec<&str> = words.iter().map(|word| if *word == "CONFIG" { config } else { word }).collect();
    let outcome = supercargo::outcome_of(words, |plugins| plugins.add::<Gangs>());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout
}

#[test]
fn the_configuration_is_right() {
    assert_eq!(printed(&["gangs", "config", "check", "CONFIG"]), "");
}

#[test]
fn it_may_write_the_status_of_gangs_and_no_more_of_them() {
    let rights = printed(&["gangs", "rbac", "--config", "CONFIG", "--name", "gang-scheduler"]);
    assert!(rights.contains("gangs/status"), "{rights}");
    let of_gangs = rights.lines().filter(|line| line.contains("[gangs")).count();
    assert_eq!(of_gangs, 2, "one rule to read gangs, and one to write their status: {rights}");
}
