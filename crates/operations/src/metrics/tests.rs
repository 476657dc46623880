use std::collections::BTreeSet;
use std::time::Duration;

use super::text::{go_number, plain};
use super::{AttemptResult, Cached, ExtenderMetrics, Metrics, Queue, ShadowMetrics};

/// Uses every method once.
fn everything(metrics: &mut Metrics) {
    let second = Duration::from_secs(1);
    metrics.attempt("default-scheduler", AttemptResult::Scheduled, Duration::from_millis(3));
    metrics.attempt("default-scheduler", AttemptResult::Unschedulable, second);
    metrics.attempt("other", AttemptResult::Error, second);
    metrics.algorithm(second);
    metrics.event_handled("PodAdd", second);
    metrics.preemption_attempt();
    metrics.preemption(3);
    metrics.evicted(true, second);
    metrics.pending_pods(Queue::Gated, 4);
    metrics.inflight_events("PodPopped", 1);
    metrics.under_way("binding", 2);
    metrics.bound(1, second);
    metrics.bound(99, second);
    metrics.bound_after_flush();
    metrics.extension_point("Filter", "default-scheduler", "Success", second);
    metrics.plugin("Filter", "NodeName", "Success", second);
    metrics.plugin_evaluated("Filter", "NodeName", "default-scheduler", 1);
    metrics.queueing_hint("NodeAdd", "Queue", "NodeName", second);
    metrics.incoming(Queue::Active, "PodAdd", 1);
    metrics.permit_wait("Success", second);
    metrics.cache_size(Cached::Nodes, 5_000);
    metrics.unschedulable_pods("NodeResourcesFit", "default-scheduler", 1);
    metrics.volume_error("bind");
    metrics.request("10.0.0.1:443", "POST", "201", second);
    metrics.leading(true);
    metrics.effects("bind", true, 1);
    metrics.watch_restarted("Pod");
    metrics.object_unreadable("pods");
    metrics.config_reloaded(false);
    metrics.events_dropped(1);
}

/// Names, types and labels in alphabetical order, as kube-scheduler 1.36 has them.
const EXPECTED: &[(&str, &str, &str)] = &[
    ("leader_election_master_status", "gauge", "name"),
    ("rest_client_request_duration_seconds", "histogram", "host,verb"),
    ("rest_client_requests_total", "counter", "code,host,method"),
    ("scheduler_cache_size", "gauge", "type"),
    ("scheduler_event_handling_duration_seconds", "histogram", "event"),
    ("scheduler_framework_extension_point_duration_seconds", "histogram", "extension_point,profile,status"),
    ("scheduler_goroutines", "gauge", "operation"),
    ("scheduler_inflight_events", "gauge", "event"),
    ("scheduler_pending_pods", "gauge", "queue"),
    ("scheduler_permit_wait_duration_seconds", "histogram", "result"),
    ("scheduler_plugin_evaluation_total", "counter", "extension_point,plugin,profile"),
    ("scheduler_plugin_execution_duration_seconds", "histogram", "extension_point,plugin,status"),
    ("scheduler_pod_scheduled_after_flush_total", "counter", ""),
    ("scheduler_pod_scheduling_attempts", "histogram", ""),
    ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts"),
    ("scheduler_preemption_attempts_total", "counter", ""),
    ("scheduler_preemption_goroutines_duration_seconds", "histogram", "result"),
    ("scheduler_preemption_goroutines_execution_total", "counter", "result"),
    ("scheduler_preemption_victims", "histogram", ""),
    ("scheduler_queue_incoming_pods_total", "counter", "event,queue"),
    ("scheduler_queueing_hint_execution_duration_seconds", "histogram", "event,hint,plugin"),
    ("scheduler_schedule_attempts_total", "counter", "profile,result"),
    ("scheduler_scheduling_algorithm_duration_seconds", "histogram", ""),
    ("scheduler_scheduling_attempt_duration_seconds", "histogram", "profile,result"),
    ("scheduler_unschedulable_pods", "gauge", "plugin,profile"),
    ("scheduler_volume_scheduling_stage_error_total", "counter", "operation"),
];

