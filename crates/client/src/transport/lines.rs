//! Messages as lines of a byte stream, for `grove serve --stdio` at the other end.
//!
//! A line is a message. The other features of a WebSocket are messages, too: `ping` asks for a sign of life, and the
//! notification `x-grove/closed` is the last line, with the close code.

use std::io;

use futures_util::stream::BoxStream;
use futures_util::{Sink, StreamExt};
use grove_checks::Check;
use grove_wire::x_grove::line_control::{is_liveness_reply, liveness_probe, parse_close_line};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError};

/// The maximum length of a line that is inspected here.
const SMALL: usize = 1 << 10;
/// The number of lines that may precede the first message, such as the greeting of a login.
const GREETING: usize = 100;

/// Writes messages. Closing it ends the stream.
pub(super) fn sink(
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<Message, Error = SocketError> + Send + 'static {
    futures_util::sink::unfold(output, |mut output, message: Message| async move {
        if write(&mut output, message).await.is_err() {
            // The other side no longer reads. The reader of the stream reports the reason.
            std::future::pending::<()>().await;
        }
        Ok(output)
    })
}

async fn write(output: &mut (impl AsyncWrite + Unpin), message: Message) -> io::Result<()> {
    let mut line = match message {
        Message::Text(text) => text.as_str().to_owned(),
        Message::Ping(_) => liveness_probe(),
        Message::Close(_) => return output.shutdown().await,
        Message::Binary(_) | Message::Pong(_) | Message::Frame(_) => return Ok(()),
    };
    line.push('\n');
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// Reads messages of at most `most` bytes. `ended` returns the error for the end of the stream.
pub(super) fn stream<I, F>(input: I, most: usize, ended: F) -> BoxStream<'static, Result<Message, SocketError>>
where
    I: AsyncBufRead + Send + Unpin + 'static,
    F: Future<Output = io::Error> + Send + Unpin + 'static,
{
    let reader = LineReader { input, most, ended, greeted: 0, has_begun: false, over: false };
    futures_util::stream::unfold(reader, |mut reader| async move {
        if reader.over {
            return None;
        }
        let message = reader.next().await;
        reader.over = message.is_err();
        Some((message, reader))
    })
    .boxed()
}

struct LineReader<I, F> {
    input: I,
    most: usize,
    ended: F,
    /// The number of lines before the first message.
    greeted: usize,
    has_begun: bool,
    over: bool,
}

impl<I: AsyncBufRead + Unpin, F: Future<Output = io::Error> + Unpin> LineReader<I, F> {
    async fn next(&mut self) -> Result<Message, SocketError> {
        loop {
            let Some(line) = read_line(&mut self.input, self.most).await? else {
                return Err(SocketError::Io((&mut self.ended).await));
            };
            let text = String::from_utf8(line).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let text = text.trim_end_matches('\r');
            let is_message = text.starts_with(['{', '[']);
            if text.is_empty() || (!self.has_begun && !is_message && self.greeted < GREETING) {
                self.greeted += 1;
                continue;
            }
            self.has_begun = true;
            if text.len() <= SMALL {
                if is_liveness_reply(text) {
                    return Ok(Message::Pong(Bytes::new()));
                }
                if let Some(end) = parse_close_line(text) {
                    let reason = end.reason.into();
                    return Ok(Message::Close(Some(CloseFrame { code: end.code.into(), reason })));
                }
            }
            return Ok(Message::text(text));
        }
    }
}

/// The next line without its line end, or `None` at the end of the stream.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), most: usize) -> Result<Option<Vec<u8>>, SocketError> {
    let mut line = Vec::new();
    loop {
        let ready = input.fill_buf().await?;
        if ready.is_empty() {
            // A line without a line end was cut off.
            return Ok(None);
        }
        let end = ready.iter().position(|byte| *byte == b'\n');
        let taken = &ready[..end.unwrap_or(ready.len())];
        if Check::LineLength.is_enforced() && line.len() + taken.len() > most {
            return Err(CapacityError::MessageTooLong { size: line.len() + taken.len(), max_size: most }.into());
        }
        line.extend_from_slice(taken);
        let length = taken.len() + usize::from(end.is_some());
        input.consume(length);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &'static str, most: usize) -> Vec<Result<Message, String>> {
        let ended = Box::pin(async { io::Error::other("it ended") });
        let stream = stream(input.as_bytes(), most, ended);
        stream.map(|message| message.map_err(|error| error.to_string())).collect().await
    }

    #[tokio::test]
    async fn a_line_is_a_message_and_a_greeting_before_the_first_is_none() {
        let read = read("Welcome!\n\n{\"a\":1}\r\n[2]\nWelcome!\n{\"cut", 99).await;
        let text = |text: &str| Ok(Message::text(text));
        let ended = Err("IO error: it ended".to_owned());
        assert_eq!(
            read,
            [text("{\"a\":1}"), text("[2]"), text("Welcome!"), ended],
            "and a truncated line is no message"
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_connection() {
        let read = read("{\"a\":1}\n{\"a\":12}\n{}\n", 7).await;
        assert_eq!(read.len(), 2, "{read:?}");
        assert!(read[1].as_ref().unwrap_err().contains("too long"), "{read:?}");
    }

    #[tokio::test]
    async fn a_sign_of_life_and_the_end_are_what_they_are_on_a_web_socket() {
        let read = read(
            "{\"jsonrpc\":\"2.0\",\"id\":\"sign-of-life\",\"result\":null}\n\
             {\"jsonrpc\":\"2.0\",\"method\":\"x-grove/closed\",\"params\":{\"code\":4001,\"reason\":\"taken\"}}\n",
            999,
        )
        .await;
        assert_eq!(read[0], Ok(Message::Pong(Bytes::new())));
        let Ok(Message::Close(Some(end))) = &read[1] else { panic!("{read:?}") };
        assert_eq!((u16::from(end.code), end.reason.as_str()), (4001, "taken"));
    }
}
