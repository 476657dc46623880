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
fn of_several_annotations_the_first_counts_whose_profile_there_is() {
    let annotated = |paths: &[&str]| {
        let keys =
            ["a", "b", "c"].map(|name| format!("container.seccomp.security.alpha.kubernetes.io/{name}"));
        paths.iter().zip(&keys).fold(pod("web"), |pod, (path, key)| pod.annotation(key, path))
    };
    let (gone, abd, xy) =
        ("operator/default/gone.json", "localhost/operator/default/abd.json", "operator/xy.json");
    let unknown = ["n1: 100", "n2: 100", "n3: 100"];
    for (paths, expected) in [
        ([gone, abd, xy], ["n1: 60", "n2: 0", "n3: 100"]),
        ([abd, xy, gone], ["n1: 60", "n2: 0", "n3: 100"]),
        ([xy, abd, gone], ["n1: 0", "n2: 100", "n3: 100"]),
        ([gone, gone, gone], unknown),
        // Who names no profile says nothing, and the search ends.
        (["none", abd, xy], unknown),
    ] {
        assert_eq!(trial::<SySched>().scores(&mut scene(), annotated(&paths)), expected, "{paths:?}");
    }
}

#[test]
fn calls_are_counted_once_however_many_profiles_and_pods_have_them() {
    let container = |path: &str| {
        let profile = json!({ "type": "Localhost", "localhostProfile": path });
        json!({ "securityContext": { "seccompProfile": profile } })
    };
    let several = |name: &str| {
        let paths = ["operator/default/abc.json", "operator/default/abd.json", "operator/xy.json"];
        pod(name).with(json!({ "spec": { "containers": paths.map(container) } }))
    };
    let on = |pod: PodBuilder, node: &str| pod.on(node).with(json!({ "status": { "phase": "Running" } }));
    let mut scene = scene();
    for name in ["three", "four"] {
        scene = scene.with(on(several(name), "n3"));
    }
    // On n1, {a, b, c}: none is foreign to {a, b, c, d, x, y}, of which its pod lacks three. On n2, {x, y}: its pod lacks four. On n3 nothing.
    assert_eq!(trial::<SySched>().scores(&mut scene, several("web")), ["n1: 25", "n2: 0", "n3: 100"]);
    // {a, b, d}: c, x and y are foreign on n3, and its pods lack nothing; on n1 it is c, and d is lacking; on n2 two and three.
    let web = confined(pod("web"), "operator/default/abd.json");
    assert_eq!(trial::<SySched>().scores(&mut scene, web), ["n1: 60", "n2: 0", "n3: 40"]);
}

#[test]
fn other_annotations_and_specs_do_not_tell_pods_apart() {
    let plugin = SySched::new(SySchedArgs::default());
    let number = |pod: PodBuilder| plugin.alike(&cluster().pod(pod));
    let path = "operator/default/abd.json";
    let key = "container.seccomp.security.alpha.kubernetes.io/main";
    let plain = number(confined(pod("a"), path));
    assert_eq!(plain, number(confined(pod("b").cpu("3").annotation("uid", "17"), path)));
    let others = [
        pod("a"),
        confined(pod("a"), "operator/xy.json"),
        confined(pod("a").annotation(key, path), path),
        pod("a").annotation(key, path),
        confined(pod("a").annotation(key, "operator/xy.json"), path),
    ];
    let mut numbers: Vec<u64> = others.into_iter().map(number).collect();
    numbers.push(plain);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6);
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
