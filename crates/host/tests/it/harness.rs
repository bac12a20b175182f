//! A host on connections that are pairs of pipes.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_host::server::{self, Access, Token};
use grove_host::{Config, Env, Host, Listener, Stream};
use grove_testkit::Client;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

const ADDRESS: &str = "127.0.0.1:7000";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) struct TestHost {
    pub(crate) host: Host,
    dial: mpsc::UnboundedSender<DuplexStream>,
}

/// Connections come through a channel.
struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);

#[async_trait]
impl Listener for Pipes {
    async fn accept(&mut self) -> io::Result<Box<dyn Stream>> {
        match self.0.recv().await {
            Some(stream) => Ok(Box::new(stream)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl TestHost {
    pub(crate) async fn start(config: Config) -> Self {
        Self::with_agents(config, vec![Arc::new(ScriptedAgent)]).await
    }

    pub(crate) async fn with_agents(config: Config, agents: Vec<Arc<dyn Agent>>) -> Self {
        let host = Host::start(Env::in_memory(), config, agents).await.unwrap();
        let (dial, pipes) = mpsc::unbounded_channel();
        let access = Access::loopback(Token::parse(TOKEN).unwrap(), ADDRESS.parse().unwrap());
        server::serve(host.clone(), access, Box::new(Pipes(pipes)));
        Self { host, dial }
    }

    pub(crate) fn url() -> String {
        format!("ws://{ADDRESS}/ws?tkn={TOKEN}")
    }

    /// A new connection's near end. `buffer` is how much fits into the pipe.
    pub(crate) fn dial(&self, buffer: usize) -> DuplexStream {
        let (near, far) = tokio::io::duplex(buffer);
        self.dial.send(far).unwrap();
        near
    }

    /// A client that has not said who it is.
    pub(crate) async fn connect(&self, client_id: &str) -> Client {
        Client::over(Box::new(self.dial(64 << 10)), &Self::url(), client_id).await
    }

    /// A client that has, and is subscribed to the root.
    pub(crate) async fn client(&self, client_id: &str) -> Client {
        let mut client = self.connect(client_id).await;
        client.initialize(&["agenthost:root"]).await;
        client
    }

    /// Brings a client back on a new connection. Gives whether it got a replay.
    pub(crate) async fn bring_back(&self, client: &mut Client) -> bool {
        client.reconnect(Box::new(self.dial(64 << 10)), &Self::url()).await
    }
}
