//! Arguments of `grove copilot`.

use clap::Args;

pub(super) const COPILOT_HELP: &str = "\
To let the SDK start Grove itself:
  new CopilotClient({ connection: RuntimeConnection.forStdio(
    { path: \"grove\", args: [\"copilot\"] }) })

To connect to a running host, with the host's token:
  grove serve --copilot-listen 127.0.0.1:4141
  new CopilotClient({ connection: RuntimeConnection.forUri(
    \"127.0.0.1:4141\", { connectionToken }) })

To serve clients that connect to a port. They must send a token: the value of
COPILOT_CONNECTION_TOKEN, or else the one in the file `copilot-token` of the
data folder:
  grove copilot --headless --port 4141

A session's `model` names the agent: `scripted`, or `<agent>/<model>`; without
one, or with an unknown one, it is `default-agent`. [copilot.models] in
grove.toml maps other names. Options of the Copilot CLI that Grove does not
have are ignored with a note.";

#[derive(Debug, Args)]
pub(crate) struct CopilotArgs {
    /// Serve a program rather than a person; the SDK sets it, and there is no other mode
    #[arg(long, required_unless_present = "server")]
    headless: bool,
    // Its name in older releases of the SDK.
    #[arg(long, hide = true)]
    server: bool,
    /// Speak on stdin and stdout
    #[arg(long, conflicts_with = "port")]
    pub(crate) stdio: bool,
    /// Listen on this port of the loopback address; 0, or neither this nor --stdio, takes a free one
    ///
    /// Clients must send the token in COPILOT_CONNECTION_TOKEN. If that is not set, a token is created in the file
    /// `copilot-token` of the data folder.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Allow everything in the sessions that the program creates, except for what a rule denies; also `--yolo`
    #[arg(long, aliases = ["yolo", "allow-all-tools"])]
    pub(crate) allow_all: bool,
    // The SDK passes this to its own CLI; it has no meaning here.
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
