//! The messages between a shim and a host.
//!
//! A frame is its length (4 bytes, big endian, of what follows), its kind (1 byte) and its body. Numbers in a body have
//! 8 bytes, big endian; extensible data is JSON. Unknown kinds and unknown fields are skipped: additions of this sort
//! need no new version.
//!
//! ```text
//! shim  G {protocol, version}          at once: the newest version that it speaks
//! host  H {version, from}              the version that is spoken from now on; from which number on lines are wanted
//! shim  W {agent, taken, oldest, next, lineBytes}
//! shim  L number bytes                 a line of the agent, without its end
//! shim  T number                       all writes up to this one are taken: none of them is to be written again
//! shim  E number {reason, exit, …}     the agent has ended; always the last number
//! shim  C {code, message}              why the connection is closed
//! host  w number bytes                 a line for the agent; one that was taken is skipped
//! host  a number                       all lines up to this one may be forgotten
//! host  e {graceMs}                    end the agent and the shim
//! ```

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use grove_work::Exit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::ShimError;

/// The version that this program speaks. A host still speaks all older ones: a shim may have been started before an
/// upgrade.
pub(crate) const VERSION: u32 = 1;
pub(crate) const PROTOCOL: &str = "grove-shim";

/// The bytes of a frame before its body, and before its body's number.
pub(crate) const HEAD_BYTES: usize = 5;
const NUMBER_BYTES: usize = 8;
/// The largest frame without a line.
pub const SMALL_BYTES: usize = 64 << 10;
/// The bytes that a shim reads at once.
const PIECE_BYTES: usize = 32 << 10;
/// The bytes that a host reads at once. Most lines are short, and they are copied.
const SOCKET_PIECE: usize = 8 << 10;
/// The largest buffer that is kept for reuse.
const KEPT_BYTES: usize = 1 << 20;

/// The shim's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    pub protocol: String,
    pub version: u32,
}

/// The host's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub from: u64,
}

/// The state of the shim when a host connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The agent's process id, if it could be started.
    #[serde(default)]
    pub agent: Option<u32>,
    /// The newest write that was taken; 0 if none was.
    pub taken: u64,
    /// The oldest line that is still stored, or the next one.
    pub oldest: u64,
    /// The number of the next line.
    pub next: u64,
    pub line_bytes: usize,
}

/// The end of an agent, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEnd {
    pub reason: EndReason,
    /// The exit of its process; `None` if it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Further information for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// By itself, on purpose or by a crash.
    Exited,
    NotStarted,
    /// It sent a line that was longer than the limit.
    LineTooLong,
    /// It closed its stdout and ran on: nothing more could come from it.
    StdoutClosed,
    /// A host requested it, or the shim got SIGTERM.
    #[serde(rename = "told")]
    Requested,
    /// No host came for too long.
    Abandoned,
    /// A reason of a newer shim.
    #[serde(other)]
    Other,
}

/// The reason why a shim closes a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionClosed {
    pub code: CloseCode,
    pub message: String,
    /// The bytes that wait for the agent's stdin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseCode {
    TakenOver,
    StdinFull,
    Version,
    Nonsense,
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromShim {
    Greeting(Greeting),
    Welcome(Welcome),
    Line { number: u64, line: Bytes },
    Taken(u64),
    Ended { number: u64, end: AgentEnd },
    ConnectionClosed(ConnectionClosed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    Hello(Hello),
    Write { number: u64, line: Bytes },
    Acknowledge(u64),
    End { grace: Duration },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndBody {
    grace_ms: u64,
}

impl FromShim {
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            FromShim::Greeting(greeting) => put_json(out, b'G', None, greeting),
            FromShim::Welcome(welcome) => put_json(out, b'W', None, welcome),
            FromShim::Line { number, line } => put_line(out, *number, line),
            FromShim::Taken(number) => put(out, b'T', Some(*number), &[]),
            FromShim::Ended { number, end } => put_json(out, b'E', Some(*number), end),
            FromShim::ConnectionClosed(closed) => put_json(out, b'C', None, closed),
        }
    }

    /// `None` for an unknown kind.
    pub fn decode(kind: u8, mut body: Bytes) -> Result<Option<Self>, ShimError> {
        Ok(Some(match kind {
            b'G' => FromShim::Greeting(json(&body)?),
            b'W' => FromShim::Welcome(json(&body)?),
            b'L' => FromShim::Line { number: number(&mut body)?, line: body },
            b'T' => FromShim::Taken(number(&mut body)?),
            b'E' => FromShim::Ended { number: number(&mut body)?, end: json(&body)? },
            b'C' => FromShim::ConnectionClosed(json(&body)?),
            _ => return Ok(None),
        }))
    }
}

