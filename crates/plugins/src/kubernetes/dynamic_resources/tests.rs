use serde_json::{Value, json};
use supercargo_testkit::{added, args_of, cluster, deleted, node, pod, problems_of, status_text, trial};

use super::*;

fn device_class(name: &str, resource: Option<&str>) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": { "name": name }, "spec": { "extendedResourceName": resource },
    })
}

#[test]
fn pods_without_devices_get_the_answers_they_get_upstream() {
    let mut cluster = cluster().with(node("n"));
    let plugin = trial::<DynamicResources>();
    assert_eq!(plugin.filter(&mut cluster, pod("p")), ["*: skip"]);
    assert_eq!(plugin.scores(&mut cluster, pod("p")), ["n: 0"]);
    assert_eq!(plugin.unprepared(&mut cluster, pod("p")), ["error: not found", "error: not found"]);
}

#[test]
fn pods_that_need_devices_are_held_back() {
    let mut cluster = cluster().with(node("n")).with(device_class("gpu", Some("example.com/gpu")));
    let plugin = trial::<DynamicResources>();
    let claims = || pod("p").with(json!({ "spec": { "resourceClaims": [{ "name": "c" }] } }));
    let held = format!("unresolvable: {REASON_CLAIMS}");
    assert_eq!(plugin.filter(&mut cluster, claims()), [format!("*: {held}")]);
    let claiming = cluster.pod(claims());
    let gate = plugin.profile.pre_enqueue[0].plugin.pre_enqueue(&cluster.context(), &claiming);
    assert_eq!(status_text(&gate), held);
    for resource in ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"] {
        let said = plugin.filter(&mut cluster, pod("p").request(resource, "1"));
        assert!(said[0].starts_with(&format!("*: unresolvable: pod requests {resource}, which")), "{said:?}");
    }
    for resource in ["example.com/other", "deviceclass.resource.kubernetes.io/other"] {
        assert_eq!(plugin.filter(&mut cluster, pod("p").request(resource, "1")), ["*: skip"]);
    }
}

#[test]
fn only_a_device_class_that_stands_aside_helps_for_now() {
    let class = || device_class("gpu", None);
    trial::<DynamicResources>().check_hints(
        &mut cluster(),
        pod("p"),
        [
            ("it goes", deleted(class()), supercargo_framework::Hint::Queue),
            ("it comes", added(class()), supercargo_framework::Hint::Skip),
        ],
    );
}

#[test]
fn arguments() {
    let completed = json!({ "filterTimeout": "10s", "bindingTimeout": "10m0s" });
    assert_eq!(args_of::<DynamicResources>(json!({})), completed);
    for (args, problems) in [
        (json!({ "filterTimeout": "0s", "bindingTimeout": "1s" }), vec![]),
        (
            json!({ "filterTimeout": "-1s" }),
            vec!["filterTimeout: Invalid value: \"-1s\": must be zero or positive"],
        ),
        (
            json!({ "bindingTimeout": "999ms" }),
            vec!["bindingTimeout: Invalid value: \"999ms\": must be at least 1 second"],
        ),
    ] {
        assert_eq!(problems_of::<DynamicResources>(args), problems);
    }
}
