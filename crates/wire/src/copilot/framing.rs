//! Frames: a head with the length of the body, an empty line, the body.
//!
//! The other side may cut its bytes anywhere. The decoder keeps incomplete heads and bodies, and the rest of the last
//! chunk. A frame above its limit is refused as soon as that is known; then the stream has no next frame, and the
//! reader closes it.

use std::fmt::Write;

/// The maximum length of a head.
pub const MAX_HEAD: usize = 4 * 1024;

/// An empty buffer larger than this is freed.
const KEPT: usize = 64 * 1024;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length";
const TYPE: &str = "content-type";

/// The reason why a stream cannot be read any further. It has to be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    #[error(
        "a frame's head has no end within {MAX_HEAD} bytes: begin each frame with Content-Length and an empty line"
    )]
    LongHead,
    #[error("a frame's head is not valid UTF-8")]
    HeadIsNoText,
    /// An HTTP request has such lines: a web page can send one to any local port.
    #[error("a frame's head has a line other than Content-Length and Content-Type: this is not an HTTP server")]
    UnknownHeader,
    #[error("a frame's head needs exactly one Content-Length")]
    NoLength,
    #[error("{0:?} is not a Content-Length: it must be a number of bytes")]
    BadLength(String),
    #[error("a frame of {length} bytes is too large: the limit is {limit}")]
    LongBody { length: usize, limit: usize },
    #[error("a frame's body is not valid UTF-8")]
    BodyIsNoText,
}

/// Splits a stream into frames.
#[derive(Debug)]
pub struct Decoder {
    max_body: usize,
    buffer: Vec<u8>,
    /// Bytes before this were returned already.
    start: usize,
    /// No head ends before this position.
    searched: usize,
    /// The length of the next body, once its head was read.
    body: Option<usize>,
    failed: Option<FramingError>,
}

impl Decoder {
    /// Creates a decoder for bodies of at most `max_body` bytes.
    pub fn new(max_body: usize) -> Self {
        Self { max_body, buffer: Vec::new(), start: 0, searched: 0, body: None, failed: None }
    }

    /// Changes the largest body that is accepted, from the next head on.
    pub fn set_max_body(&mut self, max_body: usize) {
        self.max_body = max_body;
    }

    /// Adds received bytes. The caller takes the frames out before it adds more: nothing else bounds the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The body of the next complete frame. After an error there is no other.
    pub fn next_frame(&mut self) -> Result<Option<String>, FramingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let next = self.cut();
        if let Err(error) = &next {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
        }
        next
    }

    /// True if the stream can end here without cutting a frame.
    pub fn is_at_rest(&self) -> bool {
        self.failed.is_none() && self.body.is_none() && self.start == self.buffer.len()
    }

    fn cut(&mut self) -> Result<Option<String>, FramingError> {
        let length = match self.body {
            Some(length) => length,
            None => match self.head()? {
                Some(length) => *self.body.insert(length),
                None => return Ok(None),
            },
        };
        let Some(bytes) = self.buffer.get(self.start..self.start + length) else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(|_| FramingError::BodyIsNoText)?.to_owned();
        self.skip(length);
        self.body = None;
        Ok(Some(text))
    }

    /// Reads the head, if it is complete, and returns the length of the body.
    fn head(&mut self) -> Result<Option<usize>, FramingError> {
        let from = self.searched.max(self.start);
        let end = self.buffer[from..].windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD);
        let Some(end) = end.map(|end| from + end) else {
            if self.buffer.len() - self.start >= MAX_HEAD {
                return Err(FramingError::LongHead);
            }
            // The last bytes may be a prefix of the head's end.
            self.searched = self.buffer.len().saturating_sub(END_OF_HEAD.len() - 1).max(self.start);
            return Ok(None);
        };
        if end - self.start > MAX_HEAD {
            return Err(FramingError::LongHead);
        }
        let length = length_in(&self.buffer[self.start..end])?;
        if length > self.max_body {
            return Err(FramingError::LongBody { length, limit: self.max_body });
        }
        self.skip(end + END_OF_HEAD.len() - self.start);
        Ok(Some(length))
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.searched = self.start;
        if self.start == self.buffer.len() {
            self.buffer.clear();
            (self.start, self.searched) = (0, 0);
            if self.buffer.capacity() > KEPT {
                self.buffer = Vec::new();
            }
        }
    }
}

/// The length in a head. Any header but `Content-Length` and `Content-Type` is refused.
fn length_in(head: &[u8]) -> Result<usize, FramingError> {
    let head = std::str::from_utf8(head).map_err(|_| FramingError::HeadIsNoText)?;
    let mut lengths = Vec::new();
    for line in head.split("\r\n") {
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case(LENGTH) => lengths.push(value.trim_matches([' ', '\t'])),
            Some((name, _)) if name.eq_ignore_ascii_case(TYPE) => {}
            Some(_) | None => return Err(FramingError::UnknownHeader),
        }
    }
    match lengths[..] {
        [length] if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map_err(|_| FramingError::BadLength(length.to_owned()))
        }
        [length] => Err(FramingError::BadLength(length.to_owned())),
        [] | [_, _, ..] => Err(FramingError::NoLength),
    }
}