impl FromHost {
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            FromHost::Hello(hello) => put_json(out, b'H', None, hello),
            FromHost::Write { number, line } => put_write(out, *number, line),
            FromHost::Acknowledge(number) => put(out, b'a', Some(*number), &[]),
            FromHost::End { grace } => {
                let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                put_json(out, b'e', None, &EndBody { grace_ms });
            }
        }
    }

    /// `None` for an unknown kind.
    pub fn decode(kind: u8, mut body: Bytes) -> Result<Option<Self>, ShimError> {
        Ok(Some(match kind {
            b'H' => FromHost::Hello(json(&body)?),
            b'w' => FromHost::Write { number: number(&mut body)?, line: body },
            b'a' => FromHost::Acknowledge(number(&mut body)?),
            b'e' => FromHost::End { grace: Duration::from_millis(json::<EndBody>(&body)?.grace_ms) },
            _ => return Ok(None),
        }))
    }
}

/// A line of the agent. The spool holds the same bytes.
pub(crate) fn put_line(out: &mut BytesMut, number: u64, line: &[u8]) {
    put(out, b'L', Some(number), line);
}

pub(crate) fn put_write(out: &mut BytesMut, number: u64, line: &[u8]) {
    put(out, b'w', Some(number), line);
}

/// The largest frame with a line of this length.
pub(crate) fn frame_limit(line_bytes: usize) -> usize {
    line_bytes.saturating_add(NUMBER_BYTES + 1).max(SMALL_BYTES).min(u32::MAX as usize)
}

fn put(out: &mut BytesMut, kind: u8, number: Option<u64>, body: &[u8]) {
    let length = 1 + number.map_or(0, |_| NUMBER_BYTES) + body.len();
    out.reserve(4 + length);
    // Nothing longer is ever written: lines are limited far below.
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    out.put_u8(kind);
    if let Some(number) = number {
        out.put_u64(number);
    }
    out.put_slice(body);
}