#[test]
fn names_types_and_labels_are_upstreams() {
    let (mut metrics, exposition) = Metrics::new();
    everything(&mut metrics);
    let text = exposition.text();
    for (name, kind, labels) in EXPECTED {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        let sample = if *kind == "histogram" { format!("{name}_count") } else { (*name).to_owned() };
        let line = text
            .lines()
            .find(|line| line.strip_prefix(&sample).is_some_and(|rest| rest.starts_with(['{', ' '])));
        let line = line.unwrap_or_else(|| panic!("no sample of {name}"));
        let found: Vec<&str> = match line.split_once('{') {
            None => Vec::new(),
            Some((_, rest)) => rest.split("\",").map(|pair| pair.split('=').next().unwrap_or("")).collect(),
        };
        assert_eq!(found.join(","), *labels, "{line}");
    }
}

/// Every metric has a line in the reference, under its name, the end of it, or the beginning of several.
#[test]
fn every_metric_is_in_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let reference = std::fs::read_to_string(path).expect("the reference is there");
    let named: Vec<&str> = reference.split('`').skip(1).step_by(2).collect();
    let is_named = |metric: &str| {
        named.iter().any(|name| {
            let name = name.split('{').next().unwrap_or_default();
            let is_end = name.strip_prefix('…').is_some_and(|end| metric.ends_with(end));
            name == metric || is_end || name.strip_suffix('*').is_some_and(|begin| metric.starts_with(begin))
        })
    };
    let (mut metrics, exposition) = Metrics::new();
    everything(&mut metrics);
    let texts = [
        exposition.text(),
        ShadowMetrics::new().1.text(),
        ExtenderMetrics::new(&["filter"], &["answered"]).1.text(),
    ];
    let all = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("# TYPE "));
    let missing: Vec<&str> =
        all.filter_map(|rest| rest.split(' ').next()).filter(|metric| !is_named(metric)).collect();
    assert_eq!(missing, [""; 0], "say in docs/reference/metrics.md what they mean");
}

#[test]
fn samples_are_what_was_counted() {
    let (mut metrics, exposition) = Metrics::new();
    let mut clone = metrics.clone();
    everything(&mut metrics);
    clone.attempt("default-scheduler", AttemptResult::Scheduled, Duration::from_millis(3));
    let text = exposition.text();
    for line in [
        r#"scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2"#,
        r#"scheduler_schedule_attempts_total{profile="other",result="error"} 1"#,
        r#"scheduler_pending_pods{queue="active"} 0"#,
        r#"scheduler_pending_pods{queue="gated"} 4"#,
        r#"scheduler_cache_size{type="nodes"} 5000"#,
        r#"scheduler_preemption_victims_bucket{le="2"} 0"#,
        r#"scheduler_preemption_victims_bucket{le="4"} 1"#,
        r#"scheduler_preemption_victims_bucket{le="+Inf"} 1"#,
        r#"scheduler_preemption_victims_count 1"#,
        r#"scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1"#,
        r#"scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"} 1"#,
        r#"leader_election_master_status{name="kube-scheduler"} 1"#,
        r#"supercargo_events_dropped_total 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let bounds: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("scheduler_plugin_execution_duration_seconds_bucket{le=\""))
        .filter_map(|line| line.split('"').next())
        .collect();
    assert_eq!(bounds.len(), 21);
    // As kube-scheduler 1.36 prints them.
    assert_eq!(
        &bounds[..7],
        [
            "1e-05",
            "1.5000000000000002e-05",
            "2.2500000000000005e-05",
            "3.375000000000001e-05",
            "5.062500000000001e-05",
            "7.593750000000002e-05",
            "0.00011390625000000003"
        ]
    );
}

#[test]
fn the_process_is_described() {
    let (_, exposition) = Metrics::new();
    let text = exposition.text();
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing")).parse().expect("a number")
    };
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_open_fds") >= 3.0);
    let now = crate::clock::time_of_day().as_second() as f64;
    let age = now - value("process_start_time_seconds");
    assert!((-5.0..86_400.0).contains(&age), "started {age} s ago");
}

