//! `grove serve --stdio` and `grove ahp-bridge`: the host's WebSocket as lines on stdin and stdout.

use std::io::{self, BufRead, Read};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use grove_client::ByteStream as Bytes;
use grove_host::Limits;
use grove_wire::x_grove::line_control::{LineCloseReason, close_line};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{Failure, command_runtime};
use crate::background::find_or_start_host;
use crate::cli::{Common, ServeArgs};
use crate::endpoint::{HostEndpoint, HostStream};
use crate::settings::Settings;

/// The size limit of a message from the host. Its largest answer is a file, which is smaller.
const FROM_HOST: usize = 256 << 20;
/// The number of lines that may wait for the host.
const LINES: usize = 16;
/// How long the host may take to close the connection.
const FAREWELL: Duration = Duration::from_secs(2);

type HostSocket = WebSocketStream<Box<dyn Bytes>>;

/// The message to the client when the host ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseNotice {
    /// A final message with the reason. Only Grove's clients expect it: it decides whether they reconnect.
    Sent,
    /// None: only the host's messages are relayed.
    Silent,
}

pub(crate) fn run(common: &Common, args: &ServeArgs, end: CloseNotice) -> Result<(), Failure> {
    let settings = Settings::load(common, args)?;
    let runtime = command_runtime()?;
    let ended = runtime.block_on(async {
        let socket = connect(&settings).await?;
        carry(socket, end).await
    });
    // Do not wait for a reader or writer that is blocked by the other program.
    runtime.shutdown_background();
    Ok(ended?)
}

async fn connect(settings: &Settings) -> Result<HostSocket> {
    let found = find_or_start_host(settings).await?;
    match connect_to(&found.endpoint).await {
        Ok(socket) => Ok(socket),
        // An idle host may exit at the moment it was found. The next one stays.
        Err(_) => connect_to(&find_or_start_host(settings).await?.endpoint).await,
    }
}

async fn connect_to(endpoint: &HostEndpoint) -> Result<HostSocket> {
    let HostStream { stream, name } = endpoint.dial().await?;
    let mut request = format!("ws://{name}/ws").into_client_request().context("the host's address is invalid")?;
    let bearer = HeaderValue::from_str(&format!("Bearer {}", endpoint.token))
        .context("the host's token has invalid characters")?;
    request.headers_mut().insert("authorization", bearer);
    let config = WebSocketConfig::default().max_message_size(Some(FROM_HOST)).max_frame_size(Some(FROM_HOST));
    let (socket, _) =
        client_async_with_config(request, stream, Some(config)).await.context("the host refused the connection")?;
    Ok(socket)
}

/// Relays messages in both directions until either side ends.
async fn carry(socket: HostSocket, end: CloseNotice) -> Result<()> {
    let (mut to_host, mut from_host) = socket.split();
    let (lines, mut arriving) = mpsc::channel(LINES);
    // A read of stdin cannot be interrupted, so it has a thread that can be left behind.
    std::thread::spawn(move || read_lines(&mut io::stdin().lock(), Limits::default().message_bytes, &lines));
    tokio::select! {
        ended = outwards(&mut arriving, &mut to_host) => ended?,
        ended = inwards(&mut from_host, end) => return ended,
    }
    // Messages in transit still arrive.
    let rest = async {
        to_host.close().await.ok();
        inwards(&mut from_host, CloseNotice::Silent).await
    };
    tokio::time::timeout(FAREWELL, rest).await.unwrap_or(Ok(()))
}

/// Relays from the client to the host, until the client ends.
async fn outwards(
    lines: &mut mpsc::Receiver<Result<Utf8Bytes>>,
    socket: &mut (impl Sink<Message, Error = SocketError> + Unpin),
) -> Result<()> {
    while let Some(line) = lines.recv().await {
        if socket.send(Message::Text(line?)).await.is_err() {
            // The other direction reports the reason.
            std::future::pending::<()>().await;
        }
    }
    Ok(())
}

