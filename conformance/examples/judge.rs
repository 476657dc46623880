use std::io::{BufRead, BufWriter, Write};
fn main() {
    let registry = supercargo_plugins::registry();
    let mut judge = supercargo_conformance::Judge::new(&registry);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let case = serde_json::from_str(&line).unwrap();
        serde_json::to_writer(&mut out, &judge.judge(&case)).unwrap();
        out.write_all(b"\n").unwrap();
    }
}
