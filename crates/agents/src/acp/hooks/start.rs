//! Starting an agent so that it waits for the hooks of its session.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use grove_work::Program;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{HookFormat, socket_in};
use crate::agent::AgentError;
use crate::catalog::HookSupport;
use crate::setup::HookMode;

/// The seconds that an agent gives the command. A person may have to decide, so they are many.
const COMMAND_SECONDS: u64 = 7 * 24 * 60 * 60;
/// The variable with settings of Codex's sessions.
const CODEX_CONFIG: &str = "CODEX_CONFIG";
/// The adapter that passes them on.
const CODEX_ADAPTER: &str = "@agentclientprotocol/codex-acp";
/// The folder of the Copilot CLI's plugin, in the folder of the chat's agent.
const PLUGIN: &str = "hook-plugin";

/// Changes the command line of an agent for a session with hooks.
pub(crate) fn prepare(
    support: HookSupport,
    mode: HookMode,
    shim: &Path,
    folder: &Path,
    program: &mut Program,
) -> Result<(), AgentError> {
    if mode.is_none() {
        return Ok(());
    }
    match support {
        HookSupport::Unknown | HookSupport::AsksButReads => Ok(()),
        HookSupport::Asks { variable, settings } => add_settings(program, variable, |known| {
            let added: Map<String, Value> = serde_json::from_str(settings).unwrap_or_default();
            merge(known, added);
        }),
        HookSupport::Command(format) => {
            let command = command(format, mode, shim, folder)?;
            match format {
                HookFormat::Codex => add_settings(program, CODEX_CONFIG, |known| add_codex_hook(known, &command)),
                HookFormat::Copilot => add_copilot_plugin(program, folder, &command),
            }
        }
    }
}

/// Returns whether an agent of this name and version runs the hooks that it is started with. An earlier adapter of Codex
/// ignores them.
pub(crate) fn has_own_hooks(support: HookSupport, info: Option<(&str, &str)>) -> bool {
    match (support, info) {
        (HookSupport::Command(HookFormat::Codex), Some((CODEX_ADAPTER, version))) => {
            version.split('.').next().and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 2)
        }
        (HookSupport::Command(HookFormat::Codex), _) => false,
        _ => true,
    }
}

/// The command line of the hook, for a shell.
fn command(format: HookFormat, mode: HookMode, shim: &Path, folder: &Path) -> Result<String, AgentError> {
    // The link names this process, and another one for the agent. A newer version may have replaced the file.
    let program = match shim == Path::new("/proc/self/exe") {
        true => std::env::current_exe().map_err(|error| start_error("find Grove's program", &error))?,
        false => shim.to_owned(),
    };
    let (text, socket) = (program.to_string_lossy(), socket_in(folder));
    let socket = socket.to_string_lossy();
    let words = [
        text.strip_suffix(" (deleted)").unwrap_or(&text),
        "agent-hook",
        format.as_str(),
        if mode == HookMode::Strict { "strict" } else { "best-effort" },
        &socket,
    ];
    Ok(words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).join(" "))
}

/// Adds settings to those that a variable has.
fn add_settings(
    program: &mut Program,
    variable: &str,
    add: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), AgentError> {
    let known = program.env.get(variable).filter(|text| !text.trim().is_empty());
    let mut settings = match known.map(|text| serde_json::from_str::<Map<String, Value>>(text)) {
        None => Map::new(),
        Some(Ok(settings)) => settings,
        Some(Err(error)) => {
            let problem =
                format!("{variable} in its environment is no JSON object ({error}): correct it, or leave it out");
            return Err(AgentError::Start(problem));
        }
    };
    add(&mut settings);
    program.env.insert(variable.to_owned(), Value::Object(settings).to_string());
    Ok(())
}

/// Merges objects member by member; other values are replaced.
fn merge(known: &mut Map<String, Value>, added: Map<String, Value>) {
    for (name, value) in added {
        match (known.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(added)) => merge(known, added),
            (_, value) => drop(known.insert(name, value)),
        }
    }
}

