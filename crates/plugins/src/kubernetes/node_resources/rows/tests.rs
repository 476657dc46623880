use proptest::prelude::*;
use serde_json::{Value, json};
use supercargo_framework::{Args, Columns, Cycle, Filter, Plugin, PreFilter, PreScore, Score};
use supercargo_testkit::{cluster, node, pod};

use super::*;
use crate::kubernetes::node_resources::{
    NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs, NodeResourcesFit,
    NodeResourcesFitArgs,
};

#[test]
fn whole_parts() {
    for number in [0.0, 0.4, 0.5, 0.999_999_999_999_9, 1.0, 1.5, 2.5, 41.0, 99.999_999_999_999, 100.0] {
        assert_eq!(whole(number), number as i32, "{number}");
    }
    for thousandth in 0..200_000 {
        let number = f64::from(thousandth) / 1000.0;
        assert_eq!(whole(number), number as i32, "{number}");
    }
}

proptest! {
    #[test]
    fn a_product_with_the_reciprocal_is_as_good_as_a_quotient(
        has in prop_oneof![0..1000i64, 0..=EXACT_AMOUNT_MAX],
        part in prop_oneof![(0..=100i64).prop_map(Err), (0..=EXACT_AMOUNT_MAX).prop_map(Ok)],
    ) {
        // Where an amount is a whole percentage of another, the product is next to a whole number, on either side.
        let taken = part.unwrap_or_else(|percent| has / 100 * percent);
        let inverse = if has > 0 { (has as f64).recip() } else { 0.0 };
        let percent_of = |part: i64| if has > 0 { part * 100 / has } else { 0 };
        for (share, part) in [(Share::Free, (has - taken).max(0)), (Share::Taken, taken.min(has))] {
            let found = multiplied_percent(has as f64, inverse, taken as f64, share);
            prop_assert_eq!(found as i64, percent_of(part), "{} of {}", part, has);
        }
    }
}

/// Amounts of cpu in thousandths, memory and storage: none, few that meet each other, and any.
fn amounts() -> impl Strategy<Value = [u64; 3]> {
    let amount = |most: u64| prop_oneof![Just(0), (1..6u64).prop_map(move |part| most / 5 * part), 0..=most];
    [amount(8000), amount(64 << 30), amount(100 << 30)]
}

/// Nodes with what they have, for how many pods, and what the pods on them ask for.
fn nodes() -> impl Strategy<Value = Vec<([u64; 3], u32, Vec<[u64; 3]>)>> {
    prop::collection::vec((amounts(), 0..3u32, prop::collection::vec(amounts(), 0..3)), 1..12)
}

fn args<T: Args + serde::de::DeserializeOwned>(args: Value) -> T {
    let mut args: T = serde_json::from_value(args).expect("the arguments are readable");
    args.complete();
    args
}

/// What is said of one node by its numbers, of many at once, and of each the plain way is the same.
fn check_scores(plugin: &dyn Score, cycle: &Cycle<'_>, view: ColumnView<'_>, numbers: &[NodeNumbers]) {
    let plain: Vec<i64> =
        cycle.cluster().nodes().map(|node| plugin.score(cycle, node).expect("it has a score")).collect();
    let mut many = vec![0; plain.len()];
    assert!(plugin.score_rows(cycle, view, &mut many));
    let prepared = plugin.score_row(cycle).expect("numbers are enough");
    let one: Vec<i32> = numbers.iter().map(prepared).collect();
    assert_eq!(one, many);
    assert!(plain.into_iter().eq(one.into_iter().map(i64::from)));
}

proptest! {
    #[test]
    fn one_node_gets_what_many_get(nodes in nodes(), asked in amounts(), kind in 0..2usize, weights in 0..3usize) {
        let mut cluster = cluster();
        for (number, ([cpu, memory, storage], pods, residents)) in nodes.iter().enumerate() {
            let name = format!("n{number}");
            let has = node(&name).cpu(&format!("{cpu}m")).memory(&memory.to_string()).pods(*pods);
            cluster.put(has.allocatable("ephemeral-storage", &storage.to_string()));
            for (resident, amounts) in residents.iter().enumerate() {
                cluster.put(asking(&format!("{name}-{resident}"), amounts).on(&name));
            }
        }
        let pod = cluster.pod(asking("p", &asked));
        let all: Vec<_> = cluster.snapshot().nodes().collect();
        let mut columns = Columns::default();
        columns.resize(all.len());
        all.iter().enumerate().for_each(|(place, node)| columns.set(place, *node));
        let view = columns.view(0..all.len());
        let numbers: Vec<NodeNumbers> = all.iter().map(|node| NodeNumbers::of(*node)).collect();
        prop_assert!(view.are_exact() && numbers.iter().all(NodeNumbers::are_exact));

        let resource = |name: &str, weight: i64| json!({ "name": name, "weight": weight });
        let two = [resource("cpu", 1), resource("memory", 1)];
        let resources = [
            json!(two),
            json!([resource("memory", 3), resource("cpu", 2)]),
            json!([resource("cpu", 1), resource("ephemeral-storage", 5), resource("memory", 1)]),
        ];
        let kind = ["LeastAllocated", "MostAllocated"][kind];
        let strategy = json!({ "scoringStrategy": { "type": kind, "resources": resources[weights] } });
        let fit = NodeResourcesFit::new(args::<NodeResourcesFitArgs>(strategy));
        let mut cycle = cluster.cycle(&pod);
        fit.pre_filter(&mut cycle);
        fit.pre_score(&mut cycle, &[]);
        let plain: Vec<bool> = all.iter().map(|node| fit.filter(&cycle, *node).is_success()).collect();
        let mut many = vec![true; all.len()];
        prop_assert!(fit.filter_rows(&cycle, view, &mut many));
        let prepared = fit.filter_row(&cycle).expect("numbers are enough");
        let one: Vec<bool> = numbers.iter().map(prepared).collect();
        prop_assert_eq!(&one, &plain);
        prop_assert_eq!(one, many);
        check_scores(&fit, &cycle, view, &numbers);

        let balanced = NodeResourcesBalancedAllocation::new(
            args::<NodeResourcesBalancedAllocationArgs>(json!({ "resources": two })),
        );
        if balanced.pre_score(&mut cycle, &[]).is_success() {
            check_scores(&balanced, &cycle, view, &numbers);
        }
    }
}

fn asking(name: &str, [cpu, memory, storage]: &[u64; 3]) -> supercargo_testkit::PodBuilder {
    pod(name)
        .cpu(&format!("{cpu}m"))
        .memory(&memory.to_string())
        .request("ephemeral-storage", &storage.to_string())
}
