//! Cuts the answer to a watch into its events: lines of JSON, or messages of protobuf with their lengths before them.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use supercargo_api::watch::EventWords;
use supercargo_client::{AnswerBody, chain, socket_of};
use tokio::time::{Instant, timeout_at};

use crate::rest::Listening;

/// No object is larger than this; etcd takes 1.5 MiB, and JSON is not much longer than what it keeps.
const FRAME_BYTES_MAX: usize = 32 << 20;
/// What a server says that it answers in if it is protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// A frame that is larger may take its time, as long as so much of it comes within the patience. What comes more slowly is no
/// event, but somebody who keeps a connection busy.
const PROGRESS_BYTES_MIN: usize = 16 << 10;
/// The bytes of the length before a message.
const LENGTH_BYTES: usize = 4;

/// The frames of an answer.
pub(super) struct Frames {
    body: AnswerBody,
    notation: Notation,
    /// What came and was not yet looked at.
    chunk: Bytes,
    /// The beginning of a frame that the chunks so far do not complete.
    begun: Vec<u8>,
    /// The server should have ended the answer long before.
    ends_by: Instant,
    /// The thread that schedules is told of what comes, if that is what it waits for.
    _listening: Option<Listening>,
}

/// What an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// One event a line.
    Json,
    /// The length of each message stands before it, the most significant byte first.
    Protobuf,
}

/// What is written of one event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A line of JSON, with its end.
    Line(Bytes),
    /// A message of protobuf.
    Message(Bytes),
}

/// Why there is no next frame.
#[derive(Debug)]
pub(super) enum FramesError {
    /// The connection broke, or carried something that is no frame.
    Broken(String),
    /// The connection carried nothing for too long, or nothing that comes to a frame.
    Silent,
    /// The server should have ended the answer long ago.
    Overdue,
}

impl Frames {
    /// The frames of an answer that is over by then at the latest.
    pub(super) fn new(answer: Response<AnswerBody>, ends_by: Instant) -> Self {
        let is_protobuf = answer
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(PROTOBUF.as_bytes()));
        Frames {
            notation: if is_protobuf { Notation::Protobuf } else { Notation::Json },
            body: answer.into_body(),
            chunk: Bytes::new(),
            begun: Vec::new(),
            ends_by,
            _listening: None,
        }
    }

    /// Frames that the thread which schedules waits for when it rests.
    pub(super) fn awaited(answer: Response<AnswerBody>, ends_by: Instant) -> Self {
        let listening = socket_of(answer.body()).and_then(Listening::to);
        Frames { _listening: listening, ..Frames::new(answer, ends_by) }
    }

    /// The next whole frame; none at the end. A last one without its end was cut, and is left out, and so are lines with nothing in
    /// them. Nothing is lost if the future is dropped. The patience is for the whole frame, or for the next part of a large one: a
    /// connection that carries a byte now and then tells nothing.
    pub(super) async fn next(&mut self, patience: Duration) -> Result<Option<Frame>, FramesError> {
        // Until when it is waited, and how much had come then. Nobody looks at a clock while frames are there.
        let mut waiting: Option<(Instant, usize)> = None;
        loop {
            if let Some(end) = self.end()? {
                let last = self.chunk.split_to(end);
                let whole = if self.begun.is_empty() {
                    last
                } else {
                    self.begun.extend_from_slice(&last);
                    Bytes::from(std::mem::take(&mut self.begun))
                };
                if self.notation == Notation::Json && whole.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(self.notation.frame(whole)));
            }
            self.begun.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            if self.begun.len() > FRAME_BYTES_MAX {
                return Err(too_long());
            }
            let (until, _) = match waiting {
                Some((until, come)) if self.begun.len() < come + PROGRESS_BYTES_MIN => (until, come),
                _ => *waiting.insert((Instant::now() + patience, self.begun.len())),
            };
            match timeout_at(until.min(self.ends_by), self.body.frame()).await {
                Err(_) if self.ends_by <= until => return Err(FramesError::Overdue),
                Err(_) => return Err(FramesError::Silent),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(FramesError::Broken(chain(&*error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.chunk = data;
                    }
                }
            }
        }
    }

    /// How many bytes of the chunk complete the frame; none if there are not enough.
    fn end(&self) -> Result<Option<usize>, FramesError> {
        match self.notation {
            Notation::Json => Ok(memchr::memchr(b'\n', &self.chunk).map(|end| end + 1)),
            Notation::Protobuf => {
                let mut bytes = self.begun.iter().chain(&self.chunk).copied();
                let mut length = [0; LENGTH_BYTES];
                for byte in &mut length {
                    let Some(next) = bytes.next() else { return Ok(None) };
                    *byte = next;
                }
                let length = u32::from_be_bytes(length) as usize;
                if length > FRAME_BYTES_MAX {
                    return Err(too_long());
                }
                let end = LENGTH_BYTES + length - self.begun.len();
                Ok((end <= self.chunk.len()).then_some(end))
            }
        }
    }
}

