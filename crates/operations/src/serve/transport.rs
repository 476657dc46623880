//! A connection whose peer has to take what is sent to it.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a peer may take none of what is sent to it. A client that asks and never reads would otherwise keep its answer, and its slot,
/// for ever.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A stream whose writes fail once the peer has taken nothing for [`WRITE_TIMEOUT`].
#[derive(Debug)]
pub(super) struct Transport<Stream> {
    stream: Stream,
    /// Runs while the peer takes nothing.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<Stream> Transport<Stream> {
    pub(super) fn new(stream: Stream) -> Self {
        Transport { stream, deadline: None }
    }

    fn timed<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for Transport<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for Transport<Stream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, shut_down)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut peer, stream) = duplex(16);
        let mut stream = Transport::new(stream);
        let began = Instant::now();
        let error = stream.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIMEOUT));
        peer.read_exact(&mut [0; 16]).await.expect("what was written before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_is_not_given_up() {
        let (mut peer, stream) = duplex(16);
        let mut stream = Transport::new(stream);
        let reading = tokio::spawn(async move {
            for _ in 0..4 {
                sleep(WRITE_TIMEOUT - Duration::from_secs(1)).await;
                peer.read_exact(&mut [0; 16]).await.expect("it is sent");
            }
        });
        stream.write_all(&[0; 64]).await.expect("all is taken in the end");
        reading.await.expect("no panic");
    }
}
