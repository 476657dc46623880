//! What is behind an error.

use std::error::Error;

/// An error and all that is behind it, as one line: a client's own words for a server that cannot be reached do not say why.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let words = error.to_string();
        // Some errors repeat what is behind them.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::with_causes;

    #[derive(Debug, thiserror::Error)]
    #[error("the lease: {repeated}")]
    struct Outer {
        repeated: String,
        source: io::Error,
    }

    #[test]
    fn causes_are_said_once() {
        let refused = || io::Error::other("connection refused");
        let plain = Outer { repeated: "no answer".to_owned(), source: refused() };
        assert_eq!(with_causes(&plain), "the lease: no answer: connection refused");
        let repeating = Outer { repeated: "connection refused".to_owned(), source: refused() };
        assert_eq!(with_causes(&repeating), "the lease: connection refused");
    }
}
