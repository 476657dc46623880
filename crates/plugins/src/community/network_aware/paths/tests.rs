use supercargo_model::Quantity;

use super::*;

fn nodes() -> Nodes<'static> {
    let places = [
        ("a1", "west", "w1"),
        ("a2.example.com", "west", "w2"),
        ("a3", "west", "w3"),
        ("b1", "east", "e1"),
        ("c1", "north", "n1"),
        ("nowhere", "", ""),
    ];
    places.into_iter().map(|(name, region, zone)| (name, Place { region, zone })).collect()
}

/// The costs of a key as `from-to:cost`.
fn costs(set: &WeightSet, key: &str) -> Vec<String> {
    let of_key = costs_of(set, key).expect("the key is there");
    let of_origin = |costs: &CostsOfOrigin| {
        let origin = costs.origin.clone();
        let cost = move |cost: &Cost| format!("{origin}-{}:{}", cost.destination, cost.network_cost);
        costs.cost_list.iter().map(cost).collect::<Vec<_>>()
    };
    of_key.origin_list.iter().flat_map(of_origin).collect()
}

#[test]
fn entries_of_the_config_map_are_read_or_named() {
    let nodes = nodes();
    let key = "netperf.p90.latency.milliseconds.origin.a2.example.com.destination.a1";
    let read = |value: &str| measurement(key, value, &nodes).expect("it is a measurement");
    assert_eq!(read(" 12\n"), Ok(Measurement { origin: "a2.example.com", destination: "a1", cost: 12 }));
    for garbage in ["", "fast", "-1", "1.5", "99999999999999999999"] {
        assert!(read(garbage).expect_err("no number").contains("which is no whole number"), "{garbage}");
    }
    assert_eq!(measurement("other", "1", &nodes), None);
    assert_eq!(measurement("netperf.p90.latency.milliseconds.origin.a1", "1", &nodes), None);
}

#[test]
fn costs_are_averages_and_then_shortest_ways() {
    let nodes = nodes();
    let measured = [
        ("a1", "b1", 10),
        ("b1", "a1", 21),
        ("a1", "c1", 100),
        ("b1", "c1", 30),
        ("a1", "a2.example.com", 4),
        ("a2.example.com", "a3", 5),
        ("a1", "a3", 50),
        ("a1", "nowhere", 1),
        ("a1", "gone", 1),
    ];
    let measured = measured.map(|(origin, destination, cost)| Measurement { origin, destination, cost });
    let by_hand = serde_json::json!({ "name": "UserDefined", "topologyList": [{
        "topologyKey": REGION,
        "originList": [{ "origin": "east", "costList": [
            { "destination": "west", "isAllowed": false, "bandwidthCapacity": "5G", "networkCost": 1 },
        ] }],
    }] });
    let by_hand: WeightSet = serde_json::from_value(by_hand).expect("weights");
    let allocated = BTreeMap::from([(("west".to_owned(), "north".to_owned()), 7)]);
    let set = weights(&nodes, &measured, Some(&by_hand), &allocated).expect("there are few places");
    assert_eq!(
        costs(&set, REGION),
        ["east-north:30", "east-west:15", "north-east:30", "north-west:45", "west-east:15", "west-north:45"]
    );
    assert_eq!(costs(&set, ZONE), ["w1-w2:4", "w1-w3:9", "w2-w1:4", "w2-w3:5", "w3-w1:9", "w3-w2:5"]);
    let links = &costs_of(&set, REGION).expect("regions").origin_list;
    let link = |origin: usize, cost: usize| {
        let Cost { is_allowed, bandwidth_capacity, bandwidth_allocated, .. } = &links[origin].cost_list[cost];
        let text =
            |quantity: &Option<Quantity>| quantity.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{is_allowed:?} {} {}", text(bandwidth_capacity), text(bandwidth_allocated))
    };
    assert_eq!(link(0, 1), "Some(false) 5G 0", "what is said by hand holds");
    assert_eq!(link(2, 1), "Some(true) 1G 7", "what pods have asked for is there");
}

#[test]
fn too_many_places_are_none() {
    let names: Vec<String> = (0..=PLACES_MAX).map(|number| format!("n{number}")).collect();
    let nodes: Nodes<'_> =
        names.iter().map(|name| (name.as_str(), Place { region: name, zone: "z" })).collect();
    let measured: Vec<Measurement<'_>> = names
        .windows(2)
        .map(|pair| Measurement { origin: &pair[0], destination: &pair[1], cost: 1 })
        .collect();
    assert_eq!(weights(&nodes, &measured, None, &BTreeMap::new()), None);
    let few = weights(&nodes, &measured[1..], None, &BTreeMap::new()).expect("one less");
    assert_eq!(costs(&few, REGION).len(), PLACES_MAX * (PLACES_MAX - 1));
}
