use super::*;

#[test]
fn codes_mean_what_they_mean_upstream() {
    let all = [
        (Code::Success, "Success", false),
        (Code::Error, "Error", false),
        (Code::Unschedulable, "Unschedulable", true),
        (Code::UnschedulableAndUnresolvable, "UnschedulableAndUnresolvable", true),
        (Code::Skip, "Skip", false),
        (Code::Pending, "Pending", true),
    ];
    for (number, (code, name, rejected)) in all.into_iter().enumerate() {
        let status = Status::new(code, []);
        assert_eq!((code.name(), status.is_rejected(), code as usize), (name, rejected, number));
        assert_eq!((status.is_success(), status.is_skip()), (code == Code::Success, code == Code::Skip));
    }
    assert_eq!(Status::default(), Status::success());
}

#[test]
fn reasons_are_joined_and_the_plugin_is_remembered() {
    let status = Status::new(Code::Unschedulable, ["Too many pods".into(), "Insufficient cpu".into()]);
    assert_eq!(status.message(), "Too many pods, Insufficient cpu");
    assert_eq!(status.plugin(), None);
    let status = status.from_plugin("Fit");
    assert_eq!((status.plugin(), status.reasons().len()), (Some("Fit"), 2));
}
