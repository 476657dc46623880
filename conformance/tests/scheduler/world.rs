//! What only the tests of the scheduler itself do with a world of `supercargo-world`.

use serde_json::{Value, json};
use supercargo_engine::{AnswerTaken, Ticket};
use supercargo_framework::Facts;

pub(crate) use supercargo_world::World;

pub(crate) trait InTests {
    /// Somebody outside answers a query, or does not.
    fn answered(&mut self, query: &str, answer: Result<Facts, String>) -> Option<AnswerTaken>;

    /// Lets the scheduler run until it orders this, which stays undone; the ticket of the order.
    fn order_for(&mut self, line: &str) -> Ticket;

    /// The server has bound a pod, by whoever asked for it.
    fn bind(&mut self, pod: &str, node: &str);

    fn remove_if_there(&mut self, name: &str);

    /// What each node has left, in whole cores, by what the API server knows; less than nothing if it was given too much.
    fn free_cpu(&self) -> Vec<(String, i64)>;

    /// The nodes that were given more than they have.
    fn over_committed(&self) -> Vec<String>;

    fn is_empty_node(&self, name: &str) -> bool;
}

impl InTests for World {
    fn answered(&mut self, query: &str, answer: Result<Facts, String>) -> Option<AnswerTaken> {
        let now = self.now();
        self.scheduler.answered(query, answer, now)
    }

    fn order_for(&mut self, line: &str) -> Ticket {
        self.set_slow(true);
        self.run();
        self.set_slow(false);
        self.take_undone(line).unwrap_or_else(|| panic!("{line} was not ordered"))
    }

    fn bind(&mut self, pod: &str, node: &str) {
        self.change(&format!("Pod {pod}"), &json!({"spec": {"nodeName": node}}));
    }

    fn remove_if_there(&mut self, name: &str) {
        if self.find(name).is_some() {
            self.remove(name);
        }
    }

    fn free_cpu(&self) -> Vec<(String, i64)> {
        let cores = |value: &Value| value.as_str().and_then(|cpu| cpu.parse::<i64>().ok()).unwrap_or(0);
        let free = |node: &Value| {
            let on_node =
                self.objects("Pod").filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
            let taken: i64 =
                on_node.map(|pod| cores(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])).sum();
            cores(&node["status"]["allocatable"]["cpu"]) - taken
        };
        let name = |node: &Value| node["metadata"]["name"].as_str().expect("nodes have names").to_owned();
        self.objects("Node").map(|node| (name(node), free(node))).collect()
    }

    fn over_committed(&self) -> Vec<String> {
        let over = self.free_cpu().into_iter().filter(|(_, free)| *free < 0);
        over.map(|(name, _)| name).collect()
    }

    fn is_empty_node(&self, name: &str) -> bool {
        self.objects("Pod").all(|pod| pod["spec"]["nodeName"] != name)
    }
}