fn put_json(out: &mut BytesMut, kind: u8, number: Option<u64>, body: &impl Serialize) {
    // These types always have a JSON form.
    put(out, kind, number, &serde_json::to_vec(body).unwrap_or_default());
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ShimError> {
    serde_json::from_slice(body).map_err(|error| ShimError::Nonsense(error.to_string()))
}

fn number(body: &mut Bytes) -> Result<u64, ShimError> {
    body.try_get_u64().map_err(|_| ShimError::Nonsense("a number is missing".to_owned()))
}

/// Frames as they arrive, in arbitrary pieces.
#[derive(Debug)]
pub struct FrameBuffer {
    pub(crate) buffer: BytesMut,
    limit: usize,
}

impl FrameBuffer {
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Makes room for the next piece.
    pub(crate) fn make_room(&mut self) {
        self.buffer.reserve(PIECE_BYTES);
    }

    /// Reads what has arrived on a connection. Returns its length; 0 is the end.
    ///
    /// A read that does not fill its piece has taken everything, so tokio is told to wait for more before the next one.
    /// Without that, every other read would find nothing.
    pub(crate) fn read_from(&mut self, stream: &UnixStream) -> io::Result<usize> {
        let mut piece = [0; SOCKET_PIECE];
        let mut length = 0;
        let read = stream.try_io(Interest::READABLE, || {
            length = rustix::io::read(stream, &mut piece)?;
            let took_everything = length > 0 && length < piece.len();
            if took_everything { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match read {
            Err(error) if length == 0 || error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.push(&piece[..length]);
        Ok(length)
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next complete frame: its kind and its body.
    pub fn next_frame(&mut self) -> Result<Option<(u8, Bytes)>, ShimError> {
        let Some(length) = length(&self.buffer) else { return Ok(None) };
        if length == 0 || length > self.limit {
            return Err(ShimError::Nonsense(format!("a frame of {length} bytes, longer than {}", self.limit)));
        }
        let whole = 4 + length;
        if self.buffer.len() < whole {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(whole).freeze();
        if whole > KEPT_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        frame.advance(4);
        let kind = frame.get_u8();
        Ok(Some((kind, frame)))
    }
}

/// The length that a frame declares.
pub(crate) fn length(frame: &[u8]) -> Option<usize> {
    frame.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(frames: &mut FrameBuffer) -> Vec<FromShim> {
        let mut decoded = Vec::new();
        while let Some((kind, body)) = frames.next_frame().unwrap() {
            decoded.extend(FromShim::decode(kind, body).unwrap());
        }
        decoded
    }

    #[test]
    fn frames_arrive_whole_in_whatever_pieces() {
        let exit = Exit { code: Some(1), signal: None };
        let end = AgentEnd { reason: EndReason::Exited, exit: Some(exit), message: None };
        let messages = vec![
            FromShim::Greeting(Greeting { protocol: PROTOCOL.to_owned(), version: VERSION }),
            FromShim::Welcome(Welcome { agent: Some(7), taken: 3, oldest: 1, next: 9, line_bytes: 100 }),
            FromShim::Line { number: 1, line: Bytes::from_static(b"{}") },
            FromShim::Line { number: 2, line: Bytes::new() },
            FromShim::Taken(u64::MAX),
            FromShim::Ended { number: 3, end },
            FromShim::ConnectionClosed(ConnectionClosed {
                code: CloseCode::TakenOver,
                message: "bye".to_owned(),
                waiting: None,
            }),
        ];
        let mut bytes = BytesMut::new();
        messages.iter().for_each(|frame| frame.encode(&mut bytes));
        for size in [1, 2, 7, bytes.len()] {
            let mut frames = FrameBuffer::new(SMALL_BYTES);
            let mut decoded = Vec::new();
            for piece in bytes.chunks(size) {
                frames.buffer.extend_from_slice(piece);
                decoded.append(&mut all(&mut frames));
            }
            assert_eq!(decoded, messages);
        }
    }

    #[test]
    fn a_host_is_understood() {
        let messages = [
            FromHost::Hello(Hello { version: 1, from: 5 }),
            FromHost::Write { number: 4, line: Bytes::from_static(b"x") },
            FromHost::Acknowledge(9),
            FromHost::End { grace: Duration::from_millis(1_500) },
        ];
        for frame in messages {
            let mut frames = FrameBuffer::new(SMALL_BYTES);
            frame.encode(&mut frames.buffer);
            let (kind, body) = frames.next_frame().unwrap().unwrap();
            assert_eq!(FromHost::decode(kind, body).unwrap(), Some(frame));
        }
    }

    #[test]
    fn what_a_newer_side_adds_is_skipped() {
        let mut frames = FrameBuffer::new(SMALL_BYTES);
        put(&mut frames.buffer, b'?', Some(1), b"anything");
        put(&mut frames.buffer, b'E', Some(2), br#"{"reason":"something-new","more":[1]}"#);
        let end = AgentEnd { reason: EndReason::Other, exit: None, message: None };
        assert_eq!(all(&mut frames), [FromShim::Ended { number: 2, end }]);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut frames = FrameBuffer::new(100);
        frames.buffer.extend_from_slice(&[0xff; 4]);
        assert!(frames.next_frame().is_err(), "too long");
        let mut frames = FrameBuffer::new(100);
        frames.buffer.extend_from_slice(&[0; 4]);
        assert!(frames.next_frame().is_err(), "no kind");
        assert!(FromShim::decode(b'L', Bytes::from_static(b"short")).is_err());
        assert!(FromHost::decode(b'H', Bytes::from_static(b"{")).is_err());
    }
}
