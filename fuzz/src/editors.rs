//! The fuzz body of Grove as an agent: the lines of an editor, in front of a whole host.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_acp_agent::{AgentChoice, EditorClient, HostAccess};
use grove_client::{Ahp, ByteStream, Client, Dial, Endpoint, Options};
use grove_testkit::ahp;
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

use crate::doors::{FRAMES, FuzzedHost, PATIENCE};

/// The id that stands for a session of the editor in the corpus. The host has one with this id, too.
const SESSION: &str = "{session}";
/// How long a line that names a session waits for it. The time is virtual.
const WAIT: Duration = Duration::from_secs(1);
/// The request behind all others.
const LAST: &str = r#"{"jsonrpc":"2.0","id":"last","method":"nothing"}"#;

/// The way to the host, through pipes.
struct PipeHost {
    dialer: Dialer,
    token: String,
}

#[async_trait]
impl HostAccess for PipeHost {
    async fn connect(&self, editor: EditorClient) -> Result<Client<Ahp>, String> {
        let dial = Arc::new(PipeDialer(self.dialer.clone()));
        let endpoint = Endpoint::over(&format!("ws://{ADDRESS}/ws"), Some(&self.token), dial).expect("an address");
        let dialect = Ahp { meta: editor.meta(), ..Ahp::default() };
        let options = Options { list_sessions: false, requests: editor.documents, ..Options::default() };
        Client::connect(endpoint, dialect, options).await.map_err(|error| error.to_string())
    }

    async fn start(&self) -> Result<(), String> {
        Ok(())
    }

    fn shares_files(&self) -> bool {
        true
    }
}

struct PipeDialer(Dialer);

#[async_trait]
impl Dial for PipeDialer {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        Ok(Box::new(self.0.dial(PIPE_BYTES)?))
    }
}

/// Any lines of an editor: each request is answered with JSON, and the program lives to the end of its input.
pub fn editor(data: &[u8]) {
    editor_answers(data);
}

/// The messages to an editor for its lines.
pub fn editor_answers(data: &[u8]) -> Vec<Value> {
    FuzzedHost::with(|host| {
        host.runtime.block_on(async {
            let access = Arc::new(PipeHost { dialer: host.dialer.clone(), token: host.token.clone() });
            let mut client = ahp::Client::over(
                Box::new(host.dialer.dial(PIPE_BYTES).expect("the host listens")),
                &format!("ws://{ADDRESS}/ws?tkn={}", host.token),
                "owner",
            )
            .await;
            client.initialize(&[]).await;
            // It may be there already.
            client.create_session("scripted:/s").await.ok();
            let ((mut input, stdin), (stdout, output)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
            let serving = tokio::spawn(grove_acp_agent::serve(access, AgentChoice::default(), stdin, stdout));
            let mut output = EditorOutput { lines: BufReader::new(output).lines(), received: Vec::new() };
            for line in data.split(|byte| *byte == b'\n').take(FRAMES) {
                let line = output.with_session(line).await;
                let sent = async {
                    input.write_all(&line).await?;
                    input.write_all(b"\n").await
                };
                output.alongside(sent).await;
            }
            let sent = async {
                input.write_all(LAST.as_bytes()).await?;
                input.write_all(b"\n").await
            };
            output.alongside(sent).await;
            let answered = tokio::time::timeout(PATIENCE, output.until(|message| message["id"] == "last"));
            answered.await.expect("the last request is answered");
            drop(input);
            let ended = tokio::time::timeout(PATIENCE, serving).await.expect("it ends with its input");
            ended.expect("it does not panic").expect("its input has no errors");
            output.received
        })
    })
}

/// The messages to the editor.
struct EditorOutput {
    lines: Lines<BufReader<DuplexStream>>,
    received: Vec<Value>,
}

impl EditorOutput {
    async fn receive(&mut self) {
        let line = self.lines.next_line().await.expect("UTF-8").expect("the program runs");
        self.received.push(serde_json::from_str(&line).expect("every line is JSON"));
    }

    async fn until(&mut self, done: impl Fn(&Value) -> bool) {
        while !self.received.iter().any(&done) {
            self.receive().await;
        }
    }

    /// Reads while something is sent, so that neither side waits for the other.
    async fn alongside(&mut self, sent: impl Future<Output = io::Result<()>>) {
        let mut sent = std::pin::pin!(sent);
        loop {
            tokio::select! {
                sent = &mut sent => return sent.expect("the program reads"),
                () = self.receive() => {}
            }
        }
    }

    /// A line with the id of the editor's session.
    async fn with_session(&mut self, line: &[u8]) -> Vec<u8> {
        let Some(text) = std::str::from_utf8(line).ok().filter(|text| text.contains(SESSION)) else {
            return line.to_vec();
        };
        let text = text.to_owned();
        let id = |message: &Value| message["result"]["sessionId"].as_str().map(ToOwned::to_owned);
        // Without a session it is sent as it is.
        tokio::time::timeout(WAIT, self.until(|message| id(message).is_some())).await.ok();
        let id = self.received.iter().find_map(id).unwrap_or_else(|| "s".to_owned());
        text.replace(SESSION, &id).into_bytes()
    }
}