fn too_long() -> FramesError {
    FramesError::Broken(format!("an event of more than {FRAME_BYTES_MAX} bytes came"))
}

impl Notation {
    fn frame(self, mut whole: Bytes) -> Frame {
        match self {
            Notation::Json => Frame::Line(whole),
            Notation::Protobuf => {
                whole.advance(LENGTH_BYTES);
                Frame::Message(whole)
            }
        }
    }
}

impl Frame {
    /// The event.
    pub(super) fn event(&self) -> Result<EventWords<'_>, String> {
        match self {
            Frame::Line(line) => EventWords::read(text(line)?),
            Frame::Message(message) => EventWords::read_protobuf(message),
        }
    }

    /// The event, if it may be written in an unusual way.
    pub(super) fn event_read_carefully(&self) -> Result<EventWords<'_>, String> {
        match self {
            Frame::Line(line) => EventWords::read_carefully(text(line)?),
            Frame::Message(message) => EventWords::read_protobuf(message),
        }
    }
}

fn text(line: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_client::fake::{Answer, Fake};
    use supercargo_client::{ApiServer, Call};

    const AGES: Duration = Duration::from_secs(3600);

    /// The frames of bytes that come in pieces of a size.
    async fn frames(
        bytes: &'static [u8],
        size: usize,
        content_type: &'static str,
    ) -> Result<Vec<Frame>, String> {
        let fake = Fake::new(move |_| {
            let (writer, answer) = Answer::streamed();
            for piece in bytes.chunks(size) {
                let _ = writer.send(Ok(Bytes::from_static(piece)));
            }
            answer.with_header("content-type", content_type)
        });
        let answer = ApiServer::new(fake.service(), None).open(&Call::get("/".to_owned())).await;
        let mut frames = Frames::new(answer.expect("the server is kind"), Instant::now() + AGES);
        let mut found = Vec::new();
        loop {
            match frames.next(AGES).await {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => return Ok(found),
                Err(error) => return Err(format!("{error:?}")),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_come() {
        let line = |text: &'static str| Frame::Line(Bytes::from_static(text.as_bytes()));
        for size in 1..16 {
            let found = frames(b"one\ntwo\n\n \r\nthree\ncut", size, "application/json").await;
            assert_eq!(found, Ok(["one\n", "two\n", "three\n"].map(line).into()), "{size}");
        }
        assert_eq!(frames(b"", 1, "application/json").await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn messages_are_the_same_however_they_come() {
        let content_type = "application/vnd.kubernetes.protobuf;stream=watch";
        let message = |text: &'static str| Frame::Message(Bytes::from_static(text.as_bytes()));
        for size in 1..24 {
            let found =
                frames(b"\0\0\0\x03one\0\0\0\0\0\0\0\x05t\nree\0\0\0\x09cut", size, content_type).await;
            assert_eq!(found, Ok(["one", "", "t\nree"].map(message).into()), "{size}");
        }
        let found = frames(b"\xff\0\0\x03one", 3, content_type).await;
        assert!(found.is_err_and(|error| error.contains("more than")));
    }
    /// What is waited for is a frame, not a byte.
    #[tokio::test(start_paused = true)]
    async fn bytes_that_come_to_no_frame_are_silence() {
        let patience = Duration::from_secs(45);
        // How often what comes, how long the whole may take, and what becomes of it after how many seconds.
        for (piece, every, ends, expected) in [
            ("x", 10, 3600, "45 s: Err(Silent)"),
            ("\n", 10, 3600, "45 s: Err(Silent)"),
            ("x", 10, 20, "20 s: Err(Overdue)"),
            // A large frame on a slow line, whose end does not come.
            (&"x".repeat(PROGRESS_BYTES_MIN), 10, 100, "100 s: Err(Overdue)"),
        ] {
            let piece = Bytes::from(piece.to_owned());
            let fake = Fake::new(move |_| {
                let ((writer, answer), piece) = (Answer::streamed(), piece.clone());
                tokio::spawn(async move {
                    while writer.send(Ok(piece.clone())).is_ok() {
                        tokio::time::sleep(Duration::from_secs(every)).await;
                    }
                });
                answer
            });
            let answer = ApiServer::new(fake.service(), None).open(&Call::get("/".to_owned())).await;
            let began = Instant::now();
            let ends_by = began + Duration::from_secs(ends);
            let next = Frames::new(answer.expect("the server is kind"), ends_by).next(patience).await;
            assert_eq!(format!("{} s: {next:?}", began.elapsed().as_secs()), expected);
        }
    }
}
