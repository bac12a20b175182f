//! A host with a custom agent: run `cargo run -p grove-server --example embed`, then connect to the printed address.

#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::{AgentInfo, TurnId};
use grove_host::{Config, Env, Host, Token};
use grove_server::AccessPolicy;
use tokio::net::TcpListener;

/// An agent that repeats every message twice.
struct Echo;

#[async_trait]
impl Agent for Echo {
    fn info(&self) -> AgentInfo {
        let (display_name, description) = ("Echo".to_owned(), "Says everything twice".to_owned());
        AgentInfo { id: "echo".into(), display_name, description, models: Vec::new() }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(Echo))
    }
}

#[async_trait]
impl AgentSession for Echo {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        turn.text(format!("{0} {0}", prompt.message.text)).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

/// Starts the host on a free port and returns its address and token. It serves as long as the runtime runs.
pub async fn start() -> Result<(String, String), Box<dyn Error>> {
    let env = Env::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let token = Token::generate(env.random.as_ref())?;
    let host = Host::in_memory(env, Config::default(), vec![Arc::new(Echo)]).await?;
    grove_server::serve(host, AccessPolicy::loopback(token.clone(), address), Box::new(listener));
    Ok((format!("ws://{address}/ws"), token.reveal().to_owned()))
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let (address, token) = start().await?;
    println!("{address}?tkn={token}");
    std::future::pending().await
}
