//! Binds a pod for another scheduler, which has asked its extender to.

use supercargo_client::ApiServer;
use supercargo_extender::wire::ExtenderBindingArgs;
use supercargo_model::Pod;

/// Binds a pod to a node, provided that the pod still has that UID. An error says why it is not bound, or may not be.
pub async fn bind(server: &ApiServer, binding: ExtenderBindingArgs) -> Result<(), String> {
    let ExtenderBindingArgs { pod_name, pod_namespace, pod_uid, node } = binding;
    for (field, value) in [("PodName", &pod_name), ("PodNamespace", &pod_namespace), ("Node", &node)] {
        if value.is_empty() {
            return Err(format!("cannot bind: the question has no {field}"));
        }
    }
    let pod =
        Pod { name: pod_name, namespace: (*pod_namespace).into(), uid: (*pod_uid).into(), ..Pod::default() };
    server.perform(&supercargo_api::bind(&pod, &node)).await.map_err(|error| error.to_string())
}
