//! `grove mcp-tools`

use anyhow::Context;
use grove_agents::acp::client_tools::relay::{self, RelayOptions};

use super::Failure;

pub(crate) fn run() -> Result<(), Failure> {
    let options = RelayOptions::from_env().context("cannot serve the tools of clients")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let served = runtime.block_on(relay::run(options, tokio::io::stdin(), tokio::io::stdout()));
    // A read of stdin may be waiting for ever.
    runtime.shutdown_background();
    Ok(served.context("cannot serve the tools of clients")?)
}
