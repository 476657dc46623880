//! Taints that keep pods off a node, and the tolerations that let them on all the same.

use rustc_hash::FxHashSet;
use serde::Deserialize;

use crate::protobuf::message;
use crate::wire::null_default;

/// The taint that stands for `spec.unschedulable`.
pub const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// A mark on a node that pods must tolerate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// What the mark is.
    #[serde(deserialize_with = "null_default")]
    pub key: Box<str>,
    /// Which of its kind.
    #[serde(deserialize_with = "null_default")]
    pub value: Box<str>,
    /// What happens to pods that do not tolerate it.
    #[serde(deserialize_with = "null_default")]
    pub effect: Effect,
}

/// What a taint does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effect {
    /// No effect is named; in a toleration this means every effect.
    #[default]
    Unspecified,
    /// New pods stay away.
    NoSchedule,
    /// New pods rather go elsewhere.
    PreferNoSchedule,
    /// New pods stay away, running ones must go.
    NoExecute,
    /// An effect that we do not know; it only equals itself.
    Other(Box<str>),
}

/// A pod's willingness to run on tainted nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; empty means any.
    #[serde(deserialize_with = "null_default")]
    pub key: Box<str>,
    /// How the values compare.
    #[serde(deserialize_with = "null_default")]
    pub operator: TolerationOperator,
    /// The value compared with.
    #[serde(deserialize_with = "null_default")]
    pub value: Box<str>,
    /// The taint's effect; unspecified means any.
    #[serde(deserialize_with = "null_default")]
    pub effect: Effect,
}

/// How a toleration compares its value with the taint's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// The values must be equal.
    #[default]
    Equal,
    /// Any value will do.
    Exists,
    /// Never matches: unknown, or behind a feature gate that is off by default (`Lt`, `Gt`).
    Other(Box<str>),
}

impl Taint {
    /// Whether pods that do not tolerate the taint must not be placed on the node.
    pub fn forbids_scheduling(&self) -> bool {
        matches!(self.effect, Effect::NoSchedule | Effect::NoExecute)
    }

    /// Whether one of the tolerations covers the taint.
    pub fn is_tolerated_by(&self, tolerations: &[Toleration]) -> bool {
        tolerations.iter().any(|toleration| toleration.tolerates(self))
    }
}

/// The first taint that keeps a pod with these tolerations off the node.
pub fn find_forbidding<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    untolerated(taints, tolerations).find(|taint| taint.forbids_scheduling())
}

/// The taints that none of the tolerations covers, in their order. Takes as long as there are taints and tolerations, where
/// there are many of both.
pub fn untolerated<'t, 's>(
    taints: &'t [Taint],
    tolerations: &'s [Toleration],
) -> impl Iterator<Item = &'t Taint> + use<'t, 's> {
    let covered = (taints.len().min(tolerations.len()) > COMPARED_MAX).then(|| Covered::new(tolerations));
    taints.iter().filter(move |taint| match &covered {
        Some(covered) => !covered.contains(taint),
        None => !taint.is_tolerated_by(tolerations),
    })
}

/// Up to so many taints, or tolerations, are compared with each of the others.
const COMPARED_MAX: usize = 16;

/// What tolerations cover: a key, or an empty one for any; a value, or none for any; an effect, or none in particular for any.
struct Covered<'a>(FxHashSet<(&'a str, Option<&'a str>, &'a Effect)>);

impl<'a> Covered<'a> {
    fn new(tolerations: &'a [Toleration]) -> Self {
        let covered = tolerations.iter().filter_map(|toleration| {
            let value = match toleration.operator {
                TolerationOperator::Equal => Some(&*toleration.value),
                TolerationOperator::Exists => None,
                TolerationOperator::Other(_) => return None,
            };
            Some((&*toleration.key, value, &toleration.effect))
        });
        Covered(covered.collect())
    }

    /// As [`Taint::is_tolerated_by`].
    fn contains(&self, taint: &Taint) -> bool {
        ["", &*taint.key].into_iter().any(|key| {
            [None, Some(&*taint.value)].into_iter().any(|value| {
                let effects = [&Effect::Unspecified, &taint.effect];
                effects.into_iter().any(|effect| self.0.contains(&(key, value, effect)))
            })
        })
    }
}

impl Toleration {
    /// Whether this toleration covers the taint. An empty key with `Equal` compares values only.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect == Effect::Unspecified || self.effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Other(_) => false,
            }
    }
}

impl From<&str> for Effect {
    fn from(text: &str) -> Self {
        match text {
            "" => Effect::Unspecified,
            "NoSchedule" => Effect::NoSchedule,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => Effect::Other(text.into()),
        }
    }
}

impl From<&str> for TolerationOperator {
    fn from(text: &str) -> Self {
        match text {
            "" | "Equal" => TolerationOperator::Equal,
            "Exists" => TolerationOperator::Exists,
            _ => TolerationOperator::Other(text.into()),
        }
    }
}

