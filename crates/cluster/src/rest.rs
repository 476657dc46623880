//! Rests of the thread that schedules, after it has sent bindings.
//!
//! What comes of a binding comes twice within a few milliseconds: as the answer to the request, and as a change of the pod from the
//! watch. Neither is urgent, and a thread that is woken for each of them finds its caches cold twice. So the thread does not look at
//! either until it has other work: after a single binding it waits until the watch of pods has more to tell than the change that the
//! binding itself makes, for [`QUIET_MAX`] at most; after several it sleeps for [`REST`]. A scheduler that is given 100 pods a second
//! then works once for each pod, and not twice.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

/// How long a thread rests after several bindings: most API servers have answered by then.
const REST: Duration = Duration::from_millis(3);
/// How long a thread works at least between two such rests, so that many pods do not wait longer than a few.
const REST_PAUSE: Duration = Duration::from_millis(5);
/// How long a thread waits for the watch of pods after a single binding. Answers are heard of so much later at most.
const QUIET_MAX: Duration = Duration::from_millis(12);
/// How many sockets are told of at a time; there is one.
const SOCKETS: usize = 4;

thread_local! {
    /// How many bindings this thread has sent since its last rest.
    static SENT: Cell<usize> = const { Cell::new(0) };
    /// When the last rest of this thread ended.
    static RESTED: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What this thread listens to, if it does.
    static ARRIVALS: RefCell<Option<Arrivals>> = const { RefCell::new(None) };
}

/// This thread sends a binding.
pub(crate) fn binding_sent() {
    SENT.set(SENT.get() + 1);
}

/// Lets this thread rest if it has sent bindings. For a runtime to call when the thread has nothing to do but wait.
#[expect(clippy::disallowed_methods, reason = "a thread rests in real time, and decides nothing by it")]
pub fn rest_after_bindings() {
    match SENT.get() {
        0 => return,
        1 if ARRIVALS.with_borrow_mut(wait_for_more) => {}
        _ if RESTED.get().is_some_and(|ended| ended.elapsed() < REST_PAUSE) => return,
        _ => sleep(REST),
    }
    SENT.set(0);
    RESTED.set(Some(Instant::now()));
}

/// The thread goes on to work: whatever has come by now it will see. For a runtime to call when a thread has waited.
pub fn end_rest() {
    ARRIVALS.with_borrow_mut(|arrivals| {
        if let Some(arrivals) = arrivals {
            arrivals.wait(Duration::ZERO);
        }
    });
}

/// Waits until something comes besides what follows from a binding; false if nobody listens.
#[expect(clippy::disallowed_methods, reason = "a thread rests in real time, and decides nothing by it")]
fn wait_for_more(arrivals: &mut Option<Arrivals>) -> bool {
    let Some(arrivals) = arrivals.as_mut().filter(|arrivals| arrivals.sockets > 0) else { return false };
    let began = Instant::now();
    // What comes first is the change of the pod that was bound, as a rule.
    if arrivals.wait(QUIET_MAX) {
        arrivals.wait(QUIET_MAX.saturating_sub(began.elapsed()));
    }
    true
}

/// Sockets of which it is told when something comes, once each time, whether it is read or not.
struct Arrivals {
    poll: Poll,
    events: Events,
    sockets: usize,
}

impl Arrivals {
    /// Waits until something comes, for so long at most; false if nothing came.
    fn wait(&mut self, time: Duration) -> bool {
        self.poll.poll(&mut self.events, Some(time)).is_ok() && !self.events.is_empty()
    }
}

/// The thread is told of what comes on a socket while this is there.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: RawFd,
}

impl Listening {
    /// Listens to a socket, on this thread. None if that cannot be: then nothing is gained, and nothing lost.
    pub(crate) fn to(socket: RawFd) -> Option<Self> {
        ARRIVALS.with_borrow_mut(|arrivals| {
            if arrivals.is_none() {
                let poll = Poll::new().ok()?;
                *arrivals = Some(Arrivals { poll, events: Events::with_capacity(SOCKETS), sockets: 0 });
            }
            let arrivals = arrivals.as_mut()?;
            let registry = arrivals.poll.registry();
            registry.register(&mut SourceFd(&socket), Token(0), Interest::READABLE).ok()?;
            arrivals.sockets += 1;
            Some(Listening { socket })
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        ARRIVALS.with_borrow_mut(|arrivals| {
            if let Some(arrivals) = arrivals {
                // A socket that was closed is forgotten already.
                let _ = arrivals.poll.registry().deregister(&mut SourceFd(&self.socket));
                arrivals.sockets = arrivals.sockets.saturating_sub(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    fn has_come() -> bool {
        ARRIVALS.with_borrow_mut(|arrivals| arrivals.as_mut().is_some_and(|known| known.wait(Duration::ZERO)))
    }

    #[test]
    fn what_comes_is_told_of_once_whether_it_is_read_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let mut server = TcpStream::connect(address).expect("it listens");
        let (client, _) = listener.accept().expect("it was called");
        let listening = Listening::to(client.as_raw_fd()).expect("a socket can be listened to");
        assert!(!has_come());
        for _ in 0..2 {
            server.write_all(b"{}\n").expect("the connection stands");
            assert!(has_come(), "something came");
            assert!(!has_come(), "it was told of");
        }
        server.write_all(b"{}\n").expect("the connection stands");
        end_rest();
        assert!(!has_come(), "what came before the thread went to work it sees anyway");
        drop(listening);
        server.write_all(b"{}\n").expect("the connection stands");
        assert!(!has_come(), "nobody listens any more");
        assert!(!ARRIVALS.with_borrow_mut(wait_for_more), "a thread that listens to nothing does not wait");
    }
}
