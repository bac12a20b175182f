//! The known agents, in the order of lists.

use super::{AgentEntry, HookSupport, Install, SignIn};
use crate::acp::hooks::HookFormat;

/// Keys of the model providers, for agents that have no provider of their own.
macro_rules! with_provider_keys {
    ($($own:literal),* $(,)?) => {
        &[
            $($own,)*
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "AZURE_OPENAI_API_KEY",
            "AZURE_OPENAI_ENDPOINT",
            "CEREBRAS_API_KEY",
            "DEEPSEEK_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GROQ_API_KEY",
            "MISTRAL_API_KEY",
            "OLLAMA_HOST",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENROUTER_API_KEY",
            "XAI_API_KEY",
        ]
    };
}

/// OpenCode's permissions for a session with hooks. Its included agents have some of their own, and it passes on no requests of
/// subagents.
const OPENCODE_ASKS: &str = r#"{"permission": {"*": "ask", "task": "deny"}, "agent": {
    "build": {"permission": {"*": "ask", "task": "deny"}},
    "plan": {"permission": {"*": "ask", "task": "deny"}}}}"#;

/// Every agent that is known by name.
pub const AGENTS: &[AgentEntry] = &[
    AgentEntry {
        id: "claude",
        display_name: "Claude Code",
        description: "Anthropic's coding agent, through its ACP adapter",
        // The adapter was renamed; the old name is still in use.
        commands: &["claude-agent-acp", "claude-code-acp"],
        args: &[],
        env: &[],
        pass: &["ANTHROPIC_*", "CLAUDE_*"],
        auth: &[],
        log_in: "run `claude` and log in there, or set ANTHROPIC_API_KEY",
        install: Install::Npm("@agentclientprotocol/claude-agent-acp"),
        hooks: HookSupport::AsksButReads,
    },
    AgentEntry {
        id: "codex",
        display_name: "Codex",
        description: "OpenAI's coding agent, through its ACP adapter",
        commands: &["codex-acp"],
        args: &[],
        env: &[],
        pass: &["CODEX_*", "OPENAI_*"],
        auth: &[
            SignIn { variable: "CODEX_API_KEY", method: "codex-api-key" },
            SignIn { variable: "OPENAI_API_KEY", method: "openai-api-key" },
        ],
        log_in: "run `codex login`, or set CODEX_API_KEY or OPENAI_API_KEY",
        install: Install::Npm("@agentclientprotocol/codex-acp"),
        hooks: HookSupport::Command(HookFormat::Codex),
    },
    AgentEntry {
        id: "copilot",
        display_name: "GitHub Copilot",
        description: "GitHub's coding agent, the Copilot CLI",
        commands: &["copilot"],
        // A program that replaces itself while a turn runs is no longer the one that was started.
        args: &["--acp", "--no-auto-update"],
        env: &[],
        pass: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"],
        auth: &[],
        log_in: "run `copilot login`, or set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN",
        install: Install::Npm("@github/copilot"),
        hooks: HookSupport::Command(HookFormat::Copilot),
    },
    AgentEntry {
        id: "gemini",
        display_name: "Gemini CLI",
        description: "Google's coding agent",
        commands: &["gemini"],
        args: &["--acp"],
        env: &[],
        pass: &["GEMINI_*", "GOOGLE_*"],
        auth: &[SignIn { variable: "GEMINI_API_KEY", method: "gemini-api-key" }],
        log_in: "run `gemini` and log in there, or set GEMINI_API_KEY",
        install: Install::Npm("@google/gemini-cli"),
        hooks: HookSupport::Unknown,
    },
    AgentEntry {
        id: "opencode",
        display_name: "OpenCode",
        description: "An open coding agent for many model providers",
        commands: &["opencode"],
        args: &["acp"],
        env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
        pass: with_provider_keys!["OPENCODE_*"],
        auth: &[],
        log_in: "run `opencode auth login`, or set a model provider's key",
        install: Install::Npm("opencode-ai"),
        hooks: HookSupport::Asks { variable: "OPENCODE_CONFIG_CONTENT", settings: OPENCODE_ASKS },
    },
    AgentEntry {
        id: "qwen",
        display_name: "Qwen Code",
        description: "Alibaba's coding agent, for Qwen and other models",
        commands: &["qwen"],
        args: &["--acp"],
        env: &[],
        pass: with_provider_keys!["QWEN_*", "OPENAI_MODEL", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"],
        auth: &[SignIn { variable: "OPENAI_API_KEY", method: "openai" }],
        log_in: "run `qwen` and log in there, or set OPENAI_API_KEY with OPENAI_BASE_URL",
        install: Install::Npm("@qwen-code/qwen-code"),
        hooks: HookSupport::Unknown,
    },
    AgentEntry {
        id: "omp",
        display_name: "oh-my-pi",
        description: "A coding agent in the family of pi, for many model providers",
        commands: &["omp"],
        args: &["acp"],
        env: &[],
        pass: with_provider_keys!["OMP_*", "PI_*"],
        auth: &[],
        log_in: "run `omp` and log in there, or set a model provider's key",
        install: Install::Bun("@oh-my-pi/pi-coding-agent"),
        hooks: HookSupport::Unknown,
    },
    AgentEntry {
        id: "goose",
        display_name: "goose",
        description: "Block's open coding agent for many model providers",
        commands: &["goose"],
        args: &["acp"],
        env: &[],
        pass: with_provider_keys!["GOOSE_*", "OPENAI_HOST", "DATABRICKS_HOST", "DATABRICKS_TOKEN"],
        auth: &[],
        log_in: "run `goose configure`, or set a model provider's key",
        install: Install::Words(
            "see \"Install goose\" at https://block.github.io/goose (the command line), then `goose configure`",
        ),
        hooks: HookSupport::Unknown,
    },
];
