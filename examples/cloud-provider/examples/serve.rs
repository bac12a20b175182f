//! A host with the cloud in its session hub.
//!
//! Run `cargo run -p grove-example-cloud-provider --example serve`, then connect to the printed address and request
//! `x-grove/sessions/list`.

#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::error::Error;
use std::sync::Arc;

use grove_example_cloud_provider::CloudProvider;
use grove_example_cloud_provider::cloud::Cloud;
use grove_host::{Config, Env, Host, Token};
use grove_server::{AccessPolicy, InProcessHost};
use grove_session_hub::{NoRemoteHosts, SessionHub, SessionSources};
use grove_sessions::{InMemoryState, Registration};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A host that runs for as long as the runtime.
#[derive(Debug)]
pub struct Served {
    pub address: String,
    pub token: Token,
    pub hub: SessionHub,
}

/// Starts a host with a session hub on a free port.
pub async fn start() -> Result<Served, Box<dyn Error>> {
    let env = Env::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let on = listener.local_addr()?;
    let token = Token::generate(env.random.as_ref())?;
    let host = Host::in_memory(env, Config::default(), Vec::new()).await?;
    let address = format!("ws://{on}/ws");
    let hub = SessionHub::new(SessionSources {
        this_host: InProcessHost::new(&host),
        hosts: Arc::new(NoRemoteHosts),
        history: None,
        memory: Arc::new(InMemoryState::default()),
        trust: None,
    });
    host.set_session_hub(Arc::new(hub.clone()));
    grove_server::serve(host, AccessPolicy::loopback(token.clone(), on), Box::new(listener));
    Ok(Served { address, token, hub })
}

/// Registers a cloud while clients are connected. Dropping the registration removes it; the handle ends its task.
pub fn plug_in(hub: &SessionHub, cloud: Arc<Cloud>) -> Result<(Registration, AbortHandle), Box<dyn Error>> {
    let provider = Arc::new(CloudProvider::new(cloud)?);
    let registration = hub.registry().register(provider.clone())?;
    Ok((registration, tokio::spawn(provider.run()).abort_handle()))
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let served = start().await?;
    let _plugged_in = plug_in(&served.hub, Cloud::new(&[("acme", "site"), ("acme", "app")]))?;
    println!("{}?tkn={}", served.address, served.token.reveal());
    std::future::pending().await
}