/// Adds the hook to Codex's settings, and marks this one hook as known: Codex runs no other that a person has not seen.
fn add_codex_hook(settings: &mut Map<String, Value>, command: &str) {
    let hook = json!({"type": "command", "command": command, "timeout": COMMAND_SECONDS});
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    if !hooks.is_object() {
        *hooks = json!({});
    }
    let before = hooks.get("PreToolUse").and_then(Value::as_array).cloned().unwrap_or_default();
    let place = before.len();
    let groups: Vec<Value> = before.into_iter().chain([json!({"matcher": ".*", "hooks": [hook]})]).collect();
    let key = format!("/<session-flags>/config.toml:pre_tool_use:{place}:0");
    // The digest of what Codex reads, with its members in order.
    let read = json!({"event_name": "pre_tool_use", "hooks": [
        {"async": false, "command": command, "timeout": COMMAND_SECONDS, "type": "command"}], "matcher": ".*"});
    let digest = format!("sha256:{}", hex::encode(Sha256::digest(read.to_string())));
    let state = json!({ key: {"trusted_hash": digest} });
    let added = json!({"PreToolUse": groups, "state": state});
    if let (Value::Object(hooks), Value::Object(added)) = (hooks, added) {
        merge(hooks, added);
    }
}

/// Writes a plugin with the hook, and has the Copilot CLI load it.
fn add_copilot_plugin(program: &mut Program, folder: &Path, command: &str) -> Result<(), AgentError> {
    let plugin = folder.join(PLUGIN);
    let hook = json!({"type": "command", "bash": command, "timeoutSec": COMMAND_SECONDS});
    let about =
        json!({"name": "grove", "version": "1.0.0", "description": "The hooks of a session", "hooks": "hooks.json"});
    let hooks = json!({"version": 1, "hooks": {"preToolUse": [hook]}});
    let write = || -> io::Result<()> {
        // The shim requires that nobody else can enter its folder.
        DirBuilder::new().recursive(true).mode(0o700).create(&plugin)?;
        std::fs::write(plugin.join("plugin.json"), about.to_string())?;
        std::fs::write(plugin.join("hooks.json"), hooks.to_string())
    };
    write().map_err(|error| start_error(&format!("write {}", plugin.display()), &error))?;
    program.args.extend(["--plugin-dir".to_owned(), plugin.to_string_lossy().into_owned()]);
    Ok(())
}

fn start_error(what: &str, error: &io::Error) -> AgentError {
    AgentError::Start(format!("cannot {what} for the hooks of the session: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_of_codex_is_the_only_one_that_is_marked_as_known() {
        let mut settings = Map::new();
        settings.insert("model".to_owned(), "x".into());
        settings.insert("hooks".to_owned(), json!({"PreToolUse": [{"matcher": "Bash", "hooks": []}], "Stop": []}));
        add_codex_hook(&mut settings, "/bin/hook");
        let hooks = &settings["hooks"];
        assert_eq!(settings["model"], "x");
        assert_eq!(hooks["Stop"], json!([]));
        assert_eq!(hooks["PreToolUse"][0]["matcher"], "Bash");
        assert_eq!(hooks["PreToolUse"][1]["hooks"][0]["command"], "/bin/hook");
        let known: Vec<&String> = hooks["state"].as_object().unwrap().keys().collect();
        assert_eq!(known, ["/<session-flags>/config.toml:pre_tool_use:1:0"]);
    }

    #[test]
    fn an_adapter_that_ignores_hooks_is_known() {
        let codex = HookSupport::Command(HookFormat::Codex);
        assert!(has_own_hooks(codex, Some((CODEX_ADAPTER, "2.6.0"))));
        for other in [None, Some(("codex-acp", "2.6.0")), Some((CODEX_ADAPTER, "1.9.0")), Some((CODEX_ADAPTER, ""))] {
            assert!(!has_own_hooks(codex, other), "{other:?}");
        }
        assert!(has_own_hooks(HookSupport::Unknown, None), "those are refused by their ability");
    }

    #[test]
    fn settings_for_hooks_go_before_those_of_the_variable_and_keep_the_rest() {
        let mut known: Map<String, Value> =
            serde_json::from_str(r#"{"model": "m", "permission": {"bash": "allow"}}"#).unwrap();
        merge(&mut known, serde_json::from_str(r#"{"permission": {"*": "ask"}}"#).unwrap());
        assert_eq!(Value::Object(known), json!({"model": "m", "permission": {"bash": "allow", "*": "ask"}}));
    }
}
