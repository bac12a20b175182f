//! One connection to a server, with the features that the load client needs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde_json::Value;
use tokio::net::TcpStream;

use super::decode::{Decoder, Events, Frames, Kind, Received};
use crate::job::Target;

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
const READ_BUFFER: usize = 64 << 10;

thread_local! {
    /// All connections read into one buffer: there is one thread, and it empties the buffer at once.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BUFFER]);
}

pub(super) struct Socket {
    pub(super) stream: Rc<TcpStream>,
    pub(super) decoder: Decoder,
    /// Messages that arrived together with an awaited one.
    inbox: VecDeque<String>,
}

impl Socket {
    /// Opens a WebSocket.
    pub(super) async fn web_socket(target: &Target) -> Result<Self> {
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            target.path, target.address
        );
        Self::open(target, &request, "101", Decoder::WebSocket(Frames::default())).await
    }

    /// Opens a stream of server-sent events.
    pub(super) async fn events(target: &Target) -> Result<Self> {
        let request =
            format!("GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", target.path, target.address);
        Self::open(target, &request, "200", Decoder::Events(Events::default())).await
    }

    async fn open(target: &Target, request: &str, status: &str, decoder: Decoder) -> Result<Self> {
        let stream = TcpStream::connect(target.address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let mut socket = Self { stream: Rc::new(stream), decoder, inbox: VecDeque::new() };
        write(&socket.stream, request.as_bytes()).await?;
        let mut answer = Vec::new();
        let end = loop {
            if let Some(end) = memmem::find(&answer, b"\r\n\r\n") {
                break end + 4;
            }
            let read = read(&socket.stream, |data| answer.extend_from_slice(data));
            ensure!(tokio::time::timeout(PATIENCE, read).await?? > 0, "the server closed the connection");
        };
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let first = head.lines().next().unwrap_or_default();
        ensure!(first.split(' ').nth(1) == Some(status), "the server answered {first}");
        socket.take(&answer[end..]);
        Ok(socket)
    }

    fn take(&mut self, data: &[u8]) {
        let inbox = &mut self.inbox;
        self.decoder.feed(data, |message| match message.kind {
            Kind::Message => inbox.push_back(String::from_utf8_lossy(message.bytes).into_owned()),
            Kind::Close | Kind::Other => {}
        });
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<String> {
        loop {
            if let Some(message) = self.inbox.pop_front() {
                return Ok(message);
            }
            let mut data = Vec::new();
            let read = read(&self.stream, |read| data.extend_from_slice(read));
            ensure!(tokio::time::timeout(PATIENCE, read).await?? > 0, "the server closed the connection");
            self.take(&data);
        }
    }

    /// Calls a JSON-RPC method and waits for its answer; other messages are dropped.
    pub(super) async fn call(&mut self, id: u64, method: &str, params: Value) -> Result<Value> {
        let request = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        send(&self.stream, &request.to_string()).await?;
        loop {
            let message: Value = serde_json::from_str(&self.next().await?)?;
            if message["id"] != id {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method}: {error}");
            }
            return Ok(message["result"].clone());
        }
    }

    /// Passes every message to `on_message`, with the time at which it was read, until the connection ends.
    pub(super) async fn listen(mut self, mut on_message: impl FnMut(Received<'_>, Instant)) -> io::Result<()> {
        loop {
            let decoder = &mut self.decoder;
            let on_message = &mut on_message;
            let count = read(&self.stream, |data| {
                let now = Instant::now();
                decoder.feed(data, |message| on_message(message, now));
            });
            if count.await? == 0 {
                return Ok(());
            }
        }
    }
}

/// Reads once and lends the data. Returns its length; 0 is the end.
async fn read(stream: &TcpStream, on_data: impl FnOnce(&[u8])) -> io::Result<usize> {
    let mut on_data = Some(on_data);
    loop {
        stream.readable().await?;
        let count = BUFFER.with_borrow_mut(|buffer| {
            let count = stream.try_read(buffer)?;
            if let Some(on_data) = on_data.take() {
                on_data(&buffer[..count]);
            }
            Ok::<_, io::Error>(count)
        });
        match count {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Sends a text message: one frame, masked with zeros, which changes nothing.
pub(super) async fn send(stream: &TcpStream, text: &str) -> Result<()> {
    let mut frame = vec![0x81];
    match text.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        middle @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(text.as_bytes());
    write(stream, &frame).await
}

pub(super) async fn write(stream: &TcpStream, mut data: &[u8]) -> Result<()> {
    while !data.is_empty() {
        stream.writable().await?;
        match stream.try_write(data) {
            Ok(written) => data = &data[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
