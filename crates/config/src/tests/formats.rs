//! How a configuration is written changes its problems' places and nothing else.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};

use super::support;
use crate::{Problem, build_profiles, load, read};

/// The same configurations are tried at every run.
const SEED: u64 = 20_261_117;

/// Values that fields may get, right and wrong.
fn value() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 10] =
        ["NodeAffinity", "NodeAfinity", "*", "", "Out", "default-scheduler", "15s", "-5s", "15", "http://a"];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..200).prop_map(Value::from),
        Just(json!(3_000_000_000_u64)),
        Just(json!(1.5)),
        prop::sample::select(&NAMES[..]).prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"name": "a.b/c", "ignoredByScheduler": true}])),
    ]
}

/// An object with some of these fields, each right or wrong, and now and then one that does not exist.
fn object(
    fields: &'static [&'static str],
    of: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Value> {
    let field = prop_oneof![9 => prop::sample::select(fields), 1 => Just("unknown")];
    prop::collection::vec((field, of), 0..4).prop_map(|entries| {
        Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

fn list(of: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(of, 0..3).prop_map(Value::from)
}

fn plugins() -> impl Strategy<Value = Value> {
    let plugin = prop_oneof![4 => object(&["name", "weight"], value()), 1 => value()];
    let set = prop_oneof![9 => object(&["enabled", "disabled"], list(plugin)), 1 => value()];
    object(&["score", "filter", "multiPoint", "queueSort", "bind", "preScore"], set)
}

fn profile() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 4] = ["NodeResourcesFit", "InterPodAffinity", "NodeName", "Nope"];
    let args =
        object(&["ignoredResources", "ignoredResourceGroups", "hardPodAffinityWeight", "kind"], value());
    let config =
        (prop::sample::select(&NAMES[..]), args).prop_map(|(name, args)| json!({"name": name, "args": args}));
    (plugins(), list(config), value(), any::<bool>()).prop_map(|(plugins, config, name, named)| {
        let mut profile = json!({"plugins": plugins, "pluginConfig": config});
        if named {
            profile["schedulerName"] = name;
        }
        profile
    })
}

fn extender() -> impl Strategy<Value = Value> {
    let tls = object(&["insecure", "caFile", "certFile", "keyData"], value());
    let fields: &[&str] = &[
        "urlPrefix",
        "filterVerb",
        "prioritizeVerb",
        "weight",
        "bindVerb",
        "httpTimeout",
        "managedResources",
    ];
    (object(fields, value()), tls).prop_map(|(mut extender, tls)| {
        extender["tlsConfig"] = tls;
        extender
    })
}

fn configuration() -> impl Strategy<Value = Value> {
    let election = object(&["leaderElect", "leaseDuration", "renewDeadline", "retryPeriod"], value());
    let scalars = object(
        &["parallelism", "percentageOfNodesToScore", "podMaxBackoffSeconds", "clientConnection"],
        value(),
    );
    (scalars, election, list(profile()), list(extender())).prop_map(
        |(scalars, election, profiles, extenders)| {
            let mut config = Map::new();
            config.insert("apiVersion".to_owned(), json!("kubescheduler.config.k8s.io/v1"));
            config.insert("kind".to_owned(), json!("KubeSchedulerConfiguration"));
            config.extend(
                scalars.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())),
            );
            config.insert("leaderElection".to_owned(), election);
            config.insert("profiles".to_owned(), profiles);
            config.insert("extenders".to_owned(), extenders);
            Value::Object(config)
        },
    )
}

/// The same configuration as JSON, as flow and as block YAML, and with the line ends of Windows.
fn formats(config: &Value) -> Vec<String> {
    let block = serde_saphyr::to_string(config).expect("values can be written");
    vec![
        config.to_string(),
        serde_json::to_string_pretty(config).expect("values can be written"),
        format!("--- {config}\n"),
        block.replace('\n', "\r\n"),
        format!("# A comment.\n---\n{block}"),
        block,
    ]
}

fn without_place(mut problem: Problem) -> Problem {
    problem.position = None;
    problem
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(SEED), ..ProptestConfig::with_cases(128) })]

    #[test]
    fn formats_change_places_only(config in configuration()) {
        let registry = support::registry();
        let mut expected: Option<Vec<Problem>> = None;
        for text in formats(&config) {
            let reading = read(&text);
            let problems = reading.check(&registry);
            for problem in problems.iter() {
                prop_assert!(!problem.path.is_empty(), "{problem}\nof:\n{text}");
                let position = problem.position;
                let lines = text.lines().count() as u64;
                prop_assert!(position.is_some_and(|at| (1..=lines).contains(&at.line)), "{problem} {position:?}\nof:\n{text}");
            }
            if problems.has_errors() {
                prop_assert!(reading.clone().into_usable(&registry).is_err());
            } else {
                let loaded = load(&text).expect("has no errors");
                let profiles = build_profiles(&loaded.kube, &registry);
                prop_assert!(profiles.is_ok(), "{:?}\nof:\n{text}", profiles.err());
            }
            // JSON keeps a float a float, and YAML does not.
            let found: Vec<Problem> = problems.into_iter().map(without_place).collect();
            match &expected {
                None => expected = Some(found),
                Some(expected) => prop_assert_eq!(&found, expected, "of:\n{}", text),
            }
        }
    }
}
