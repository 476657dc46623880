//! The kept vectors, and what is said when they differ.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use supercargo_conformance::Difference;

/// How many differences are shown when there are some.
const SHOWN: usize = 10;

/// The folder of the kept vectors.
pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The lines of a gzipped file.
pub(crate) fn lines(path: &Path) -> impl Iterator<Item = String> + use<> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("gzipped text"))
}

/// The first differences, in words.
pub(crate) fn report(differences: &[Difference]) -> String {
    let mut text = format!("{} differences", differences.len());
    for Difference { case, pod, part, expected, actual } in differences.iter().take(SHOWN) {
        text.push_str(&format!("\n{case} {pod}: {part}\n  oracle {expected}\n  ours   {actual}"));
    }
    text
}