/// A frame, head and body in one buffer: two writes would cost the other side a round trip.
pub fn frame(body: &str) -> Vec<u8> {
    let mut frame = String::with_capacity(body.len() + 32);
    // Writing to a string cannot fail.
    let _ = write!(frame, "Content-Length: {}\r\n\r\n{body}", body.len());
    frame.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(decoder: &mut Decoder) -> Result<Vec<String>, FramingError> {
        std::iter::from_fn(|| decoder.next_frame().transpose()).collect()
    }

    fn error(bytes: &[u8]) -> FramingError {
        let mut decoder = Decoder::new(10);
        decoder.push(bytes);
        let error = all(&mut decoder).unwrap_err();
        // The stream does not recover.
        decoder.push(&frame("{}"));
        assert_eq!(decoder.next_frame(), Err(error.clone()));
        assert!(!decoder.is_at_rest());
        error
    }

    #[test]
    fn frames_are_found_wherever_the_stream_is_cut() {
        let bodies = ["{}", "", "naïve 🌲", "{\"a\":\"\\r\\n\\r\\n\"}"];
        let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
        for size in 1..=stream.len() {
            let mut decoder = Decoder::new(100);
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                decoder.push(piece);
                found.extend(all(&mut decoder).unwrap());
            }
            assert_eq!(found, bodies, "in pieces of {size}");
            assert!(decoder.is_at_rest());
        }
    }

    #[test]
    fn a_head_may_have_a_content_type_and_names_are_read_in_any_case() {
        let mut decoder = Decoder::new(10);
        decoder.push(b"Content-Type: application/json; charset=utf-8\r\ncontent-LENGTH:2 \r\n\r\n{}");
        assert_eq!(all(&mut decoder), Ok(vec!["{}".to_owned()]));
    }

    #[test]
    fn a_head_with_any_other_header_ends_the_stream() {
        let heads = [
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:4141\r\nContent-Type: text/plain\r\nContent-Length: 2",
            "GET /Content-Length: 2",
            "Content-Length: 2\r\nOrigin: http://evil.example",
            "Content-Length: 2\r\nodd",
            "Content-Length: 2\nHost: x",
            " Content-Length: 2",
            "Content-Length : 2",
            "\r\nContent-Length: 2",
        ];
        for head in heads {
            let found = error(format!("{head}\r\n\r\n{{}}").as_bytes());
            let refused = matches!(found, FramingError::UnknownHeader | FramingError::BadLength(_));
            assert!(refused, "{head:?}: {found:?}");
        }
    }

    #[test]
    fn the_largest_body_may_change_between_frames() {
        let mut decoder = Decoder::new(2);
        decoder.push(&[frame("{}"), frame("[1,2]")].concat());
        assert_eq!(decoder.next_frame(), Ok(Some("{}".to_owned())));
        decoder.set_max_body(5);
        assert_eq!(decoder.next_frame(), Ok(Some("[1,2]".to_owned())));
    }

    #[test]
    fn what_is_longer_than_its_bound_is_refused_before_it_came() {
        assert_eq!(error(b"Content-Length: 11\r\n\r\n"), FramingError::LongBody { length: 11, limit: 10 });
        assert_eq!(error(&[b'x'; MAX_HEAD]), FramingError::LongHead);
        let long = format!("Content-Type: {}\r\nContent-Length: 2\r\n\r\n{{}}", "x".repeat(MAX_HEAD));
        assert_eq!(error(long.as_bytes()), FramingError::LongHead);
    }

    #[test]
    fn a_head_must_say_one_length_that_is_a_number() {
        assert_eq!(error(b"Content-Type: x\r\n\r\n"), FramingError::NoLength);
        assert_eq!(error(b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), FramingError::NoLength);
        for bad in ["-1", "+1", "1e3", "", "99999999999999999999999999"] {
            let head = format!("Content-Length: {bad}\r\n\r\n");
            assert_eq!(error(head.as_bytes()), FramingError::BadLength(bad.to_owned()), "{bad}");
        }
        assert_eq!(error(b"\xff\r\n\r\n"), FramingError::HeadIsNoText);
        assert_eq!(error(b"Content-Length: 1\r\n\r\n\xff"), FramingError::BodyIsNoText);
    }

    #[test]
    fn a_large_buffer_is_given_back_once_it_is_empty() {
        let mut decoder = Decoder::new(1 << 20);
        decoder.push(&frame(&"x".repeat(1 << 20)));
        assert_eq!(all(&mut decoder).unwrap().len(), 1);
        assert!(decoder.buffer.capacity() <= KEPT);
    }
}