impl<'de> Deserialize<'de> for Effect {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok((*Box::<str>::deserialize(deserializer)?).into())
    }
}

impl<'de> Deserialize<'de> for TolerationOperator {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok((*Box::<str>::deserialize(deserializer)?).into())
    }
}

message!(Taint { 1 => key, 2 => value, 3 => effect });
message!(Toleration { 1 => key, 2 => operator, 3 => value, 4 => effect });

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn toleration(json: &str) -> Toleration {
        serde_json::from_str(json).expect("a toleration")
    }

    #[test]
    fn what_tolerates_what() {
        let taint: Taint = serde_json::from_str(r#"{"key":"dedicated","value":"a","effect":"NoSchedule"}"#)
            .expect("a taint");
        for (json, tolerated) in [
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"dedicated","operator":"Exists"}"#, true),
            (r#"{"key":"dedicated","value":"a"}"#, true),
            (r#"{"key":"dedicated","value":"a","effect":"NoSchedule"}"#, true),
            (r#"{"value":"a"}"#, true), // an empty key compares values only
            (r#"{"key":"dedicated","value":"b"}"#, false),
            (r#"{"key":"dedicated","operator":"Exists","effect":"NoExecute"}"#, false),
            (r#"{"key":"dedicated","operator":"Gt","value":"1"}"#, false),
            (r#"{"key":"spot","operator":"Exists"}"#, false),
            (r#"{"key":null,"operator":null,"value":null,"effect":null}"#, false),
        ] {
            assert_eq!(toleration(json).tolerates(&taint), tolerated, "{json}");
        }
    }

    const KEYS: &[&str] = &["", "a", "b"];
    const EFFECTS: &[&str] = &["", "NoSchedule", "PreferNoSchedule", "NoExecute", "Other", "noSchedule"];
    const OPERATORS: &[&str] = &["", "Equal", "Exists", "Lt", "Gt", "exists"];

    /// Key, value, effect.
    type NaiveTaint = (&'static str, &'static str, &'static str);

    fn any_taint() -> impl Strategy<Value = NaiveTaint> {
        let pick = |from: &'static [&str]| prop::sample::select(from);
        (pick(KEYS), pick(&["", "1", "2"]), pick(EFFECTS))
    }

    /// The rules of the API documentation; `Lt` and `Gt` are behind a feature gate that is off.
    fn tolerates(operator: &str, toleration: NaiveTaint, taint: NaiveTaint) -> bool {
        let (key, value, effect) = toleration;
        let covers = |own: &str, of_taint: &str| own.is_empty() || own == of_taint;
        let value_fits = match operator {
            "" | "Equal" => value == taint.1,
            "Exists" => true,
            _ => false,
        };
        covers(effect, taint.2) && covers(key, taint.0) && value_fits
    }

    proptest! {
        #![proptest_config(crate::seeded())]

        #[test]
        fn tolerations_work_as_documented(
            taints in prop::collection::vec(any_taint(), 0..4),
            tolerations in prop::collection::vec((prop::sample::select(OPERATORS), any_taint()), 0..4),
        ) {
            let node: Vec<Taint> = (taints.iter())
                .map(|(key, value, effect)| {
                    let json = serde_json::json!({ "key": key, "value": value, "effect": effect });
                    serde_json::from_value(json).expect("a taint")
                })
                .collect();
            let pod: Vec<Toleration> = (tolerations.iter())
                .map(|(operator, (key, value, effect))| {
                    let json = serde_json::json!({ "key": key, "value": value, "effect": effect, "operator": operator });
                    serde_json::from_value(json).expect("a toleration")
                })
                .collect();
            let tolerated = |taint: NaiveTaint| {
                tolerations.iter().any(|(operator, toleration)| tolerates(operator, *toleration, taint))
            };
            for (naive, taint) in taints.iter().zip(&node) {
                prop_assert_eq!(taint.is_tolerated_by(&pod), tolerated(*naive), "{:?}", naive);
            }
            let listed: Vec<&Taint> = node.iter().filter(|taint| !taint.is_tolerated_by(&pod)).collect();
            prop_assert_eq!(untolerated(&node, &pod).collect::<Vec<_>>(), listed);
            let covered = Covered::new(&pod);
            for taint in &node {
                prop_assert_eq!(covered.contains(taint), taint.is_tolerated_by(&pod), "{:?}", taint);
            }
            let forbidding = (taints.iter())
                .position(|taint| ["NoSchedule", "NoExecute"].contains(&taint.2) && !tolerated(*taint));
            let found = find_forbidding(&node, &pod).map(|taint| node.iter().position(|own| std::ptr::eq(own, taint)));
            prop_assert_eq!(found, forbidding.map(Some));
        }
    }
}
