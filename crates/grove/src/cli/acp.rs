//! Arguments of `grove acp`.

use clap::Args;

pub(super) const ACP_HELP: &str = "\
In the settings of Zed:
  \"agent_servers\": {
    \"Grove\": { \"command\": \"grove\", \"args\": [\"acp\"] }
  }

A session of the editor is a session of the host: `grove ls`, the page and
every other client see it live, and it goes on when the editor is closed.
docs/editors.md has more.";

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// The agent of new sessions, as `grove agents` lists it [default: the host's default agent]
    ///
    /// The editor can choose another one before the first prompt.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The host, as `grove hosts` lists it [default: the host of this data folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Fail if no host is running, instead of starting one in the background
    #[arg(long)]
    pub(crate) no_start: bool,
}
