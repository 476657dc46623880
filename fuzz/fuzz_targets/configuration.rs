//! A text as a configuration: it is checked, printed and converted as the commands `config …` do it.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use supercargo_config::{Loaded, build_profiles, effective, load, minimal_json, minimal_yaml, read, to_yaml};
use supercargo_framework::Registry;

static REGISTRY: LazyLock<Registry> = LazyLock::new(supercargo_plugins::registry);

fuzz_target!(|text: &str| {
    let reading = read(text);
    let problems = reading.check(&REGISTRY);
    for problem in problems.iter() {
        assert!(!problem.in_file("f").is_empty());
    }
    let _ = reading.check_files(|_| false);
    let loaded = load(text);
    assert!(loaded.is_ok() || problems.has_errors(), "a file that cannot be read has a problem");
    let Ok(loaded) = loaded else { return };
    for printed in [minimal_yaml(&loaded), minimal_json(&loaded)] {
        let again = load(&printed).unwrap_or_else(|problems| panic!("{}\n{printed}", problems.in_file("printed")));
        assert_eq!(again.kube, loaded.kube, "{printed}");
    }
    if !problems.has_errors() {
        check_use(&loaded);
    }
});

/// What has no problem can be used, and its effective form says the same.
fn check_use(loaded: &Loaded) {
    build_profiles(&loaded.kube, &REGISTRY)
        .unwrap_or_else(|problems| panic!("has no problem, but: {}", problems.in_file("f")));
    let printed = to_yaml(&effective(&loaded.kube, &REGISTRY), &loaded.own);
    let again = load(&printed).unwrap_or_else(|problems| panic!("{}\n{printed}", problems.in_file("printed")));
    assert_eq!(again.own, loaded.own, "{printed}");
    assert_eq!(to_yaml(&effective(&again.kube, &REGISTRY), &again.own), printed);
}
