//! Clients that send plain JSON and write down every frame as it is on the wire.

use std::sync::{Arc, Mutex};

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use grove_fs::StorageClient;
use grove_testkit::host::{ADDRESS, TOKEN};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::world::{SECRET, settle};

/// The frames of one connection, one a line: `{"client":FRAME}` or `{"host":FRAME}`, the frames byte for byte but for what may
/// change: Grove's version, the words in which something is refused, and names of temporary files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording(Arc<Mutex<Vec<Line>>>);

#[derive(Clone, Debug)]
enum Line {
    Client(String),
    Host(String),
    /// The code of the close frame.
    Closed(u16),
}

impl Recording {
    fn add(&self, line: Line) {
        self.0.lock().unwrap().push(line);
    }

    fn host_frames(&self) -> Vec<Value> {
        let lines = self.0.lock().unwrap();
        let frames = lines.iter().filter_map(|line| match line {
            Line::Host(text) => Some(serde_json::from_str(text).unwrap()),
            Line::Client(_) | Line::Closed(_) => None,
        });
        frames.collect()
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().unwrap();
        let texts = lines.iter().map(|line| match line {
            Line::Client(text) => format!("{{\"client\":{text}}}\n"),
            Line::Host(text) => format!("{{\"host\":{}}}\n", without_words(text)),
            Line::Closed(code) => format!("{{\"closed\":{code}}}\n"),
        });
        texts.collect()
    }

    /// The answer to a request, once it is there.
    async fn answer(&self, id: u64) -> Result<Value, Value> {
        // Five seconds of the test's clock: nothing takes so long.
        for _ in 0..50 {
            settle().await;
            let found =
                self.host_frames().into_iter().find(|frame| frame["id"] == json!(id) && frame["method"].is_null());
            if let Some(mut frame) = found {
                return match frame.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(frame["result"].take()),
                };
            }
        }
        panic!("request {id} was not answered:\n{}", self.text());
    }
}

/// A frame without the version, the words of a refusal, and names of temporary files.
fn without_words(text: &str) -> String {
    let frame: Value = serde_json::from_str(text).unwrap();
    let words = [("message", &frame["error"]["message"]), ("rejectionReason", &frame["params"]["rejectionReason"])];
    let mut text = text.replace(&format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"version\":\"VERSION\"");
    for (member, words) in words {
        if words.is_string() {
            text = text.replacen(&format!("\"{member}\":{words}"), &format!("\"{member}\":\"WORDS\""), 1);
        }
    }
    let mut pieces = text.split("/grove-");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| match piece.split_once(".tmp") {
        Some((random, rest)) if random.len() == 32 => format!("{text}/grove-RANDOM.tmp{rest}"),
        _ => format!("{text}/grove-{piece}"),
    })
}

/// The protocols over WebSockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    Ahp09,
    Ahp10,
}

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::V1 => "v1",
            Dialect::Ahp09 => "ahp-0.9",
            Dialect::Ahp10 => "ahp-1.0",
        }
    }
}

/// A client over a WebSocket.
pub(crate) struct Client {
    dialect: Dialect,
    name: String,
    sink: SplitSink<WebSocketStream<DuplexStream>, Message>,
    recording: Recording,
    last_id: u64,
    last_client_seq: u64,
}

impl Client {
    /// Connects and initializes, with the root subscribed.
    pub(crate) async fn connect(stream: DuplexStream, dialect: Dialect, name: &str, recording: Recording) -> Self {
        let mut client = Self::open(stream, dialect, name, recording).await;
        let params = match dialect {
            Dialect::V1 => {
                json!({"protocolVersion": 1, "clientId": name, "initialSubscriptions": ["agenthost:root"]})
            }
            Dialect::Ahp09 | Dialect::Ahp10 => {
                let version = if dialect == Dialect::Ahp09 { "0.9.0" } else { "1.0.0" };
                json!({"channel": "ahp-root://", "protocolVersions": [version], "clientId": name,
                    "initialSubscriptions": ["ahp-root://"]})
            }
        };
        client.call("initialize", params).await;
        client
    }