#[test]
fn no_metric_is_said_twice_and_none_ends_the_text() {
    let (mut metrics, exposition) = Metrics::new();
    everything(&mut metrics);
    let text = exposition.text();
    let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(types.len(), types.iter().collect::<BTreeSet<_>>().len());
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    assert!(text.ends_with('\n'));
}

#[test]
fn labels_from_outside_are_escaped_and_limited() {
    let (mut metrics, exposition) = Metrics::new();
    metrics.watch_restarted("a\"b\\c\nle=\"1.0\"");
    let text = exposition.text();
    let line = r#"supercargo_watch_restarts_total{kind="a\"b\\c\nle=\"1.0\""} 1"#;
    assert!(text.lines().any(|found| found == line), "{text}");
    for number in 0..3_000 {
        metrics.watch_restarted(&number.to_string());
    }
    let text = exposition.text();
    let series = text.lines().filter(|line| line.starts_with("supercargo_watch_restarts_total{")).count();
    assert_eq!(series, 2_001);
    assert!(text.contains("supercargo_watch_restarts_total{kind=\"other\"} 1001\n"));
}

#[test]
fn numbers_are_printed_as_in_go() {
    for (number, expected) in [
        (1.0, "1"),
        (0.001, "0.001"),
        (16.384, "16.384"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (5242.88, "5242.88"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (0.0, "0"),
    ] {
        assert_eq!(go_number(number), expected);
    }
    assert_eq!(
        plain("# HELP a b.\n# TYPE a counter\na_total 1\n# EOF\n"),
        "# HELP a_total b.\n# TYPE a_total counter\na_total 1\n"
    );
}

/// What the module's comment says is left out.
const LEFT_OUT: [&str; 3] =
    ["scheduler_batch_", "scheduler_get_node_hint_", "scheduler_store_schedule_results_"];

#[test]
fn a_real_kube_scheduler_serves_the_same() {
    let (mut metrics, exposition) = Metrics::new();
    everything(&mut metrics);
    let text = exposition.text();
    let mut compared = 0;
    for line in include_str!("upstream.txt").lines().filter(|line| !line.starts_with('#')) {
        let [name, kind, labels, bounds] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if LEFT_OUT.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} is not served, or no {kind}");
        let sample = if kind == "histogram" { format!("{name}_bucket") } else { name.to_owned() };
        let samples: Vec<Vec<(&str, &str)>> = text
            .lines()
            .filter_map(|line| line.strip_prefix(sample.as_str()).filter(|rest| rest.starts_with(['{', ' '])))
            .map(label_pairs)
            .collect();
        let found: BTreeSet<&str> =
            samples.iter().flatten().map(|(key, _)| *key).filter(|key| *key != "le").collect();
        let found: Vec<&str> = found.into_iter().collect();
        assert_eq!(if found.is_empty() { "-".to_owned() } else { found.join(",") }, labels, "{name}");
        let mut found: Vec<&str> = Vec::new();
        for (_, bound) in samples.iter().flatten().filter(|(key, _)| *key == "le") {
            if !found.contains(bound) {
                found.push(bound);
            }
        }
        assert_eq!(if found.is_empty() { "-".to_owned() } else { found.join(",") }, bounds, "{name}");
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} were compared");
}

/// The labels of a sample, whose values hold no quotes here.
fn label_pairs(rest: &str) -> Vec<(&str, &str)> {
    let Some((labels, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return Vec::new();
    };
    labels
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key, value.trim_matches('"')))
        .collect()
}
