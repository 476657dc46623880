//! What holds for all of these plugins.

use supercargo_framework::{FieldSet, NodeField, PluginInstance, PodField, Registry};
use supercargo_testkit::ReadsCheck;
use supercargo_testkit::random::{Mattered, what_matters, worlds};

/// The plugins with their default arguments.
fn plugins() -> Vec<PluginInstance> {
    let mut registry = Registry::default();
    super::register(&mut registry).expect("the names differ");
    registry.iter().map(|plugin| plugin.make(None).expect("defaults are valid")).collect()
}

/// What matters to a plugin although it does not declare to read it.
fn lies(plugin: &PluginInstance, mattered: &[Mattered]) -> Vec<Mattered> {
    mattered.iter().copied().filter(|field| !field.is_declared(plugin)).collect()
}

/// What is not declared to be read may change without changing an answer: caches rely on it. And the test is worth
/// something: every field that is declared was seen to matter, so a plugin that kept quiet about it would be caught.
#[test]
fn plugins_read_what_they_declare_and_no_more() {
    let plugins = plugins();
    let mattered = what_matters(&plugins, &worlds(150));
    let all_fields =
        || PodField::ALL.into_iter().map(Mattered::Pod).chain(NodeField::ALL.into_iter().map(Mattered::Node));
    for (plugin, mattered) in plugins.iter().zip(&mattered) {
        assert_eq!(lies(plugin, mattered), [], "{} reads these without saying so", plugin.name);
        // These two act where no node is looked at, in PostFilter and QueueSort; and what matters to spreading only
        // by way of its policies does so too rarely to be seen in so few clusters.
        if !["DefaultPreemption", "PrioritySort"].contains(&plugin.name) {
            let mut unseen: Vec<Mattered> =
                all_fields().filter(|field| field.is_declared(plugin) && !mattered.contains(field)).collect();
            if plugin.name == "PodTopologySpread" {
                unseen.retain(|field| {
                    ![NodeField::Name, NodeField::Taints].map(Mattered::Node).contains(field)
                        && *field != Mattered::Pod(PodField::Tolerations)
                });
            }
            assert_eq!(unseen, [], "{} declares these, and they never mattered", plugin.name);
        }
    }
    let affinity = plugins.iter().position(|plugin| plugin.name == "NodeAffinity").expect("it is registered");
    let mut liar = plugins[affinity].clone();
    liar.reads.pod = FieldSet::EMPTY.with(&[PodField::NodeSelector]);
    liar.reads.node = FieldSet::EMPTY.with(&[NodeField::Labels]);
    let mut caught = lies(&liar, &mattered[affinity]);
    caught.sort_by_key(|field| format!("{field:?}"));
    assert_eq!(caught, [Mattered::Node(NodeField::Name), Mattered::Pod(PodField::NodeAffinity)]);
}

/// What authors check their plugins with finds nothing about ours.
#[test]
fn plugins_pass_the_check_that_authors_have() {
    for plugin in plugins() {
        assert_eq!(ReadsCheck::of_instance(plugin.clone()).worlds(12).findings(), [""; 0], "{}", plugin.name);
    }
}
