//! A host's process, with idle sessions.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use grove_agents::scripted::ScriptedAgent;
use grove_client::{Ahp, Client, Endpoint, Options};
use grove_host::{Config, Env, Host, Token};
use grove_server::AccessPolicy;
use grove_wire::ahp::CreateSessionParams;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// The number of folders that the sessions of a host are spread over.
const FOLDERS: usize = 40;

/// Creates the sessions, prints the address, and serves until stdin is closed.
pub(crate) async fn run(sessions: usize) -> Result<()> {
    let env = Env::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let token = Token::generate(env.random.as_ref())?;
    let host = Host::in_memory(env, Config::default(), vec![Arc::new(ScriptedAgent)]).await?;
    grove_server::serve(host, AccessPolicy::loopback(token.clone(), address), Box::new(listener));
    let url = format!("ws://{address}/ws");
    let options = Options { list_sessions: false, ..Options::default() };
    let client = Client::connect(Endpoint::tcp(&url, Some(token.reveal()))?, Ahp::default(), options).await?;
    for number in 0..sessions {
        let create = CreateSessionParams {
            channel: format!("scripted:/{number}"),
            working_directories: Some(vec![format!("file:///srv/project-{}", number % FOLDERS)]),
            ..CreateSessionParams::default()
        };
        client.request(create).await?;
    }
    println!("{url} {}", token.reveal());
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// A host in its own process, which ends with this value.
pub(crate) struct Process {
    /// Its address and token.
    pub(crate) way: String,
    _child: Child,
}

impl Process {
    pub(crate) async fn start(sessions: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["host", &sessions.to_string()])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut way = String::new();
        let stdout = child.stdout.take().context("a host has no output")?;
        BufReader::new(stdout).read_line(&mut way).await?;
        ensure!(way.starts_with("ws://"), "a host did not start");
        Ok(Self { way: way.trim().to_owned(), _child: child })
    }
}
