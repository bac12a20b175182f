//! `grove acp`: Grove as an agent of the Agent Client Protocol, on stdin and stdout.

use std::sync::Arc;

use async_trait::async_trait;
use grove_acp_agent::{AgentChoice, EditorClient, HostAccess};
use grove_client::{Ahp, Client};

use super::{Failure, command_runtime};
use crate::cli::{AcpArgs, Common, ConnectArgs, Protocol};
use crate::connect::HostConnector;

/// The way to the host of the command line.
struct EditorHost(HostConnector);

#[async_trait]
impl HostAccess for EditorHost {
    async fn connect(&self, editor: EditorClient) -> Result<Client<Ahp>, String> {
        self.0.editor(editor).await.map_err(|failure| failure.to_string())
    }

    async fn start(&self) -> Result<(), String> {
        self.0.ensure_host().await.map_err(|failure| failure.to_string())
    }

    fn shares_files(&self) -> bool {
        !self.0.is_remote()
    }
}

pub(crate) fn run(common: &Common, args: &AcpArgs) -> Result<(), Failure> {
    log_to_stderr();
    let connect = ConnectArgs {
        host: Some(args.host.clone().unwrap_or_else(|| crate::hosts::LOCAL.to_owned())),
        no_start: args.no_start,
        protocol: Protocol::Ahp,
    };
    let access = Arc::new(EditorHost(HostConnector::new(common, &connect)?));
    let choice = AgentChoice { agent: args.agent.clone() };
    let runtime = command_runtime()?;
    let ended = runtime.block_on(grove_acp_agent::serve(access, choice, tokio::io::stdin(), tokio::io::stdout()));
    // Do not wait for a reader that is blocked by the editor.
    runtime.shutdown_background();
    Ok(ended?)
}

/// Logs to stderr, which editors show or keep: stdout has nothing but messages.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("GROVE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
