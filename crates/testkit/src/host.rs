//! Hosts in this process, on connections that are pairs of pipes.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::Timestamp;
use grove_host::{Clock, Host, Spawn, Task, Token};
use grove_server::{AcceptedStream, AccessPolicy, HostServer, Listener, PeerAddress};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The address that hosts on pipes believe to have, unless a test says otherwise.
pub const ADDRESS: &str = "127.0.0.1:7000";

/// The token of hosts on pipes.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The bytes that fit into a pipe, unless a test says otherwise.
pub const PIPE_BYTES: usize = 64 << 10;

/// The tasks of a host, which can be ended all at once, as by `kill -9`.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<Vec<AbortHandle>>>);

impl Tasks {
    /// Ends all tasks at their next wait.
    pub fn kill(&self) {
        self.0.lock().unwrap().iter().for_each(AbortHandle::abort);
    }
}

impl Spawn for Tasks {
    fn spawn(&self, task: Task) {
        self.0.lock().unwrap().push(tokio::spawn(task).abort_handle());
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        // Work that has begun ends by itself, as in a process that is killed in a system call.
        self.0.lock().unwrap().push(tokio::task::spawn_blocking(work).abort_handle());
    }
}

/// A listener whose connections come from a [`Dialer`].
#[derive(Debug)]
pub struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);

/// Connects to a host on pipes.
#[derive(Clone, Debug)]
pub struct Dialer(mpsc::UnboundedSender<DuplexStream>);

/// A listener, and the dialer that connects to it.
pub fn pipes() -> (Dialer, Pipes) {
    let (dial, pipes) = mpsc::unbounded_channel();
    (Dialer(dial), Pipes(pipes))
}

#[async_trait]
impl Listener for Pipes {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        match self.0.recv().await {
            Some(stream) => Ok(AcceptedStream { stream: Box::new(stream), peer: PeerAddress::InProcess }),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Dialer {
    /// The near end of a new connection; an error if the host accepts none any more. `buffer` is the capacity of the pipe.
    pub fn dial(&self, buffer: usize) -> io::Result<DuplexStream> {
        let (near, far) = tokio::io::duplex(buffer);
        self.0.send(far).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(near)
    }
}

/// Serves a host on pipes, as if on [`ADDRESS`], with [`TOKEN`].
pub fn serve(host: &Host) -> (Dialer, HostServer) {
    serve_at(host, ADDRESS.parse().unwrap())
}

/// Serves a host on pipes, as if on this address, with [`TOKEN`].
pub fn serve_at(host: &Host, address: SocketAddr) -> (Dialer, HostServer) {
    let (dialer, pipes) = pipes();
    let access = AccessPolicy::loopback(Token::parse(TOKEN).unwrap(), address);
    (dialer, grove_server::serve(host.clone(), access, Box::new(pipes)))
}

/// A clock that stands still while tokio's is paused.
#[derive(Debug)]
pub struct PausedClock {
    start: tokio::time::Instant,
    at: Timestamp,
}

impl PausedClock {
    /// A clock that shows `at` now.
    pub fn new(at: Timestamp) -> Self {
        Self { start: tokio::time::Instant::now(), at }
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.at.0 + u64::try_from(self.start.elapsed().as_millis()).unwrap())
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(tokio::time::sleep(time))
    }
}
