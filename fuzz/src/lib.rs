//! Fuzz bodies: one plain function for every parser of external input.
//!
//! A body gets any bytes and must not panic; where possible, it also checks a round trip. [`BODIES`] lists them all
//! with the corpus each starts from (`corpus/<name>/`).
//!
//! `tests/replay.rs` runs every body on stable, over its corpus and random mutations of it. The package in `libfuzzer/`
//! wraps each for cargo-fuzz (`make fuzz`).

#![allow(clippy::panic, clippy::expect_used, reason = "a fuzz body says what it found by panicking")]

mod acp;
mod ahp;
mod bodies;
mod copilot;
mod credentials;
mod devices;
mod doors;
mod editors;
mod histories;
mod logs;
mod params;
mod policies;
mod shims;
mod stores;
mod trees;
mod workspaces;

pub use acp::*;
pub use ahp::*;
pub use bodies::*;
pub use copilot::*;
pub use credentials::*;
pub use devices::*;
pub use doors::*;
pub use editors::*;
pub use histories::*;
pub use logs::*;
pub use params::*;
pub use policies::*;
pub use shims::*;
pub use stores::*;
pub use trees::*;
pub use workspaces::*;

/// A body and its name.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// Every body.
pub const BODIES: &[Body] = &[
    Body { name: "frame", run: frame },
    Body { name: "action", run: action },
    Body { name: "reducers", run: reducers },
    Body { name: "ahp", run: ahp },
    Body { name: "acp", run: acp },
    Body { name: "copilot", run: copilot },
    Body { name: "copilot_frames", run: copilot_frames },
    Body { name: "script", run: script },
    Body { name: "uri", run: uri },
    Body { name: "journal", run: journal },
    Body { name: "log", run: log },
    Body { name: "index", run: index },
    Body { name: "tree", run: tree },
    Body { name: "names", run: names },
    Body { name: "provider", run: provider },
    Body { name: "register", run: register },
    Body { name: "manifest", run: manifest },
    Body { name: "checkpoints", run: checkpoints },
    Body { name: "git_config", run: git_config },
    Body { name: "vscode_flat", run: vscode_flat },
    Body { name: "vscode_log", run: vscode_log },
    Body { name: "copilot_events", run: copilot_events },
    Body { name: "claude_log", run: claude_log },
    Body { name: "codex_rollout", run: codex_rollout },
    Body { name: "pi_log", run: pi_log },
    Body { name: "gemini_log", run: gemini_log },
    Body { name: "opencode_export", run: opencode_export },
    Body { name: "prompt_blocks", run: prompt_blocks },
    Body { name: "editing_state", run: editing_state },
    Body { name: "vscode_small", run: vscode_small },
    Body { name: "shell_command", run: shell_command },
    Body { name: "policy_file", run: policy_file },
    Body { name: "params", run: params },
    Body { name: "shim_frames", run: shim_frames },
    Body { name: "token_file", run: token_file },
    Body { name: "subscription", run: subscription },
    Body { name: "audit_log", run: audit_log },
    Body { name: "http", run: http },
    Body { name: "connection", run: connection },
    Body { name: "copilot_port", run: copilot_port },
    Body { name: "editor", run: editor },
];
