//! The protocol of each server: how to subscribe, and how to cause an event.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::grove;
use super::socket::{Socket, send, write};
use crate::dialect::Dialect;
use crate::job::{Program, Target};
use crate::shape::{self, Ask, SESSION};

/// The connection that causes events: the first subscriber's, or a separate one.
pub(super) struct Control {
    program: Program,
    dialect: Dialect,
    stream: Rc<TcpStream>,
    /// The id of the changed resource at its server.
    subject: String,
    host: String,
    calls: u64,
}

/// A requested stream.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) deltas: usize,
    pub(super) delay_ms: u64,
    /// The pause of an agent before the first delta.
    pub(super) pause_ms: u64,
}

/// Adds a subscriber.
pub(super) async fn subscribe(target: &Target, number: usize) -> Result<Socket> {
    let program = target.contestant.program();
    let mut socket = match program {
        Program::Opencode => Socket::events(target).await?,
        Program::Grove | Program::Bare | Program::Node | Program::Codex => Socket::web_socket(target).await?,
    };
    match program {
        Program::Grove => {
            let client = format!("bench-{number}");
            grove::subscribe(&mut socket, target.contestant.dialect_of(number), &client).await?;
        }
        Program::Opencode => {
            let hello = socket.next().await?;
            ensure!(hello.contains("server.connected"), "the stream of events began with {hello}");
        }
        Program::Codex => {
            let client = json!({ "clientInfo": { "name": "grove-bench", "version": "1" } });
            socket.call(1, "initialize", client).await?;
            send(&socket.stream, &json!({ "method": "initialized" }).to_string()).await?;
        }
        Program::Bare | Program::Node => {}
    }
    Ok(socket)
}

impl Control {
    /// Creates the subscribed resource, before there are subscribers.
    pub(super) async fn prepare(target: &Target) -> Result<Option<Socket>> {
        match target.contestant.program() {
            Program::Grove => {
                let mut socket = Socket::web_socket(target).await?;
                grove::create(&mut socket, target.contestant.dialect_of(0)).await?;
                Ok(Some(socket))
            }
            Program::Codex => subscribe(target, 0).await.map(Some),
            Program::Bare | Program::Node | Program::Opencode => Ok(None),
        }
    }

    /// `prepared` is the result of [`Control::prepare`], `first` the first subscriber's connection.
    pub(super) async fn new(target: &Target, prepared: Option<&mut Socket>, first: Rc<TcpStream>) -> Result<Self> {
        let dialect = target.contestant.dialect_of(0);
        let mut control = Self {
            program: target.contestant.program(),
            dialect,
            stream: prepared.as_ref().map_or(first, |socket| socket.stream.clone()),
            subject: dialect.subject().to_owned(),
            host: target.address.to_string(),
            calls: 1_000,
        };
        match control.program {
            Program::Grove | Program::Bare | Program::Node => {}
            Program::Codex => {
                let socket = prepared.context("codex has no control connection")?;
                let started = socket.call(2, "thread/start", json!({})).await?;
                control.subject = started["thread"]["id"].as_str().context("the thread has no id")?.to_owned();
            }
            Program::Opencode => {
                let created = http(&control.host, "POST", "/session", "{}").await?;
                let created: Value = serde_json::from_str(&created)?;
                control.subject = created["id"].as_str().context("the session has no id")?.to_owned();
            }
        }
        Ok(control)
    }

    pub(super) async fn stream(&mut self, turn: usize, stream: Stream) -> Result<()> {
        let turn_id = format!("turn-{turn}");
        let Stream { deltas, delay_ms, pause_ms } = stream;
        match self.program {
            Program::Grove => {
                // The agent pauses between deltas instead of using a clock, and pauses are rounded up.
                let text = shape::script(deltas, delay_ms.saturating_sub(1), pause_ms);
                self.dispatch(&grove::turn_started(self.dialect, &turn_id, &text)).await
            }
            Program::Bare | Program::Node => {
                let (session, content) = (self.subject.clone(), shape::CONTENT.to_owned());
                self.ask(&Ask::Stream { dialect: self.dialect, session, turn_id, content, deltas, delay_ms }).await
            }
            Program::Opencode | Program::Codex => anyhow::bail!("no model streams behind it"),
        }
    }

    /// Causes one small event that every subscriber gets.
    pub(super) async fn event(&mut self, number: usize) -> Result<()> {
        let name = format!("name {number}");
        match self.program {
            Program::Grove => {
                let model = ["scripted/slow-start", "scripted"][number % 2];
                self.dispatch(&json!({ "type": "session/modelChanged", "session": SESSION, "model": model })).await
            }
            Program::Bare | Program::Node => self.ask(&Ask::Event { session: SESSION.to_owned(), model: name }).await,
            Program::Codex => {
                self.calls += 1;
                let params = json!({ "threadId": self.subject, "name": name });
                let call = json!({ "id": self.calls, "method": "thread/name/set", "params": params });
                send(&self.stream, &call.to_string()).await
            }
            Program::Opencode => {
                let path = format!("/session/{}", self.subject);
                http(&self.host, "PATCH", &path, &json!({ "title": name }).to_string()).await.map(drop)
            }
        }
    }

    async fn dispatch(&mut self, action: &Value) -> Result<()> {
        self.calls += 1;
        send(&self.stream, &grove::dispatch(self.dialect, self.calls, action).to_string()).await
    }

    async fn ask(&self, ask: &Ask) -> Result<()> {
        send(&self.stream, &serde_json::to_string(ask)?).await
    }
}

/// Sends one request on a new connection; returns the body.
async fn http(host: &str, method: &str, path: &str, body: &str) -> Result<String> {
    use tokio::io::AsyncReadExt;

    let mut stream = TcpStream::connect(host).await?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    write(&stream, request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no body")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "{method} {path}: {answer}");
    // With or without chunks, the object is between its braces.
    let object = body.find('{').zip(body.rfind('}')).and_then(|(from, to)| body.get(from..=to));
    Ok(object.unwrap_or_default().to_owned())
}
