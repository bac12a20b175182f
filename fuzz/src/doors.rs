//! The fuzz bodies of a whole host: HTTP requests, the frames of WebSockets, and those of the Copilot SDK's port.
//!
//! The host is real, with its stores in memory, on pipes and on a paused clock. The token of a WebSocket or an SDK does
//! not give the scope `folders`, and the host has no roots, so no input reaches a file.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

use grove_agents::scripted::ScriptedAgent;
use grove_core::{Scope, ScopeSet, Timestamp};
use grove_host::tokens::{HostToken, NewToken, TokenRecord, TokenRegistry, TokenStorage};
use grove_host::{Config, Env, Host, Token};
use grove_server::HostServer;
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_testkit::Client;
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES, PausedClock, TOKEN, pipes, serve};
use grove_wire::copilot::framing::{Decoder, frame};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};

/// The inputs that one host gets. Then a new one starts, since sessions stay.
const INPUTS: usize = 100;
/// The most frames of an input.
pub(crate) const FRAMES: usize = 50;
/// The time that a host may take for an answer. It is virtual.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The bytes that fit into a pipe to the port of the Copilot SDK: all messages of an input and their answers.
const SDK_PIPE_BYTES: usize = 64 << 20;
/// The secret that stands for the named token in the corpus.
const NAMED_TOKEN: &str = "{token}";

thread_local! {
    /// The panics of this thread: those of a host's tasks end only their task.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// A host, and the means to connect to it.
pub(crate) struct FuzzedHost {
    pub(crate) runtime: Runtime,
    /// It keeps the listeners.
    _server: HostServer,
    pub(crate) dialer: Dialer,
    /// Connects to the port of the Copilot SDK.
    sdk_dialer: Dialer,
    pub(crate) token: String,
    inputs: usize,
}

#[derive(Debug)]
struct NoStorage;

impl TokenStorage for NoStorage {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        Ok(Vec::new())
    }

    fn store(&self, _: &[TokenRecord]) -> io::Result<()> {
        Ok(())
    }

    fn store_host_token(&self, _: &Token) -> io::Result<()> {
        Ok(())
    }
}

impl FuzzedHost {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        let ((dialer, server), sdk_dialer, token) = runtime.block_on(async {
            let clock = Arc::new(PausedClock::new(Timestamp(1_700_000_000_000)));
            let env = Env { clock, ..Env::in_memory() };
            let host =
                Host::in_memory(env.clone(), Config::default(), vec![Arc::new(ScriptedAgent)]).await.expect("a host");
            let own = HostToken::from(Token::parse(TOKEN).expect("a token"));
            let tokens = TokenRegistry::open(env, own.clone(), Box::new(NoStorage)).expect("no tokens");
            let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Folders).collect::<ScopeSet>();
            let named = NewToken { name: "fuzz".to_owned(), scopes, lifetime: None };
            let secret = tokens.add(named, ScopeSet::ALL).expect("a token").reveal().to_owned();
            host.set_tokens(tokens);
            let (listening, (sdk_dialer, sdk_pipes)) = (serve(&host), pipes());
            let port = EndpointConfig {
                store: "copilot".into(),
                secret: Some(EndpointSecret::Token(own)),
                keeps_temp_files: false,
                default_folder: None,
                allows_all: false,
            };
            listening.1.serve_sdks(port, Box::new(sdk_pipes));
            (listening, sdk_dialer, secret)
        });
        Self { runtime, _server: server, dialer, sdk_dialer, token, inputs: 0 }
    }

    /// Runs an input on a host of this thread. No task of the host may panic.
    pub(crate) fn with<T>(run: impl FnOnce(&FuzzedHost) -> T) -> T {
        thread_local! {
            static HOST: RefCell<Option<FuzzedHost>> = const { RefCell::new(None) };
        }
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                PANICS.set(PANICS.get() + 1);
                report(panic);
            }));
        });
        let before = PANICS.get();
        let mut host = HOST.take().filter(|host| host.inputs < INPUTS).unwrap_or_else(FuzzedHost::start);
        host.inputs += 1;
        let answer = run(&host);
        HOST.set(Some(host));
        assert_eq!(PANICS.get(), before, "a task of the host panicked");
        answer
    }
}

/// Any text as an HTTP request: head, empty line, body. The host answers in HTTP, or closes the connection.
pub fn http(data: &[u8]) {
    http_answer(data);
}

