//! Cuts a stream into lines.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::timeout;

use supercargo_client::{AnswerBody, chain, socket_of};

use crate::rest::Listening;

/// No object is larger than this; etcd takes 1.5 MiB, and JSON is not much longer than what it keeps.
const LINE_BYTES_MAX: usize = 32 << 20;

/// The lines of an answer.
pub(super) struct Lines {
    body: AnswerBody,
    /// What came and was not yet looked at.
    chunk: Bytes,
    /// The beginning of a line that the chunks so far do not complete.
    begun: Vec<u8>,
    /// The thread that schedules is told of what comes, if that is what it waits for.
    _listening: Option<Listening>,
}

/// Why there is no next line.
#[derive(Debug)]
pub(super) enum LinesError {
    /// The connection broke, or carried something that is no line.
    Broken(String),
    /// The connection carried nothing for too long.
    Silent,
}

impl Lines {
    pub(super) fn new(body: AnswerBody) -> Self {
        Lines { body, chunk: Bytes::new(), begun: Vec::new(), _listening: None }
    }

    /// Lines that the thread which schedules waits for when it rests.
    pub(super) fn awaited(body: AnswerBody) -> Self {
        let listening = socket_of(&body).and_then(Listening::to);
        Lines { _listening: listening, ..Lines::new(body) }
    }

    /// The next whole line; none at the end. A last line without its end was cut, and is left out. Nothing is lost if the
    /// future is dropped. The patience is for the next bytes, not for the whole line.
    pub(super) async fn next(&mut self, patience: Duration) -> Result<Option<Bytes>, LinesError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.chunk) {
                let line = self.chunk.split_to(end + 1);
                if self.begun.is_empty() {
                    return Ok(Some(line));
                }
                self.begun.extend_from_slice(&line);
                return Ok(Some(Bytes::from(std::mem::take(&mut self.begun))));
            }
            self.begun.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            if self.begun.len() > LINE_BYTES_MAX {
                return Err(LinesError::Broken(format!("a line of more than {LINE_BYTES_MAX} bytes came")));
            }
            match timeout(patience, self.body.frame()).await {
                Err(_) => return Err(LinesError::Silent),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(LinesError::Broken(chain(&*error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.chunk = data;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_client::ApiServer;
    use supercargo_client::fake::{Answer, Fake};

    /// The lines of a text that comes in pieces of a size.
    async fn lines(text: &'static str, size: usize) -> Vec<String> {
        let fake = Fake::new(move |_| {
            let (writer, answer) = Answer::streamed();
            for piece in text.as_bytes().chunks(size) {
                let _ = writer.send(Ok(Bytes::from_static(piece)));
            }
            answer
        });
        let body = ApiServer::new(fake.service(), None).open("/").await.expect("the server is kind");
        let mut lines = Lines::new(body);
        let mut found = Vec::new();
        while let Some(line) = lines.next(Duration::MAX).await.expect("nothing breaks") {
            found.push(String::from_utf8(line.to_vec()).expect("the text is text"));
        }
        found
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_come() {
        for size in 1..16 {
            assert_eq!(
                lines("one\ntwo\n\nthree\ncut", size).await,
                ["one\n", "two\n", "\n", "three\n"],
                "{size}"
            );
        }
        assert!(lines("", 1).await.is_empty());
    }
}
