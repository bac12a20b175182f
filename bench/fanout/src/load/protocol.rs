//! How each server is spoken to: how a subscriber comes to be one, and how something is made to happen.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::socket::{Socket, send, write};
use crate::job::{Contestant, Target};
use crate::shape::{self, Ask, SESSION};

/// The one who makes things happen: the first subscriber, or a connection of its own.
pub(super) struct Control {
    contestant: Contestant,
    stream: Rc<TcpStream>,
    /// The thing that is changed, as its server names it.
    subject: String,
    host: String,
    calls: u64,
}

/// A stream that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) deltas: usize,
    pub(super) delay_ms: u64,
    /// How long the agent waits before the first delta, where it is an agent.
    pub(super) pause_ms: u64,
}

/// Makes one more subscriber.
pub(super) async fn subscribe(target: &Target, number: usize) -> Result<Socket> {
    let mut socket = match target.contestant {
        Contestant::Opencode => Socket::events(target).await?,
        Contestant::Grove | Contestant::Bare | Contestant::Node | Contestant::Codex => {
            Socket::web_socket(target).await?
        }
    };
    match target.contestant {
        Contestant::Grove => {
            let client = json!({ "protocolVersion": 1, "clientId": format!("bench-{number}") });
            socket.call(1, "initialize", client).await?;
            socket.call(2, "subscribe", json!({ "resource": SESSION })).await?;
        }
        Contestant::Opencode => {
            let hello = socket.next().await?;
            ensure!(hello.contains("server.connected"), "the stream of events began with {hello}");
        }
        Contestant::Codex => {
            let client = json!({ "clientInfo": { "name": "grove-bench", "version": "1" } });
            socket.call(1, "initialize", client).await?;
            send(&socket.stream, &json!({ "method": "initialized" }).to_string()).await?;
        }
        Contestant::Bare | Contestant::Node => {}
    }
    Ok(socket)
}

impl Control {
    /// Makes what subscribers subscribe to. Comes before they do.
    pub(super) async fn prepare(target: &Target) -> Result<Option<Socket>> {
        match target.contestant {
            Contestant::Grove => {
                let mut socket = Socket::web_socket(target).await?;
                let client = json!({ "protocolVersion": 1, "clientId": "bench-control" });
                socket.call(1, "initialize", client).await?;
                socket.call(2, "createSession", json!({ "session": SESSION, "provider": "scripted" })).await?;
                for id in 3..100 {
                    let snapshot = socket.call(id, "subscribe", json!({ "resource": SESSION })).await?;
                    if snapshot["state"]["lifecycle"] == "ready" {
                        let goodbye =
                            json!({ "jsonrpc": "2.0", "method": "unsubscribe", "params": { "resource": SESSION } });
                        send(&socket.stream, &goodbye.to_string()).await?;
                        return Ok(Some(socket));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                anyhow::bail!("the session did not become ready")
            }
            Contestant::Codex => subscribe(target, 0).await.map(Some),
            Contestant::Bare | Contestant::Node | Contestant::Opencode => Ok(None),
        }
    }

    /// `prepared` is what [`Control::prepare`] gave, `first` the first subscriber's connection.
    pub(super) async fn new(target: &Target, prepared: Option<&mut Socket>, first: Rc<TcpStream>) -> Result<Self> {
        let mut control = Self {
            contestant: target.contestant,
            stream: prepared.as_ref().map_or(first, |socket| socket.stream.clone()),
            subject: SESSION.to_owned(),
            host: target.address.to_string(),
            calls: 1_000,
        };
        match target.contestant {
            Contestant::Grove | Contestant::Bare | Contestant::Node => {}
            Contestant::Codex => {
                let socket = prepared.context("codex has no control connection")?;
                let started = socket.call(2, "thread/start", json!({})).await?;
                control.subject = started["thread"]["id"].as_str().context("the thread has no id")?.to_owned();
            }
            Contestant::Opencode => {
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
        match self.contestant {
            Contestant::Grove => {
                // The agent waits between deltas instead of looking at a clock, and a wait is rounded up.
                let text = shape::script(deltas, delay_ms.saturating_sub(1), pause_ms);
                let user_message = json!({ "text": text });
                self.dispatch(json!({
                    "type": "session/turnStarted", "session": SESSION, "turnId": turn_id, "userMessage": user_message,
                }))
                .await
            }
            Contestant::Bare | Contestant::Node => {
                let (session, content) = (SESSION.to_owned(), shape::CONTENT.to_owned());
                self.ask(&Ask::Stream { session, turn_id, content, deltas, delay_ms }).await
            }
            Contestant::Opencode | Contestant::Codex => anyhow::bail!("no model streams behind it"),
        }
    }

    /// Makes one small thing happen that every subscriber hears of.
    pub(super) async fn event(&mut self, number: usize) -> Result<()> {
        let name = format!("name {number}");
        match self.contestant {
            Contestant::Grove => {
                let model = ["scripted/slow-start", "scripted"][number % 2];
                self.dispatch(json!({ "type": "session/modelChanged", "session": SESSION, "model": model })).await
            }
            Contestant::Bare | Contestant::Node => {
                self.ask(&Ask::Event { session: SESSION.to_owned(), model: name }).await
            }
            Contestant::Codex => {
                self.calls += 1;
                let params = json!({ "threadId": self.subject, "name": name });
                let call = json!({ "id": self.calls, "method": "thread/name/set", "params": params });
                send(&self.stream, &call.to_string()).await
            }
            Contestant::Opencode => {
                let path = format!("/session/{}", self.subject);
                http(&self.host, "PATCH", &path, &json!({ "title": name }).to_string()).await.map(drop)
            }
        }
    }

    async fn dispatch(&mut self, action: Value) -> Result<()> {
        self.calls += 1;
        let params = json!({ "clientSeq": self.calls, "action": action });
        let message = json!({ "jsonrpc": "2.0", "method": "dispatchAction", "params": params });
        send(&self.stream, &message.to_string()).await
    }

    async fn ask(&self, ask: &Ask) -> Result<()> {
        send(&self.stream, &serde_json::to_string(ask)?).await
    }
}

/// One request on a connection of its own; gives the body.
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
    // Whether it came in chunks or not, the object lies between its braces.
    let object = body.find('{').zip(body.rfind('}')).and_then(|(from, to)| body.get(from..=to));
    Ok(object.unwrap_or_default().to_owned())
}