    /// Connects and says nothing.
    pub(crate) async fn open(stream: DuplexStream, dialect: Dialect, name: &str, recording: Recording) -> Self {
        let url = format!("ws://{ADDRESS}/ws?tkn={TOKEN}");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let (sink, mut frames) = socket.split();
        let written = recording.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = frames.next().await {
                match message {
                    Message::Text(text) => written.add(Line::Host(text.to_string())),
                    Message::Close(Some(frame)) => {
                        written.add(Line::Closed(u16::from(frame.code)));
                    }
                    _ => {}
                }
            }
        });
        Self { dialect, name: name.to_owned(), sink, recording, last_id: 0, last_client_seq: 0 }
    }

    async fn send(&mut self, frame: Value) {
        let text = frame.to_string();
        self.recording.add(Line::Client(text.clone()));
        if let Err(error) = self.sink.send(Message::text(text)).await {
            panic!("{}: {error}:\n{}", self.name, self.recording.text());
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})).await;
        self.recording.answer(self.last_id).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params.clone()).await;
        answer.unwrap_or_else(|error| panic!("{}: {method} {params} is refused: {error}", self.name))
    }

    /// Dispatches an action, and lets everything happen that comes of it.
    pub(crate) async fn dispatch(&mut self, channel: &str, mut action: Value) {
        self.last_client_seq += 1;
        let params = match self.dialect {
            Dialect::V1 => {
                action["session"] = channel.into();
                json!({"clientSeq": self.last_client_seq, "action": action})
            }
            Dialect::Ahp09 | Dialect::Ahp10 => {
                json!({"channel": channel, "clientSeq": self.last_client_seq, "action": action})
            }
        };
        self.send(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
        settle().await;
    }

    /// Subscribes, and gives the snapshot's state.
    pub(crate) async fn subscribe(&mut self, channel: &str) -> Value {
        match self.dialect {
            Dialect::V1 => self.call("subscribe", json!({"resource": channel})).await["state"].take(),
            Dialect::Ahp09 | Dialect::Ahp10 => {
                self.call("subscribe", json!({"channel": channel})).await["snapshot"]["state"].take()
            }
        }
    }

    /// Starts a turn of the scripted agent.
    pub(crate) async fn script(&mut self, channel: &str, turn: &str, steps: Value) {
        self.start_turn(channel, turn, &format!("script:{steps}")).await;
    }

    pub(crate) async fn start_turn(&mut self, channel: &str, turn: &str, text: &str) {
        let action = match self.dialect {
            Dialect::V1 => json!({"type": "session/turnStarted", "turnId": turn, "userMessage": {"text": text}}),
            Dialect::Ahp09 | Dialect::Ahp10 => {
                json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2023-11-14T22:13:20.000Z",
                    "message": message(text)})
            }
        };
        self.dispatch(channel, action).await;
    }
}

/// A person's message.
pub(crate) fn message(text: &str) -> Value {
    json!({"text": text, "origin": {"kind": "user"}})
}

/// A client that speaks as the GitHub Copilot SDK does.
pub(crate) struct SdkClient {
    stream: Arc<tokio::sync::Mutex<WriteHalf<DuplexStream>>>,
    recording: Recording,
    /// Answers for the sessions that this client stores.
    pub(crate) storage: Arc<Mutex<Option<Arc<StorageClient>>>>,
    last_id: u64,
}

impl SdkClient {
    pub(crate) fn connect(stream: DuplexStream, recording: Recording) -> Self {
        let (mut reader, writer) = tokio::io::split(stream);
        let stream = Arc::new(tokio::sync::Mutex::new(writer));
        let storage: Arc<Mutex<Option<Arc<StorageClient>>>> = Arc::default();
        let (writer, written, stores) = (stream.clone(), recording.clone(), storage.clone());
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            while reader.read_buf(&mut buffer).await.is_ok_and(|length| length > 0) {
                while let Some(text) = take_frame(&mut buffer) {
                    written.add(Line::Host(text.clone()));
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if frame.get("id").is_some() && frame.get("method").is_some() {
                        let storage = stores.lock().unwrap().clone();
                        let answer = answer(&frame, storage).await;
                        send(&writer, &written, &answer).await;
                    }
                }
            }
        });
        Self { stream, recording, storage, last_id: 0 }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        send(&self.stream, &self.recording, &request).await;
        self.recording.answer(self.last_id).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params.clone()).await;
        answer.unwrap_or_else(|error| panic!("{method} {params} is refused: {error}"))
    }

    /// The first request of every SDK.
    pub(crate) async fn authenticate(&mut self) {
        self.call("connect", json!({"token": SECRET})).await;
    }
}

async fn send(stream: &tokio::sync::Mutex<WriteHalf<DuplexStream>>, recording: &Recording, frame: &Value) {
    let text = frame.to_string();
    recording.add(Line::Client(text.clone()));
    let framed = format!("Content-Length: {}\r\n\r\n{text}", text.len());
    // A host that was killed does not read it.
    stream.lock().await.write_all(framed.as_bytes()).await.ok();
}

/// The next whole frame.
fn take_frame(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length: usize = head.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
    if buffer.len() < end + 4 + length {
        return None;
    }
    let text = String::from_utf8(buffer[end + 4..end + 4 + length].to_vec()).unwrap();
    buffer.drain(..end + 4 + length);
    Some(text)
}

/// The answer to a request of the host: from the storage, or a person's word.
async fn answer(request: &Value, storage: Option<Arc<StorageClient>>) -> Value {
    let method = request["method"].as_str().unwrap();
    let result = match storage.filter(|_| method.starts_with("sessionFs.")) {
        Some(storage) => storage.answer(method, request["params"].clone()).await.unwrap(),
        None => json!({"answer": "blue", "wasFreeform": true}),
    };
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}
