//! A connected host, from the shim's side.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::ShimError;
use crate::spool::{Spool, SpoolPosition};
use crate::wire::{
    CloseCode, ConnectionClosed, FrameBuffer, FromHost, FromShim, Greeting, Hello, PROTOCOL, SMALL_BYTES, VERSION,
};

/// The time that a host may take to send its hello, and to receive the reason why its connection ends.
pub const GREETING: Duration = Duration::from_secs(10);
/// The bytes that are buffered for sending.
pub const OUT_BYTES: usize = 256 << 10;
/// The largest buffer that is kept for reuse.
const KEPT_BYTES: usize = 1 << 20;
/// The bytes that are read at once, so that other work does not wait long.
const IN_BYTES: usize = 256 << 10;

/// A host that has sent its hello, and is not connected yet.
#[derive(Debug)]
pub(super) struct PendingHost {
    stream: UnixStream,
    frames: FrameBuffer,
    pub(super) hello: Hello,
}

/// The connected host.
#[derive(Debug)]
pub(super) struct HostConnection {
    stream: UnixStream,
    frames: FrameBuffer,
    out: BytesMut,
    /// The lines before it are buffered or sent.
    position: SpoolPosition,
    sent_taken: u64,
    sent_end: bool,
}

/// Performs the handshake with a connection. `None` if it sends nothing valid.
pub(super) async fn accept_host(mut stream: UnixStream) -> Option<PendingHost> {
    let greeting = async {
        let mut out = BytesMut::new();
        FromShim::Greeting(Greeting { protocol: PROTOCOL.to_owned(), version: VERSION }).encode(&mut out);
        stream.write_all(&out).await.ok()?;
        let mut frames = FrameBuffer::new(SMALL_BYTES);
        let hello = loop {
            if let Some((kind, body)) = frames.next_frame().ok()? {
                match FromHost::decode(kind, body).ok()? {
                    Some(FromHost::Hello(hello)) => break hello,
                    _ => return None,
                }
            }
            frames.make_room();
            stream.readable().await.ok()?;
            match stream.try_read_buf(&mut frames.buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        };
        if hello.version == 0 || hello.version > VERSION {
            let message = format!("version {} is not spoken here, {VERSION} is", hello.version);
            let mut out = BytesMut::new();
            FromShim::ConnectionClosed(ConnectionClosed { code: CloseCode::Version, message, waiting: None })
                .encode(&mut out);
            stream.write_all(&out).await.ok();
            return None;
        }
        Some((frames, hello))
    };
    let (frames, hello) = tokio::time::timeout(GREETING, greeting).await.ok()??;
    Some(PendingHost { stream, frames, hello })
}

impl HostConnection {
    pub(super) fn new(pending_host: PendingHost, limit: usize, position: SpoolPosition, taken: u64) -> Self {
        let PendingHost { stream, mut frames, .. } = pending_host;
        frames.set_limit(limit);
        Self { stream, frames, out: BytesMut::new(), position, sent_taken: taken, sent_end: false }
    }

    pub(super) fn say(&mut self, words: &FromShim) {
        words.encode(&mut self.out);
    }

    /// Buffers lines for sending, and last the end, if there is one.
    pub(super) fn fill(&mut self, spool: &Spool, taken: u64, end: Option<&FromShim>) -> io::Result<()> {
        if taken > self.sent_taken && self.out.len() < OUT_BYTES {
            self.say(&FromShim::Taken(taken));
            self.sent_taken = taken;
        }
        spool.read(&mut self.position, &mut self.out, OUT_BYTES)?;
        if let Some(end) = end
            && !self.sent_end
            && self.position.number >= spool.next()
        {
            self.say(end);
            self.sent_end = true;
        }
        Ok(())
    }

    /// Waits until the connection is readable or, if something is to be sent, writable. Lines before `next` that are not
    /// buffered yet are to be sent, too: a fast host may have taken the whole buffer at once.
    pub(super) async fn ready(&self, next: u64) -> io::Result<()> {
        let is_done = self.out.is_empty() && self.position.number >= next;
        let interest = if is_done { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        self.stream.ready(interest).await.map(drop)
    }

    /// Sends as much as possible without waiting.
    pub(super) fn send(&mut self) -> Result<(), ShimError> {
        let mut large = false;
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out) {
                Ok(sent) => self.out.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(ShimError::broken(error)),
            }
            large |= self.out.capacity() > KEPT_BYTES;
        }
        if large {
            self.out = BytesMut::new();
        }
        Ok(())
    }

    /// Passes on the frames that arrive without waiting. Complete frames count even if the connection ends after them.
    pub(super) fn receive(&mut self, mut each: impl FnMut(FromHost) -> Result<(), ShimError>) -> Result<(), ShimError> {
        let mut received_bytes = 0;
        loop {
            while let Some((kind, body)) = self.frames.next_frame()? {
                if let Some(words) = FromHost::decode(kind, body)? {
                    each(words)?;
                }
            }
            if received_bytes > IN_BYTES {
                return Ok(());
            }
            self.frames.make_room();
            match self.stream.try_read_buf(&mut self.frames.buffer) {
                Ok(0) => return Err(ShimError::Broken),
                Ok(bytes) => received_bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(ShimError::broken(error)),
            }
        }
    }

    /// Closes the connection, and sends the reason after all buffered data: a host that does not know that another took
    /// over would come back.
    pub(super) fn close(mut self, error: &ShimError) {
        let (code, waiting) = match error {
            ShimError::Broken => return,
            ShimError::TakenOver => (CloseCode::TakenOver, None),
            ShimError::StdinFull { waiting } => (CloseCode::StdinFull, Some(*waiting)),
            ShimError::Nonsense(_) => (CloseCode::Nonsense, None),
            _ => (CloseCode::Other, None),
        };
        self.say(&FromShim::ConnectionClosed(ConnectionClosed { code, message: error.to_string(), waiting }));
        tokio::spawn(async move { tokio::time::timeout(GREETING, self.stream.write_all(&self.out)).await });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_host_that_took_everything_at_once_gets_the_rest_without_asking() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 1 << 20);
        let (stream, _host) = UnixStream::pair().unwrap();
        let pending =
            PendingHost { stream, frames: FrameBuffer::new(SMALL_BYTES), hello: Hello { version: 1, from: 1 } };
        let connection = HostConnection::new(pending, SMALL_BYTES, spool.position(1).unwrap(), 0);
        // The first wait registers the socket, which is writable from then on.
        connection.stream.writable().await.unwrap();
        assert!(connection.ready(spool.next()).now_or_never().is_none(), "there is nothing to send or to read");
        spool.push(b"a line that is not buffered yet");
        assert!(connection.ready(spool.next()).now_or_never().is_some());
    }
}
