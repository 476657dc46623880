//! A scheduler without plugins of its own that asks our extender chooses as our own scheduler does with the same profile.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use supercargo_conformance::Case;
use supercargo_engine::{Evaluation, Rules, Thoroughness, evaluate};
use supercargo_extender::server::{Answerer, View};
use supercargo_extender::wire::{ExtenderArgs, NodeList};
use supercargo_framework::{Context, Fixes, Memories, Needs, Profile};
use supercargo_model::{Cluster, Decoded, Decoder, Pod, Timestamp};

/// So many cases are looked at.
const CASES: usize = 200;
/// The time of all attempts: after everything that happens in a case.
const NOW: i64 = 1_900_000_000;
const FIRST_CREATION: &str = "2027-01-15T08:00:00Z";

/// How nodes are told to the extender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Names,
    Whole,
}

#[test]
fn an_extender_leads_to_the_choice_of_our_own_scheduler() {
    let registry = supercargo_plugins::registry();
    let (mut placed, mut scored, mut unplaced) = (0, 0, 0);
    for line in lines().take(CASES) {
        let case: Case<'_> = serde_json::from_str(&line).expect("a case");
        let kube = match case.config {
            None => supercargo_config::KubeSchedulerConfiguration::default(),
            Some(text) => match supercargo_config::load(text.get()) {
                Ok(loaded) => loaded.kube,
                Err(_) => continue,
            },
        };
        let Ok(profile) = supercargo_config::build_profile(&kube, &registry, 0) else { continue };
        let mut court = Court::open(&profile, &case);
        for (index, text) in case.pods.iter().enumerate() {
            let (pod, text) = court.pod(text, index);
            let evaluation = court.evaluate(&pod);
            let chosen = evaluation.chosen.map(|row| court.cluster.snapshot().node(row).name().to_string());
            for told in [Told::Names, Told::Whole] {
                let found = court.choice(&text, told);
                assert_eq!(found, chosen, "{}: pod {} with {told:?}", case.name, pod.key());
            }
            scored += usize::from(evaluation.feasible.len() > 1);
            match chosen {
                None => unplaced += 1,
                Some(node) => {
                    placed += 1;
                    let bound = Pod { node_name: Some(node.as_str().into()), ..(*pod).clone() };
                    court.cluster.add_pod(Arc::new(bound)).expect("it can be placed");
                }
            }
        }
    }
    assert!(
        placed > 200 && scored > 100 && unplaced > 20,
        "{placed} placed, {scored} scored, {unplaced} not"
    );
}

struct Court<'a> {
    profile: &'a Profile,
    answerer: Answerer,
    decoder: Decoder,
    cluster: Cluster,
    nodes: Vec<(String, Box<RawValue>)>,
}

impl<'a> Court<'a> {
    fn open(profile: &'a Profile, case: &Case<'_>) -> Self {
        let answerer = Answerer::new(vec![profile.clone()], Fixes::default(), None).expect("a profile");
        let decoder = Needs::of([profile]).decoder();
        let mut cluster = Cluster::default();
        let mut nodes = Vec::new();
        for object in &case.objects {
            let decoded = decoder.decode(object.get()).expect("an object");
            if let Decoded::Node(words) = &decoded {
                nodes.push((words.name().to_owned(), (*object).to_owned()));
            }
            cluster.add(decoded).expect("it fits in");
        }
        Court { profile, answerer, decoder, cluster, nodes }
    }

    /// A pod with what the API server would have filled in, and its text.
    fn pod(&mut self, text: &RawValue, index: usize) -> (Arc<Pod>, Box<RawValue>) {
        let mut value: Value = serde_json::from_str(text.get()).expect("JSON");
        let metadata = value["metadata"].as_object_mut().expect("a pod has metadata");
        metadata.entry("uid").or_insert_with(|| json!(format!("pending-{index}")));
        metadata.entry("creationTimestamp").or_insert_with(|| json!(FIRST_CREATION));
        let text = to_raw_value(&value).expect("JSON");
        let Ok(Decoded::Pod(words)) = self.decoder.decode(text.get()) else { panic!("a pod") };
        (Arc::new(self.cluster.interner().pod(*words)), text)
    }

    fn evaluate(&mut self, pod: &Arc<Pod>) -> Evaluation {
        let memories = Memories::default();
        let context = Context {
            cluster: self.cluster.snapshot(),
            now: Timestamp::from_seconds(NOW),
            memories: &memories,
            seed: 0,
            fixes: Fixes::default(),
        };
        let rules = Rules { run_post_filter: false, ..Rules::CONFORMANCE };
        let rules = Rules { errors_reject_nodes: false, ..rules };
        evaluate(self.profile, context, pod, rules, Thoroughness::FirstRejection, &mut 0)
    }

    /// What a scheduler chooses that has nothing but the extender: the best of what is left, by name if there are several.
    fn choice(&self, pod: &RawValue, told: Told) -> Option<String> {
        let everybody = self.nodes.iter().map(|(name, _)| name.as_str()).collect();
        let result = self.answerer.filter(self.view(), self.args(pod, everybody, told));
        let Ok(result) = result else { return None };
        let kept: Vec<String> = match told {
            Told::Names => result.node_names.into_iter().flatten().map(str::into_string).collect(),
            Told::Whole => {
                let name = |text: Box<RawValue>| {
                    let node: Value = serde_json::from_str(text.get()).expect("JSON");
                    node["metadata"]["name"].as_str().expect("a name").to_owned()
                };
                result.nodes.into_iter().flat_map(|list| list.items).map(name).collect()
            }
        };
        if kept.len() < 2 {
            return kept.into_iter().next();
        }
        let kept = kept.iter().map(String::as_str).collect();
        let scores = self.answerer.prioritize(self.view(), self.args(pod, kept, told));
        let Ok(scores) = scores else { return None };
        let best = scores.into_iter().min_by_key(|entry| (-entry.score, entry.host.clone()))?;
        Some(best.host.into_string())
    }

    fn args(&self, pod: &RawValue, names: Vec<&str>, told: Told) -> ExtenderArgs {
        let mut args = ExtenderArgs { pod: Some(pod.to_owned()), ..ExtenderArgs::default() };
        match told {
            Told::Names => args.node_names = Some(names.into_iter().map(Box::from).collect()),
            Told::Whole => {
                let nodes = self.nodes.iter().filter(|(name, _)| names.contains(&name.as_str()));
                args.nodes = Some(NodeList::new(nodes.map(|(_, text)| text.clone()).collect()));
            }
        }
        args
    }

    fn view(&self) -> View {
        View {
            cluster: self.cluster.clone(),
            is_watched: true,
            memories: Memories::default(),
            now: Timestamp::from_seconds(NOW),
            seed: 0,
        }
    }
}

fn lines() -> impl Iterator<Item = String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/cases.jsonl.gz");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("gzipped text"))
}
