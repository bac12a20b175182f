//! The host's side of a shim.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::folder::{SocketAddress, is_ours};
use crate::start::{self, ShimProgram};
use crate::wire::{
    AgentEnd, CloseCode, ConnectionClosed, FrameBuffer, FromHost, FromShim, Hello, PROTOCOL, SMALL_BYTES, VERSION,
    Welcome, frame_limit, put_write,
};
use crate::{ShimError, ShimOptions};

/// The time that a shim may take for the handshake.
const GREETING: Duration = Duration::from_secs(10);

/// A message from an agent, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromAgent {
    /// A line, without its end.
    Line { number: u64, line: Bytes },
    /// It has ended, and nothing of its process group is left. Nothing follows.
    Ended { number: u64, end: AgentEnd },
}

/// A connection to the shim of an agent. Dropping it leaves the agent running: another one can be attached.
#[derive(Debug)]
pub struct ShimStream {
    reader: ShimReader,
    writer: ShimWriter,
}

/// The half that reads from the agent.
#[derive(Debug)]
pub struct ShimReader {
    shared: Arc<ShimConnection>,
    frames: FrameBuffer,
    /// The number that must come next.
    next: u64,
}

/// The half that writes to the agent. Clones share it.
#[derive(Clone, Debug)]
pub struct ShimWriter {
    shared: Arc<ShimConnection>,
}

#[derive(Debug)]
struct ShimConnection {
    stream: UnixStream,
    agent: Option<u32>,
    line_bytes: usize,
    /// The newest write that the shim has taken.
    taken: AtomicU64,
    out: Mutex<OutBuffer>,
    /// The reason why the shim closed the connection, if it did: nobody receives later writes.
    closed: OnceLock<ConnectionClosed>,
}

/// Data on its way to the shim. It is kept here, so that a dropped call never leaves half a frame.
#[derive(Debug)]
struct OutBuffer {
    next: u64,
    bytes: BytesMut,
}

impl ShimStream {
    /// Starts a shim with its agent, and attaches to it. The shim outlives this process.
    pub async fn start(program: &ShimProgram, options: &ShimOptions) -> Result<Self, ShimError> {
        let mut stream = start::start(program, options).await?;
        if stream.writer.shared.agent.is_some() {
            return Ok(stream);
        }
        // The agent never ran: the shim is told that we know, and ends.
        match stream.read().await? {
            FromAgent::Ended { number, end } => {
                stream.acknowledge(number).await.ok();
                Err(ShimError::NotStarted(end.message.unwrap_or_default()))
            }
            FromAgent::Line { .. } => Err(ShimError::Nonsense("a line of an agent that never ran".to_owned())),
        }
    }

    /// Attaches to the shim that runs in a folder. It gives the agent's lines from this number on; a host that was
    /// attached before is disconnected.
    pub async fn attach(folder: &Path, from: u64) -> Result<Self, ShimError> {
        let stream = connect(folder).await?;
        timeout(GREETING, introduce(stream, from.max(1)))
            .await
            .map_err(|_| ShimError::ConnectionClosed("it does not answer; its process may be stopped".to_owned()))?
    }

    /// The process id of the shim that runs in a folder, if one runs. It is not disturbed.
    pub async fn find(folder: &Path) -> Option<u32> {
        let peer = connect(folder).await.ok()?.peer_cred().ok()?;
        peer.pid().and_then(|id| u32::try_from(id).ok())
    }

    /// The process id of the agent, and of its group.
    pub fn agent(&self) -> Option<u32> {
        self.writer.shared.agent
    }

    /// The process id of the shim, if the system knows it.
    pub fn shim(&self) -> Option<u32> {
        let peer = self.writer.shared.stream.peer_cred().ok()?;
        peer.pid().and_then(|id| u32::try_from(id).ok())
    }

    /// See [`ShimWriter::taken`].
    pub fn taken(&self) -> u64 {
        self.writer.taken()
    }

    /// See [`ShimReader::read`].
    pub async fn read(&mut self) -> Result<FromAgent, ShimError> {
        self.reader.read().await
    }

    /// See [`ShimWriter::write`].
    pub async fn write(&self, line: &[u8]) -> Result<u64, ShimError> {
        self.writer.write(line).await
    }

    /// See [`ShimWriter::acknowledge`].
    pub async fn acknowledge(&self, number: u64) -> Result<(), ShimError> {
        self.writer.acknowledge(number).await
    }

