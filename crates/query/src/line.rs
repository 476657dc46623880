//! Servers that answer a line with a line, over TCP.

use bytes::Bytes;
use supercargo_framework::LineSource;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::failure::{Failure, FailureKind};

/// How much is read at once.
const PIECE_BYTES: usize = 8 << 10;

/// Sends the line, and reads up to the end of the answer's line or, as of servers that send none, of the connection.
pub(crate) async fn ask(source: &LineSource, bytes_max: usize) -> Result<Bytes, Failure> {
    let failed =
        |kind: FailureKind, error: std::io::Error| Failure::new(kind, format!("{}: {error}", source.address));
    let connecting = TcpStream::connect(&source.address).await;
    let mut stream = connecting.map_err(|error| failed(FailureKind::Unreachable, error))?;
    let line = format!("{}\n", source.line);
    stream.write_all(line.as_bytes()).await.map_err(|error| failed(FailureKind::Cut, error))?;
    let mut answer = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = stream.read(&mut piece).await.map_err(|error| failed(FailureKind::Cut, error))?;
        let part = &piece[..read];
        let end = part.iter().position(|byte| *byte == b'\n');
        answer.extend_from_slice(&part[..end.unwrap_or(read)]);
        if answer.len() > bytes_max {
            let reason = format!("{} answers with more than {bytes_max} bytes", source.address);
            return Err(Failure::new(FailureKind::TooLong, reason));
        }
        if read == 0 || end.is_some() {
            return Ok(answer.into());
        }
    }
}