/// Relays from the host to the client, until the host ends or stdout is closed.
async fn inwards(
    socket: &mut (impl Stream<Item = Result<Message, SocketError>> + Unpin),
    end: CloseNotice,
) -> Result<()> {
    let mut out = tokio::io::stdout();
    while let Some(message) = socket.next().await {
        let mut line = match message {
            Ok(Message::Text(text)) => text.as_str().to_owned(),
            Ok(Message::Close(Some(frame))) => {
                if !frame.reason.is_empty() {
                    anstream::eprintln!("grove: the host ended the connection ({}): {}", frame.code, frame.reason);
                }
                match end {
                    CloseNotice::Sent => {
                        close_line(&LineCloseReason { code: frame.code.into(), reason: frame.reason.to_string() })?
                    }
                    CloseNotice::Silent => continue,
                }
            }
            Ok(_) => continue,
            Err(SocketError::Capacity(error)) => return Err(anyhow!("the host sent too much: {error}")),
            Err(_) => break,
        };
        // A line break can only occur between JSON tokens, never inside of them.
        if line.contains(['\n', '\r']) {
            line = line.replace(['\n', '\r'], " ");
        }
        line.push('\n');
        let written = async {
            out.write_all(line.as_bytes()).await?;
            out.flush().await
        };
        match written.await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(error).context("cannot write to stdout"),
        }
    }
    Ok(())
}

/// Reads lines until the end, or until one that the host would refuse.
fn read_lines(input: &mut impl BufRead, most: usize, lines: &mpsc::Sender<Result<Utf8Bytes>>) {
    for number in 1_u64.. {
        let line = match read_line(input, most) {
            Ok(Some(line)) if line.is_empty() => continue,
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error.context(format!("line {number} of stdin"))),
        };
        let failed = line.is_err();
        // The channel is closed once the host is gone.
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

fn read_line(input: &mut impl BufRead, most: usize) -> Result<Option<Utf8Bytes>> {
    let mut line = Vec::new();
    // The line end, which may be two bytes, does not count.
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(2);
    if input.take(bound).read_until(b'\n', &mut line).context("cannot read it")? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.len() > most {
        return Err(anyhow!("is longer than the {most} bytes that the host accepts in one message"));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Some(line.into())),
        Err(_) => Err(anyhow!("is not UTF-8: messages are JSON")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &str, most: usize) -> Vec<Result<String, String>> {
        let (sender, mut receiver) = mpsc::channel(100);
        read_lines(&mut input.as_bytes(), most, &sender);
        let mut lines = Vec::new();
        while let Ok(line) = receiver.try_recv() {
            lines.push(line.map(|line| line.to_string()).map_err(|error| format!("{error:#}")));
        }
        lines
    }

    #[test]
    fn a_line_may_be_as_long_as_a_message_and_no_longer() {
        let ok = |line: &str| Ok(line.to_owned());
        assert_eq!(lines("abc\nd\r\n\n\r\nabc\r\nabc", 3), [ok("abc"), ok("d"), ok("abc"), ok("abc")]);
        let cut = lines("a\nabcd\nb\n", 3);
        assert_eq!(cut.len(), 2, "nothing after it is read: {cut:?}");
        assert_eq!(
            cut[1].as_ref().unwrap_err(),
            "line 2 of stdin: is longer than the 3 bytes that the host accepts in one message"
        );
        assert!(lines("abcdefghij", 3)[0].is_err(), "without an end, too");
    }

    #[test]
    fn what_is_no_text_is_no_message() {
        let (sender, mut receiver) = mpsc::channel(1);
        read_lines(&mut &b"\xff\n"[..], 9, &sender);
        assert!(
            format!("{:#}", receiver.try_recv().unwrap().unwrap_err()).starts_with("line 1 of stdin: is not UTF-8")
        );
    }
}