    /// Ends the agent, and waits until nothing of its group is left and the shim knows that we know. Its output until
    /// then is lost: to receive it, use [`ShimWriter::end`] and read on.
    pub async fn end(mut self, grace: Duration) -> Result<AgentEnd, ShimError> {
        self.writer.end(grace).await?;
        loop {
            match self.read().await? {
                FromAgent::Line { number, .. } => self.acknowledge(number).await?,
                FromAgent::Ended { number, end } => {
                    self.acknowledge(number).await.ok();
                    return Ok(end);
                }
            }
        }
    }

    pub fn split(self) -> (ShimReader, ShimWriter) {
        (self.reader, self.writer)
    }
}

async fn connect(folder: &Path) -> Result<UnixStream, ShimError> {
    let gone = || ShimError::Gone { folder: folder.to_owned() };
    let failed = |error: io::Error| match error.kind() {
        // The socket of a killed shim stays behind without a listener.
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => gone(),
        _ => ShimError::Folder { path: folder.to_owned(), error },
    };
    let address = SocketAddress::of_shim(folder).map_err(failed)?;
    let stream = UnixStream::connect(address.path()).await.map_err(failed)?;
    if is_ours(&stream) { Ok(stream) } else { Err(ShimError::OtherUser) }
}

/// Performs the handshake.
async fn introduce(stream: UnixStream, from: u64) -> Result<ShimStream, ShimError> {
    let shared = ShimConnection {
        stream,
        agent: None,
        line_bytes: 0,
        taken: AtomicU64::new(0),
        out: Mutex::new(OutBuffer::default()),
        closed: OnceLock::new(),
    };
    let mut frames = FrameBuffer::new(SMALL_BYTES);
    let greeting = match shared.hear(&mut frames).await? {
        FromShim::Greeting(greeting) if greeting.protocol == PROTOCOL => greeting,
        other => return Err(ShimError::Nonsense(format!("{other:?} instead of a greeting"))),
    };
    // An older shim is addressed in its own version.
    let version = greeting.version.min(VERSION);
    if version == 0 {
        return Err(ShimError::Version { theirs: greeting.version, ours: VERSION });
    }
    shared.say(&FromHost::Hello(Hello { version, from })).await?;
    let Welcome { agent, taken, oldest, next, line_bytes } = match shared.hear(&mut frames).await? {
        FromShim::Welcome(welcome) => welcome,
        FromShim::ConnectionClosed(ConnectionClosed { code: CloseCode::Version, .. }) => {
            return Err(ShimError::Version { theirs: greeting.version, ours: VERSION });
        }
        FromShim::ConnectionClosed(closed) => return Err(closed.into()),
        other => return Err(ShimError::Nonsense(format!("{other:?} instead of a welcome"))),
    };
    if from < oldest {
        return Err(ShimError::Forgotten { from, oldest });
    }
    // The end has a number, too, and may have been seen.
    if from > next.saturating_add(1) {
        return Err(ShimError::Nonsense(format!("the next line is {next}, and {from} was asked for")));
    }
    frames.set_limit(frame_limit(line_bytes));
    let out = Mutex::new(OutBuffer { next: taken + 1, bytes: BytesMut::new() });
    let shared = Arc::new(ShimConnection { agent, line_bytes, taken: AtomicU64::new(taken), out, ..shared });
    let reader = ShimReader { shared: Arc::clone(&shared), frames, next: from };
    Ok(ShimStream { reader, writer: ShimWriter { shared } })
}

impl ShimReader {
    /// The agent's next message. Dropping the call loses nothing.
    pub async fn read(&mut self) -> Result<FromAgent, ShimError> {
        if let Some(closed) = self.shared.closed.get() {
            return Err(closed.clone().into());
        }
        loop {
            match self.shared.hear(&mut self.frames).await? {
                FromShim::Line { number, line } => {
                    self.expect(number)?;
                    return Ok(FromAgent::Line { number, line });
                }
                FromShim::Ended { number, end } => {
                    self.expect(number)?;
                    return Ok(FromAgent::Ended { number, end });
                }
                FromShim::Taken(number) => {
                    self.shared.taken.fetch_max(number, Ordering::Relaxed);
                }
                FromShim::ConnectionClosed(closed) => {
                    return Err(self.shared.closed.get_or_init(|| closed).clone().into());
                }
                other @ (FromShim::Greeting(_) | FromShim::Welcome(_)) => {
                    return Err(ShimError::Nonsense(format!("unexpected {other:?}")));
                }
            }
        }
    }

