//! The messages of the editor: lines of bounded length, or messages that are separate already.

use std::io;

use grove_wire::jsonrpc::{self, Frame, Id, RpcMessage};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::mpsc;

/// The beginning of a dropped line that is kept, to find the id of its request.
const HEAD_BYTES: usize = 512;

/// The source of the editor's messages. A read that is dropped loses nothing.
pub(crate) trait EditorInput: Send {
    /// The next message that is not empty; `None` at the end.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<InputLine>>> + Send;
}

impl EditorInput for mpsc::Receiver<String> {
    async fn next(&mut self) -> io::Result<Option<InputLine>> {
        Ok(self.recv().await.map(InputLine::Text))
    }
}

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    Text(String),
    /// The line was longer than the limit, and is dropped except for its beginning.
    TooLong {
        head: String,
    },
    NotUtf8,
}

/// Reads lines. A read that is dropped loses nothing.
#[derive(Debug)]
pub(crate) struct BoundedLines<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin + Send> EditorInput for BoundedLines<R> {
    async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let piece = self.input.fill_buf().await?;
            let is_end = piece.is_empty();
            let (taken, is_whole) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (piece.len(), is_end),
            };
            let text = piece.get(..taken).unwrap_or_default();
            // The line end does not count.
            if !self.is_too_long && self.line.len() + text.len() > self.limit + 2 {
                self.is_too_long = true;
                self.line.extend_from_slice(text.get(..HEAD_BYTES).unwrap_or(text));
                self.line.truncate(HEAD_BYTES);
                self.line.shrink_to_fit();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(text);
            }
            self.input.consume(taken);
            if is_whole && let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if is_end {
                return Ok(None);
            }
        }
    }
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, line: Vec::new(), is_too_long: false }
    }

    fn take(&mut self) -> Option<InputLine> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Some(too_long(&line));
        }
        line.truncate(line.trim_ascii_end().len());
        if line.is_empty() {
            return None;
        }
        Some(match String::from_utf8(line) {
            Ok(text) if text.len() > self.limit => too_long(text.as_bytes()),
            Ok(text) => InputLine::Text(text),
            Err(_) => InputLine::NotUtf8,
        })
    }
}

fn too_long(line: &[u8]) -> InputLine {
    let head = line.get(..HEAD_BYTES).unwrap_or(line);
    InputLine::TooLong { head: String::from_utf8_lossy(head).into_owned() }
}

/// The id of a request by the beginning of its message. Editors write it before the params.
pub(crate) fn id_in_head(head: &str) -> Option<Id> {
    let before = head.split("\"params\"").next()?;
    let value = before.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?;
    let id = serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok()?;
    let message = json!({"jsonrpc": "2.0", "id": id, "method": ""}).to_string();
    match jsonrpc::parse(&message) {
        Ok(Frame::Single(Ok(RpcMessage::Request(request)))) => Some(request.id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<InputLine> {
        // A small buffer cuts the lines into pieces.
        let mut reader = BoundedLines::new(tokio::io::BufReader::with_capacity(2, input), limit);
        let mut lines = Vec::new();
        while let Ok(Some(line)) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let text = |text: &str| InputLine::Text(text.to_owned());
        let too_long = |head: &str| InputLine::TooLong { head: head.to_owned() };
        let read = lines(b"abc\r\n\n\r\nabcdefghij\nxyz", 3).await;
        assert_eq!(read, [text("abc"), too_long("abcdef"), text("xyz")]);
        assert_eq!(lines(b"\xff\nab\n", 3).await, [InputLine::NotUtf8, text("ab")]);
        assert_eq!(lines(b"abcd\n", 3).await, [too_long("abcd")]);
    }

    #[test]
    fn the_id_of_a_dropped_request_is_found_in_its_beginning() {
        let id = |head: &str| id_in_head(head).map(|id| id.as_json().to_owned());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"id":8"#).as_deref(), Some("7"));
        assert_eq!(id(r#"{"id" : "a b", "jsonrpc":"2.0","params":"#).as_deref(), Some(r#""a b""#));
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"x","params":{"id":8}"#), None);
        for head in [r#"{"id":"#, r#"{"id":{"a":1},"#, r#"{"id":"cut"#, ""] {
            assert_eq!(id(head), None, "{head}");
        }
    }
}
