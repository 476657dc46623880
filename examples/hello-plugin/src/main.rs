//! A whole plugin of one's own in one file: its arguments, a filter, a score, a test, and the program around it.

use std::process::ExitCode;

use supercargo_sdk::prelude::*;

/// Keeps pods away from old machines, and prefers the newest; how old a machine is, a label says.
struct Youngest {
    args: YoungestArgs,
}

/// Arguments of [`Youngest`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
struct YoungestArgs {
    label: String,
    max_years: i64,
}

impl Default for YoungestArgs {
    fn default() -> Self {
        YoungestArgs { label: "example.com/age".to_owned(), max_years: 10 }
    }
}

impl Args for YoungestArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        if self.max_years < 1 {
            problems.invalid("maxYears", self.max_years, "must be at least 1");
        }
    }
}

impl Plugin for Youngest {
    const NAME: &'static str = "Youngest";
    type Args = YoungestArgs;

    fn new(args: YoungestArgs) -> Self {
        Youngest { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Labels])
    }
}

impl Youngest {
    fn age(&self, node: NodeRef<'_>) -> i64 {
        node.label(&self.args.label).and_then(|age| age.parse().ok()).unwrap_or(0)
    }
}

impl Filter for Youngest {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let too_old = self.age(node) > self.args.max_years;
        if too_old { Status::unresolvable("node(s) were too old") } else { Status::success() }
    }
}

impl Score for Youngest {
    fn score(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(100 - 100 * self.age(node).clamp(0, self.args.max_years) / self.args.max_years)
    }
}

fn main() -> ExitCode {
    supercargo::main_with(|plugins| plugins.add::<Youngest>())
}

#[cfg(test)]
mod tests {
    use supercargo_sdk::testkit::{cluster, json, node, pod, problems_of, trial_with};

    use super::*;

    #[test]
    fn the_young_are_preferred_and_the_old_refused() {
        let youngest = trial_with::<Youngest>(json!({ "maxYears": 4 }));
        let aged = |name: &str, years: &str| node(name).label("example.com/age", years);
        let mut cluster =
            cluster().with(aged("a", "1")).with(aged("b", "4")).with(aged("c", "5")).with(node("d"));
        let said = youngest.filter(&mut cluster, pod("p"));
        assert_eq!(said, ["a: ok", "b: ok", "c: unresolvable: node(s) were too old", "d: ok"]);
        assert_eq!(youngest.scores(&mut cluster, pod("p")), ["a: 75", "b: 0", "c: 0", "d: 100"]);
        let problems = problems_of::<Youngest>(json!({ "maxYears": 0 }));
        assert_eq!(problems, ["maxYears: Invalid value: 0: must be at least 1"]);
    }
}