    fn expect(&mut self, number: u64) -> Result<(), ShimError> {
        if number != self.next {
            return Err(ShimError::Nonsense(format!("line {number} instead of {}", self.next)));
        }
        self.next += 1;
        Ok(())
    }
}

impl ShimWriter {
    /// Sends the agent a line, and returns its number. It reaches the agent exactly once if the shim has
    /// [`taken`](Self::taken) it. If the connection breaks before, the next host has to write it again, and gets the
    /// same number for it. A dropped call is sent nevertheless, with the next one.
    pub async fn write(&self, line: &[u8]) -> Result<u64, ShimError> {
        if line.len() > self.shared.line_bytes {
            return Err(ShimError::LineTooLong { length: line.len(), limit: self.shared.line_bytes });
        }
        if memchr::memchr(b'\n', line).is_some() {
            return Err(ShimError::LineBreak);
        }
        let number = {
            let mut out = self.shared.out();
            let number = out.next;
            out.next += 1;
            put_write(&mut out.bytes, number, line);
            number
        };
        self.shared.flush().await?;
        Ok(number)
    }

    /// The newest write that reached the shim, as far as the reader knows. On attaching it is exact.
    pub fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// Lets the shim drop all lines up to this one: they will not be requested again. With the number of its end the
    /// shim ends.
    pub async fn acknowledge(&self, number: u64) -> Result<(), ShimError> {
        self.shared.say(&FromHost::Acknowledge(number)).await
    }

    /// Tells the shim to end the agent: its stdin closes, it has `grace`, gets SIGTERM, has it again, and is killed
    /// with all of its group. The reader gets the end.
    pub async fn end(&self, grace: Duration) -> Result<(), ShimError> {
        self.shared.say(&FromHost::End { grace }).await
    }
}

impl ShimConnection {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards complete data.
    fn out(&self) -> MutexGuard<'_, OutBuffer> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn say(&self, words: &FromHost) -> Result<(), ShimError> {
        words.encode(&mut self.out().bytes);
        self.flush().await
    }

    async fn flush(&self) -> Result<(), ShimError> {
        while !self.send()? {
            self.stream.writable().await.map_err(ShimError::broken)?;
        }
        Ok(())
    }

    /// Sends as much as possible without waiting, and returns whether that was all.
    fn send(&self) -> Result<bool, ShimError> {
        if let Some(closed) = self.closed.get() {
            return Err(closed.clone().into());
        }
        let mut out = self.out();
        while !out.bytes.is_empty() {
            match self.stream.try_write(&out.bytes) {
                Ok(sent) => out.bytes.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(ShimError::broken(error)),
            }
        }
        // A line may have been large.
        out.bytes = BytesMut::new();
        Ok(true)
    }

    /// The next message of a known kind. Dropping the call loses nothing.
    async fn hear(&self, frames: &mut FrameBuffer) -> Result<FromShim, ShimError> {
        let mut can_send = true;
        loop {
            while let Some((kind, body)) = frames.next_frame()? {
                if let Some(words) = FromShim::decode(kind, body)? {
                    return Ok(words);
                }
            }
            // Data left behind by a dropped call is sent here.
            let idle = !can_send || self.out().bytes.is_empty();
            let interest = if idle { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let ready = self.stream.ready(interest).await.map_err(ShimError::broken)?;
            if ready.is_writable() {
                // If it fails, earlier messages of the shim are still to be read. A broken connection is always
                // writable: asking again would not wait, and on a single thread never read the end.
                can_send = self.send().is_ok();
            }
            if ready.is_readable() {
                match frames.read_from(&self.stream) {
                    Ok(0) => return Err(ShimError::Broken),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(ShimError::broken(error)),
                }
            }
        }
    }
}

impl Default for OutBuffer {
    fn default() -> Self {
        Self { next: 1, bytes: BytesMut::new() }
    }
}

impl From<ConnectionClosed> for ShimError {
    fn from(closed: ConnectionClosed) -> Self {
        match closed.code {
            CloseCode::TakenOver => ShimError::TakenOver,
            CloseCode::StdinFull => ShimError::StdinFull { waiting: closed.waiting.unwrap_or_default() },
            CloseCode::Version | CloseCode::Nonsense | CloseCode::Other => ShimError::ConnectionClosed(closed.message),
        }
    }
}
