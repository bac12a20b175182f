//! The peer: a server that starts the same agents, and forwards each line of their stdout to every client.
//!
//! It stores nothing, has no sessions and no order, and asks for no permissions.

use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{broadcast, watch};

use crate::job::Shape;

/// The number of lines that a client may lag behind. Beyond it the client is cut off, which fails the run.
const QUEUE: usize = 1 << 16;

/// An agent with a session.
struct Agent {
    /// Ends the agent on drop.
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    session: Value,
}

/// Serves until stdin ends.
pub(crate) fn run(shape: &str) -> Result<()> {
    let shape: Shape = serde_json::from_str(shape)?;
    std::thread::spawn(|| {
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        // The agents end with their own stdin.
        std::process::exit(if ended.is_ok() { 0 } else { 1 });
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(shape))
}

async fn serve(shape: Shape) -> Result<()> {
    let lines = broadcast::Sender::new(QUEUE);
    let (go, gone) = watch::channel(false);
    for _ in 0..shape.agents {
        let agent = Agent::start().await?;
        let (lines, gone, prompt) = (lines.clone(), gone.clone(), shape.prompt());
        tokio::spawn(async move {
            if let Err(error) = agent.relay(lines, gone, prompt).await {
                eprintln!("relay: {error:#}");
            }
        });
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({"address": listener.local_addr()?, "pid": std::process::id()}));
    let go = Arc::new(go);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (lines, go) = (lines.subscribe(), go.clone());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, lines, &go).await {
                eprintln!("relay: {error:#}");
            }
        });
    }
}

/// Forwards every line to a client. Any input of the client starts the agents.
async fn connection(
    stream: TcpStream,
    mut lines: broadcast::Receiver<Arc<str>>,
    go: &watch::Sender<bool>,
) -> Result<()> {
    let (mut from, to) = stream.into_split();
    let mut to = tokio::io::BufWriter::new(to);
    let mut word = [0; 16];
    let mut listens = true;
    loop {
        tokio::select! {
            line = lines.recv() => {
                to.write_all(line.context("a client is too slow")?.as_bytes()).await?;
                // All waiting lines go out in one write.
                while let Ok(line) = lines.try_recv() {
                    to.write_all(line.as_bytes()).await?;
                }
                to.flush().await?;
            }
            read = from.read(&mut word), if listens => match read? {
                0 => listens = false,
                _ => drop(go.send_replace(true)),
            },
        }
    }
}

impl Agent {
    async fn start() -> Result<Self> {
        let mut command = Command::new(grove_testkit::acp::agent_program());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("starting an agent")?;
        let stdin = child.stdin.take().context("an agent without a stdin")?;
        let lines = BufReader::new(child.stdout.take().context("an agent without a stdout")?).lines();
        let mut agent = Self { _child: child, stdin, lines, session: Value::Null };
        agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await?;
        let new = agent.call("session/new", json!({"cwd": "/", "mcpServers": []})).await?;
        agent.session = new["sessionId"].clone();
        Ok(agent)
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.send(method, params).await?;
        let line = self.lines.next_line().await?.context("the agent ended")?;
        let answer: Value = serde_json::from_str(&line)?;
        ensure!(answer.get("result").is_some(), "{method}: {line}");
        Ok(answer["result"].clone())
    }

    async fn send(&mut self, method: &str, params: Value) -> Result<()> {
        let request = format!("{}\n", json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        Ok(self.stdin.write_all(request.as_bytes()).await?)
    }

    async fn relay(
        mut self,
        lines: broadcast::Sender<Arc<str>>,
        mut gone: watch::Receiver<bool>,
        prompt: String,
    ) -> Result<()> {
        gone.wait_for(|gone| *gone).await?;
        let prompt = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": prompt}]});
        self.send("session/prompt", prompt).await?;
        while let Some(mut line) = self.lines.next_line().await? {
            line.push('\n');
            if lines.send(line.into()).is_err() {
                bail!("there are no clients");
            }
        }
        Ok(())
    }
}
