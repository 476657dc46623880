//! Our verdicts beside the oracle's: every part of every pod's verdict must be the same.

mod vector_files;

use supercargo_conformance::{CaseVerdict, Difference, Judge, compare};
use vector_files::{lines, report, vectors};

#[test]
fn our_verdicts_are_the_oracles() {
    let registry = supercargo_plugins::registry();
    // With the index on as well: whatever it decides otherwise is an error of the case.
    let mut judge = Judge::new(&registry).checking_index();
    let mut pods = 0;
    let mut differences: Vec<Difference> = Vec::new();
    let mut cases = lines(&vectors().join("cases.jsonl.gz"));
    for verdict in lines(&vectors().join("verdicts.jsonl.gz")) {
        let case = cases.next().expect("there is a case for every verdict");
        let case = serde_json::from_str(&case).expect("a case");
        let expected: CaseVerdict = serde_json::from_str(&verdict).expect("a verdict");
        let actual = judge.judge(&case);
        assert_eq!(expected.name, actual.name, "cases and verdicts go in step");
        pods += expected.verdicts.as_ref().map_or(1, Vec::len);
        differences.extend(compare(&expected, &actual));
    }
    assert!(pods > 1_000, "only {pods} verdicts were compared: are the vectors there?");
    assert!(differences.is_empty(), "{} over {pods} pods", report(&differences));
}

#[test]
fn a_wrong_verdict_is_noticed() {
    let verdict = lines(&vectors().join("verdicts.jsonl.gz"))
        .map(|line| serde_json::from_str::<CaseVerdict>(&line).expect("a verdict"))
        .find(|verdict| verdict.verdicts.iter().flatten().any(|verdict| !verdict.chosen.is_empty()))
        .expect("some pod fits");
    assert_eq!(compare(&verdict, &verdict), []);

    let mut wrong = verdict.clone();
    for verdict in wrong.verdicts.iter_mut().flatten() {
        verdict.chosen.push('x');
        verdict.message.push('x');
    }
    let parts: Vec<&str> = compare(&verdict, &wrong).iter().map(|difference| difference.part).collect();
    assert!(parts.contains(&"chosen") && parts.contains(&"message"), "{parts:?}");

    let failed = CaseVerdict { error: "broken".to_owned(), verdicts: None, ..verdict.clone() };
    assert_eq!(compare(&verdict, &failed)[0].part, "error");
    let silent = CaseVerdict { verdicts: None, ..verdict.clone() };
    assert!(!compare(&verdict, &silent).is_empty(), "a verdict that is missing differs");
}
