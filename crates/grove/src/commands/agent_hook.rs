//! `grove agent-hook`

use std::path::Path;

use grove_agents::acp::hooks::{self, HookFormat};
use grove_agents::setup::HookMode;

use super::Failure;

/// Passes a call of an agent to the hooks of its session, and prints their decision.
pub(crate) fn run(format: &str, mode: &str, socket: &Path) -> Result<(), Failure> {
    let format = HookFormat::named(format)
        .ok_or_else(|| anyhow::anyhow!("{format:?} is not the format of an agent's hooks: use codex or copilot"))?;
    let mode = if mode == "best-effort" { HookMode::BestEffort } else { HookMode::Strict };
    if let Some(output) = hooks::run(format, socket, mode, std::io::stdin().lock()) {
        anstream::println!("{output}");
    }
    Ok(())
}
