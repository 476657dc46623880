use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A spec of workloads that call others: `a>b,c` calls two.
fn spec(algorithm: &str, workloads: &[&str]) -> AppGroupSpec {
    let workload =
        |name: &str| json!({ "kind": "Deployment", "name": name, "selector": format!("{name}-pods") });
    let entry = |text: &&str| {
        let (name, calls) = text.split_once('>').unwrap_or((text, ""));
        let calls = calls.split(',').filter(|name| !name.is_empty());
        let calls: Vec<_> = calls.map(|name| json!({ "workload": workload(name) })).collect();
        json!({ "workload": workload(name), "dependencies": calls })
    };
    let workloads: Vec<_> = workloads.iter().map(entry).collect();
    let spec = json!({ "topologySortingAlgorithm": algorithm, "workloads": workloads });
    serde_json::from_value(spec).expect("a spec")
}

/// The names in their turns.
fn names(order: &Order) -> String {
    let mut workloads: Vec<_> = order.workloads.iter().collect();
    workloads.sort_by_key(|workload| workload.index);
    workloads.iter().map(|workload| &*workload.workload.name).collect::<Vec<_>>().join(" ")
}

#[test]
fn six_algorithms_put_workloads_in_order() {
    let shop = ["web>cart,search", "search>db", "cart>db", "db", "idle"];
    for (algorithm, expected) in [
        ("KahnSort", "web search cart db"),
        ("TarjanSort", "web search cart db"),
        ("ReverseKahn", "db cart search web"),
        ("ReverseTarjan", "db cart search web"),
        ("AlternateKahn", "web db search cart"),
        ("AlternateTarjan", "web db search cart"),
    ] {
        let order = order_of(&spec(algorithm, &shop));
        assert_eq!(names(&order), expected, "{algorithm}");
        assert!(order.problems.is_empty(), "{:?}", order.problems);
        let selectors: Vec<_> = order.workloads.iter().map(|workload| &*workload.workload.selector).collect();
        assert!(selectors.is_sorted(), "{selectors:?}");
    }
    let chain = ["p1>p2", "p2>p3", "p3>p4", "p4>p5", "p5"];
    assert_eq!(names(&order_of(&spec("AlternateKahn", &chain))), "p1 p5 p2 p4 p3");
}

#[test]
fn what_is_wrong_is_said_and_the_spec_is_the_order() {
    for (algorithm, workloads, expected, problem) in [
        ("KahnSort", &["c>d", "a>b", "b>a", "d"][..], "c a b d", "in a circle, a -> b -> a"),
        ("TarjanSort", &["x>a", "b>b", "a"], "x b a", "in a circle, b -> b"),
        ("ReverseKahn", &["a>b", "b>c", "c>a"], "a b c", "in a circle, a -> b -> c -> a"),
        ("KahnSort", &["a>gone", "b>a"], "b a", "spec.workloads lacks gone"),
        ("Dijkstra", &["a>b", "b"], "a b", "\"Dijkstra\", which is none of KahnSort"),
        ("KahnSort", &["b", "a"], "b a", ""),
        ("KahnSort", &[], "", ""),
    ] {
        let order = order_of(&spec(algorithm, workloads));
        assert_eq!(names(&order), expected, "{workloads:?}");
        match problem {
            "" => assert!(order.problems.is_empty(), "{:?}", order.problems),
            problem => assert!(order.problems[0].contains(problem), "{:?}", order.problems),
        }
    }
}

proptest! {
    /// Whatever calls whatever: callers go first, or a circle is named that is one.
    #[test]
    fn callers_go_before_those_whom_they_call(
        calls in prop::collection::btree_set((0..7u8, 0..7u8), 0..14),
        is_kahn in any::<bool>(),
    ) {
        let name = |number: u8| format!("w{number}");
        let workloads: Vec<String> = (0..7)
            .map(|from| {
                let to: Vec<String> = calls.iter().filter(|(a, _)| *a == from).map(|(_, b)| name(*b)).collect();
                format!("{}>{}", name(from), to.join(","))
            })
            .collect();
        let workloads: Vec<&str> = workloads.iter().map(String::as_str).collect();
        let order = order_of(&spec(if is_kahn { "KahnSort" } else { "TarjanSort" }, &workloads));
        match order.problems.first() {
            None => {
                let names = names(&order);
                let place = |number: u8| names.split(' ').position(|known| known == name(number));
                for (from, to) in calls {
                    prop_assert!(place(from) < place(to), "{names}: {from} calls {to}");
                }
            }
            Some(problem) => {
                let circle = problem.split("in a circle, ").nth(1).and_then(|rest| rest.split(':').next());
                let circle: Vec<&str> = circle.unwrap_or_default().split(" -> ").collect();
                prop_assert!(circle.len() > 1 && circle.first() == circle.last(), "{problem}");
                for pair in circle.windows(2) {
                    let number = |name: &str| name[1..].parse::<u8>().unwrap_or(u8::MAX);
                    prop_assert!(calls.contains(&(number(pair[0]), number(pair[1]))), "{problem}");
                }
            }
        }
    }
}

#[test]
fn of_two_workloads_of_one_name_one_has_no_turn_and_that_is_said() {
    let mut twice = spec("KahnSort", &["web>db", "db", "db", "other", "other"]);
    twice.workloads[2].workload.selector = "db-more".into();
    twice.workloads[4].workload.selector = "other-more".into();
    let order = order_of(&twice);
    assert_eq!(names(&order), "web db");
    let expected = "spec.workloads has more than one workload named db: the one with the selector db-more has no turn; give each a name of its own";
    assert_eq!(order.problems, [expected]);
    twice.workloads[2].workload.selector = "db-pods".into();
    assert!(order_of(&twice).problems.is_empty(), "it is the same one");
}
