use serde_json::{Value, json};
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, args_of, check_points, cluster, node, pod, problems_of, trial,
};

use super::*;

fn profile(namespace: &str, name: &str, version: &str, calls: &[&str]) -> Value {
    let metadata = json!({ "namespace": namespace, "name": name });
    let refused = json!({ "action": "SCMP_ACT_ERRNO", "names": ["reboot"] });
    let allowed = json!({ "action": "SCMP_ACT_ALLOW", "names": calls });
    json!({
        "apiVersion": format!("security-profiles-operator.x-k8s.io/{version}"), "kind": "SeccompProfile",
        "metadata": metadata, "spec": { "defaultAction": "SCMP_ACT_ERRNO", "syscalls": [refused, allowed] },
    })
}

fn confined(pod: PodBuilder, path: &str) -> PodBuilder {
    let profile = json!({ "type": "Localhost", "localhostProfile": path });
    pod.with(json!({ "spec": { "securityContext": { "seccompProfile": profile } } }))
}

fn running(name: &str, path: &str, node: &str) -> PodBuilder {
    confined(pod(name), path).on(node).with(json!({ "status": { "phase": "Running" } }))
}

fn scene() -> TestCluster {
    let plugin = trial::<SySched>().profile.plugins()[0].clone();
    cluster()
        .reading_for(&plugin.reads)
        .with(node("n1"))
        .with(node("n2"))
        .with(node("n3"))
        .with(profile("default", "abd", "v1beta1", &["a", "b", "d"]))
        .with(profile("default", "abc", "v1beta1", &["a", "b", "c"]))
        .with(profile("", "xy", "v1", &["x", "y"]))
        .with(running("one", "operator/default/abc.json", "n1"))
        .with(running("two", "operator/xy.json", "n2"))
        .with(
            running("waiting", "operator/default/abd.json", "n3")
                .with(json!({ "status": { "phase": "Pending" } })),
        )
}

#[test]
fn it_is_what_it_declares() {
    check_points!(SySched);
    let path = |path: &str| {
        let profile = json!({ "type": "Localhost", "localhostProfile": path });
        json!({ "spec": { "securityContext": { "seccompProfile": profile } } })
    };
    ReadsCheck::of::<SySched>()
        .object(profile("default", "abd", "v1beta1", &["a", "b", "d"]))
        .object(profile("", "xy", "v1", &["x", "y"]))
        .pod_value(PodField::SeccompProfiles, path("operator/default/abd.json"))
        .pod_value(PodField::SeccompProfiles, path("operator/xy.json"))
        .check();
}

#[test]
fn nodes_whose_pods_may_do_the_same_are_better() {
    let scores = |pod| trial::<SySched>().scores(&mut scene(), pod);
    let expected = ["n1: 60", "n2: 0", "n3: 100"];
    assert_eq!(scores(confined(pod("web"), "operator/default/abd.json")), expected);
    assert_eq!(scores(confined(pod("web"), "localhost/operator/default/abd")), expected);
    let annotated = |key: &str| pod("web").annotation(key, "localhost/operator/default/abd.json");
    assert_eq!(scores(annotated("container.seccomp.security.alpha.kubernetes.io/main")), expected);
    assert_eq!(scores(pod("web")), ["n1: 100", "n2: 100", "n3: 100"], "nobody knows what it may do");
    assert_eq!(scores(confined(pod("web"), "operator/default/gone.json")), ["n1: 100", "n2: 100", "n3: 100"]);
}

#[test]
fn pods_without_a_profile_have_the_default_one() {
    let mut scene = scene().with(profile("default", "all-syscalls", "v1beta1", &["a", "b", "d"]));
    assert_eq!(trial::<SySched>().scores(&mut scene, pod("web")), ["n1: 60", "n2: 0", "n3: 100"]);
}

#[test]
fn arguments_have_defaults_and_no_others() {
    let args = args_of::<SySched>(json!({}));
    assert_eq!(args, json!({ "defaultProfileNamespace": "default", "defaultProfileName": "all-syscalls" }));
    assert_eq!(problems_of::<SySched>(json!({ "other": 1 })).len(), 1);
}

#[test]
fn profiles_of_init_containers_and_base_profiles_count_if_that_is_asked_for() {
    let based = |name: &str, base: &str, calls: &[&str]| {
        let mut profile = profile("default", name, "v1beta1", calls);
        profile["spec"]["baseProfileName"] = json!(base);
        profile
    };
    let localhost =
        |path: &str| json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": path } });
    let init = json!({ "spec": { "initContainers": [{ "name": "i", "securityContext": localhost("operator/default/ring.json") }] } });
    for (is_mended, by_init, by_base) in [
        (false, ["n1: 100", "n2: 100", "n3: 100"], ["n1: 34", "n2: 0", "n3: 100"]),
        (true, ["n1: 60", "n2: 0", "n3: 100"], ["n1: 60", "n2: 0", "n3: 100"]),
    ] {
        // Each of two profiles is based on the other.
        let mut scene = scene().with(based("ring", "back", &["a"])).with(based("back", "ring", &["b", "d"]));
        scene.fixes.all_seccomp_profiles = is_mended;
        assert_eq!(trial::<SySched>().scores(&mut scene, pod("web").with(init.clone())), by_init);
        let based = confined(pod("web"), "operator/default/ring.json");
        assert_eq!(trial::<SySched>().scores(&mut scene, based), by_base);
    }
}
