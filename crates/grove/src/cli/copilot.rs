//! What can be typed after `grove copilot`.

use clap::Args;

pub(super) const COPILOT_HELP: &str = "\
In the SDK, to have it run Grove by itself:
  new CopilotClient({ connection: RuntimeConnection.forStdio(
    { path: \"grove\", args: [\"copilot\"] }) })

Or to a host that is running already, with the host's token:
  grove serve --copilot-listen 127.0.0.1:4141
  new CopilotClient({ connection: RuntimeConnection.forUri(
    \"127.0.0.1:4141\", { connectionToken }) })

Or start it for clients that connect to a port. They must send a token: the
value of COPILOT_CONNECTION_TOKEN, or else that in the file `copilot-token` of
the data folder:
  grove copilot --headless --port 4141

A session's `model` names the agent: `scripted`, or `<agent>/<model>`; without
one it is `default-agent`.";

#[derive(Debug, Args)]
pub(crate) struct CopilotArgs {
    /// Serve a program rather than a person: what the SDK says, and all there is
    #[arg(long, required = true)]
    headless: bool,
    /// Speak on stdin and stdout
    #[arg(long, conflicts_with = "port")]
    pub(crate) stdio: bool,
    /// Listen on this port of the loopback address; 0, or neither this nor --stdio, is any that is free
    ///
    /// Clients must send the token in COPILOT_CONNECTION_TOKEN. Where that is not set, a token is created in the file
    /// `copilot-token` of the data folder.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    // What the SDK says to its own CLI, which means nothing here.
    #[arg(long, hide = true)]
    no_auto_update: bool,
    #[arg(long, hide = true)]
    log_level: Option<String>,
    #[arg(long, hide = true)]
    auth_token_env: Option<String>,
    #[arg(long, hide = true)]
    no_auto_login: bool,
    #[arg(long, hide = true)]
    session_idle_timeout: Option<u64>,
    #[arg(long, hide = true)]
    remote: bool,
}