/// The host's answer to an HTTP request.
pub fn http_answer(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("content-length"));
    let mut request = lines.collect::<Vec<_>>().join("\r\n");
    request.push_str(&format!("\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()));
    FuzzedHost::with(|host| {
        let request = request.replace(NAMED_TOKEN, &host.token);
        let answer = host.runtime.block_on(async {
            let mut stream = host.dialer.dial(PIPE_BYTES).expect("the host listens");
            // It may close the connection before it has read everything.
            stream.write_all(request.as_bytes()).await.ok();
            let mut answer = Vec::new();
            tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.ok();
            answer
        });
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
        let echoes_token = answer.contains(&host.token) || answer.contains(TOKEN);
        assert!(!echoes_token, "{request}\nis answered with the token:\n{answer}");
        answer
    })
}

/// Any frames of a client, one per line: the host answers with JSON, or closes the connection.
pub fn connection(data: &[u8]) {
    connection_answers(data);
}

/// The host's frames for the frames of a client.
pub fn connection_answers(data: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(data);
    FuzzedHost::with(|host| {
        host.runtime.block_on(async {
            let stream = host.dialer.dial(PIPE_BYTES).expect("the host listens");
            let url = format!("ws://{ADDRESS}/ws?tkn={}", host.token);
            let mut client = Client::over(Box::new(stream), &url, "fuzz").await;
            for line in text.lines().take(FRAMES) {
                client.send(line.to_owned()).await;
            }
            client.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#.to_owned()).await;
            let answers = async {
                let mut answers = Vec::new();
                while let Some(frame) = client.frame().await {
                    let answer: Value = serde_json::from_str(&frame).expect("the host sends JSON");
                    if answer["id"] == "last" {
                        break;
                    }
                    answers.push(answer);
                }
                answers
            };
            tokio::time::timeout(PATIENCE, answers).await.expect("the host answers or closes the connection")
        })
    })
}

/// Any messages of a program with the Copilot SDK, one per line: the host answers with JSON, or closes the connection.
pub fn copilot_port(data: &[u8]) {
    copilot_port_answers(data);
}

/// The host's answers to the messages of a program, which authenticates first. It answers the host's own calls, every
/// other one with an error.
pub fn copilot_port_answers(data: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(data);
    FuzzedHost::with(|host| {
        host.runtime.block_on(async {
            let mut program = SdkProgram::connect(host).await;
            let mut answers = Vec::new();
            for line in text.lines().take(FRAMES) {
                program.send(line).await;
                // A program uses a session once it is open.
                let request: Value = serde_json::from_str(line).unwrap_or_default();
                if request["method"] == "session.create" || request["method"] == "session.resume" {
                    tokio::time::timeout(PATIENCE, program.answers_until(&request["id"], &mut answers)).await.ok();
                }
            }
            program.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping","params":{}}"#).await;
            let last = json!("last");
            let answered = tokio::time::timeout(PATIENCE, program.answers_until(&last, &mut answers)).await;
            answered.expect("the host answers or closes the connection");
            answers
        })
    })
}

/// A program with the Copilot SDK.
struct SdkProgram {
    stream: DuplexStream,
    decoder: Decoder,
}

impl SdkProgram {
    /// Connects with the named token.
    async fn connect(host: &FuzzedHost) -> Self {
        let stream = host.sdk_dialer.dial(SDK_PIPE_BYTES).expect("the host listens");
        let mut program = Self { stream, decoder: Decoder::new(SDK_PIPE_BYTES) };
        let connect = json!({"jsonrpc": "2.0", "id": "first", "method": "connect", "params": {"token": host.token}});
        program.send(&connect.to_string()).await;
        let connected = program.receive().await.expect("the host answers");
        assert!(connected["result"].is_object(), "{connected}");
        program
    }

    /// Sends a message. The host may have closed the connection.
    async fn send(&mut self, message: &str) {
        self.stream.write_all(&frame(message)).await.ok();
    }

    /// The next message; `None` when the connection is closed.
    async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(body) = self.decoder.next_frame().expect("the host frames its messages") {
                return Some(serde_json::from_str(&body).expect("the host sends JSON"));
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.decoder.push(&piece[..length]),
            }
        }
    }

    /// Adds the answers up to the one to `last`, or until the connection is closed.
    async fn answers_until(&mut self, last: &Value, answers: &mut Vec<Value>) {
        while let Some(message) = self.receive().await {
            let id = &message["id"];
            if message["method"].is_string() {
                let answer = match id.as_u64() {
                    None => continue,
                    Some(id) if id.is_multiple_of(2) => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                    Some(id) => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}})
                    }
                };
                self.send(&answer.to_string()).await;
            } else {
                let is_last = id == last;
                answers.push(message);
                if is_last {
                    return;
                }
            }
        }
    }
}
