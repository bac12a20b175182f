//! The agents, and their configuration for the fake model.

use std::path::PathBuf;

use grove_testkit::model::{FakeModel, MODEL};
use serde_json::json;

use crate::support::TestHome;

/// A real agent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    OpenCode,
    Codex,
    Copilot,
}

/// A program that these tests need; `None`, with a message, if they are not enabled.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn installed(package: &str, name: &str) -> Option<PathBuf> {
    let Some(peers) = std::env::var_os("GROVE_PEERS") else {
        eprintln!("skipped: GROVE_PEERS is not set (`make test-agents` sets it)");
        return None;
    };
    let program = PathBuf::from(peers).join("npm").join(package).join("node_modules/.bin").join(name);
    assert!(program.exists(), "{} is not there: run `make test-agents`", program.display());
    Some(program)
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::OpenCode => "opencode",
            Peer::Codex => "codex",
            Peer::Copilot => "copilot",
        }
    }

    /// Its program; `None`, with a message, if these tests are not enabled.
    pub(crate) fn program(self) -> Option<PathBuf> {
        match self {
            Peer::OpenCode => installed("opencode-ai", "opencode"),
            Peer::Codex => installed("agentclientprotocol-codex-acp", "codex-acp"),
            Peer::Copilot => installed("github-copilot", "copilot"),
        }
    }

    /// Writes the agent's configuration, and Grove's.
    pub(crate) fn settle(self, place: &TestHome, model: &FakeModel, program: &std::path::Path) {
        let url = model.url();
        let (args, env) = match self {
            Peer::OpenCode => {
                let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake",
                    "options": {"baseURL": format!("{url}/v1"), "apiKey": "x"}, "models": {MODEL: {"name": "Fake"}}});
                let config = json!({"model": format!("fake/{MODEL}"), "provider": {"fake": provider},
                    "permission": {"bash": "ask"}});
                place.write("work/opencode.json", config.to_string());
                let off =
                    ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
                (vec!["acp"], off.map(|name| (name, "1".to_owned())).to_vec())
            }
            Peer::Codex => {
                let config = format!(
                    "model = \"{MODEL}\"\nmodel_provider = \"fake\"\nsandbox_mode = \"danger-full-access\"\n\
                     approval_policy = \"on-request\"\n[model_providers.fake]\nname = \"fake\"\n\
                     base_url = \"{url}/v1\"\nwire_api = \"responses\"\nrequires_openai_auth = false\n"
                );
                place.write("codex/config.toml", config);
                let home = ("CODEX_HOME", place.path("codex").display().to_string());
                (vec![], vec![home, ("INITIAL_AGENT_MODE", "agent-full-access".to_owned())])
            }
            Peer::Copilot => {
                let env = [
                    ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
                    ("COPILOT_MODEL", MODEL.to_owned()),
                    ("COPILOT_PROVIDER_API_KEY", "x".to_owned()),
                    ("COPILOT_OFFLINE", "true".to_owned()),
                    ("COPILOT_AUTO_UPDATE", "false".to_owned()),
                ];
                (vec!["--acp", "--no-auto-update"], env.to_vec())
            }
        };
        place.write("work/README.md", "# A folder to work in\n");
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let command: Vec<_> =
            std::iter::once(program.display().to_string()).chain(args.iter().map(ToString::to_string)).collect();
        let env = env.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect::<Vec<_>>().join(", ");
        let command = serde_json::to_string(&command).unwrap();
        let toml = format!("[agents.{}]\ncommand = {command}\nenv = {{ {env} }}\n", self.name());
        place.write("home/.config/grove/grove.toml", toml);
    }
}
