//! The subject of rules: the effect of a tool call, from its structured input.
//!
//! Each agent has a table, made from its recorded frames: the members of its input that hold the command, the paths
//! and the address, and the member that names an MCP tool. A title is never read: agents shorten and rephrase it. What
//! the table does not find stays unknown, and a person is asked.
//!
//! | agent | shell | paths, addresses | MCP tool |
//! |---|---|---|---|
//! | `claude` | `command` | `file_path`, `notebook_path`, `path`; `url` | `name`: `mcp__server__tool` |
//! | `codex` | `command` (a list), whatever the kind; `cmd` | keys and `move_path` of `changes` | unknown |
//! | `copilot` | `command` | `path`, `fileName`; `url` | unknown |
//! | `gemini` | sends no input: unknown | locations | unknown |
//! | `goose` | `command` of `developer/shell` | `path` | `_meta.goose.toolCall` |
//! | `omp` | `command` | `path`; `url` | unknown |
//! | `opencode` | `command` | `filePath`, `path`; `url` | unknown |
//! | `qwen` | `command` | `file_path`, `absolute_path`, `path`; `url` | unknown |
//! | others | `command` | `path`, `file_path`; `url` | unknown |
//!
//! Locations, which the protocol has for every agent, are paths too. All paths must be allowed.

use grove_core::{PermissionKind, PermissionRequest, ToolCall, ToolKind};
use grove_policy::{Kind, RequestAction, shell};
use serde_json::{Map, Value};

/// The maximum number of paths that are looked at; a call with more is unknown.
pub const MAX_PATHS: usize = 1_000;

/// The members of an agent's input.
struct InputTable {
    agent: &'static str,
    commands: &'static [&'static str],
    /// True if an input with a command is one of a shell, whatever its kind says.
    is_shell_by_command: bool,
    paths: &'static [&'static str],
    urls: &'static [&'static str],
    tools: ToolNaming,
}

/// How an agent names the tools of MCP servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolNaming {
    /// `mcp__server__tool` as the name of the call.
    Prefixed,
    /// `_meta.goose.toolCall` with the names of the extension and the tool.
    Goose,
    Unknown,
}

const TABLES: [InputTable; 8] = [
    InputTable {
        agent: "claude",
        paths: &["file_path", "notebook_path", "path"],
        tools: ToolNaming::Prefixed,
        ..OTHER
    },
    InputTable { agent: "codex", commands: &["command", "cmd"], is_shell_by_command: true, paths: &[], ..OTHER },
    InputTable { agent: "copilot", paths: &["path", "fileName"], ..OTHER },
    InputTable { agent: "gemini", commands: &[], paths: &[], urls: &[], ..OTHER },
    InputTable { agent: "goose", paths: &["path"], tools: ToolNaming::Goose, ..OTHER },
    InputTable { agent: "omp", paths: &["path"], ..OTHER },
    InputTable { agent: "opencode", paths: &["filePath", "path"], ..OTHER },
    InputTable { agent: "qwen", paths: &["file_path", "absolute_path", "path"], ..OTHER },
];

const OTHER: InputTable = InputTable {
    agent: "",
    commands: &["command"],
    is_shell_by_command: false,
    paths: &["path", "file_path"],
    urls: &["url"],
    tools: ToolNaming::Unknown,
};

/// The subject of a call. `request` is its permission request, while it waits for an answer; `directory` the session's
/// working directory.
pub fn call_subject(
    agent: &str,
    call: &ToolCall,
    request: Option<&PermissionRequest>,
    directory: Option<&str>,
) -> RequestAction {
    let table = TABLES.iter().find(|table| table.agent == agent).unwrap_or(&OTHER);
    let input = call.input.as_deref().and_then(|input| serde_json::from_str::<Map<String, Value>>(input).ok());
    let Some(input) = input else { return plain_subject(call, request) };
    let acp = call.extra.as_ref().and_then(|extra| extra.get("acp"));
    let tool = table.tools.tool(&call.name, acp);
    let command = table.commands.iter().find_map(|name| command(input.get(*name)?));
    let is_shell = match (&tool, table.tools) {
        (Some(tool), ToolNaming::Goose) => tool == "developer/shell",
        (Some(_), _) => false,
        (None, ToolNaming::Goose) => false,
        (None, _) => call.kind == Some(ToolKind::Terminal) || table.is_shell_by_command && command.is_some(),
    };
    if is_shell {
        return match command {
            Some(command) => RequestAction::Shell { command: in_folder(command, &input, directory) },
            None => RequestAction::Unknown { kind: Some(Kind::Shell) },
        };
    }
    if let Some(tool) = tool.filter(|tool| !tool.starts_with("developer/")) {
        return RequestAction::Mcp { tool };
    }
    let kind = match call.kind {
        Some(ToolKind::Read | ToolKind::Search) => Kind::Read,
        Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => Kind::Edit,
        Some(ToolKind::Fetch) => {
            let url = table.urls.iter().find_map(|name| input.get(*name)?.as_str());
            return match url {
                Some(url) => RequestAction::Fetch { url: url.to_owned() },
                None => RequestAction::Unknown { kind: Some(Kind::Fetch) },
            };
        }
        Some(ToolKind::Terminal | ToolKind::Think | ToolKind::SwitchMode) | None => {
            return RequestAction::Unknown { kind: None };
        }
    };
    let mut paths: Vec<String> = Vec::new();
    paths.extend(table.paths.iter().filter_map(|name| input.get(*name)?.as_str().map(str::to_owned)));
    match input.get("changes") {
        Some(Value::Object(changes)) => {
            paths.extend(changes.keys().cloned());
            changes.values().for_each(|change| add_destinations(change, &mut paths));
        }
        None | Some(Value::Null) => {}
        // An empty path is one that nobody knows.
        Some(_) => paths.push(String::new()),
    }
    let places = acp.and_then(|acp| acp.get("locations")?.as_array()).into_iter().flatten();
    paths.extend(places.filter_map(|place| place.get("path")?.as_str().map(str::to_owned)));
    paths.extend(request.into_iter().flat_map(|request| request.edits.iter().map(|edit| edit.path.clone())));
    paths.sort_unstable();
    paths.dedup();
    // The destination of a move may have any name.
    let is_incomplete = call.kind == Some(ToolKind::Move) && paths.len() < 2;
    match kind {
        kind if paths.is_empty() || paths.len() > MAX_PATHS || is_incomplete => {
            RequestAction::Unknown { kind: Some(kind) }
        }
        Kind::Read => RequestAction::Read { paths },
        _ => RequestAction::Edit { paths },
    }
}

/// Adds the paths that a change moves its file to.
fn add_destinations(change: &Value, paths: &mut Vec<String>) {
    match change {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("move_path", Value::Null) => {}
                    ("move_path", Value::String(path)) => paths.push(path.clone()),
                    ("move_path", _) => paths.push(String::new()),
                    (_, value) => add_destinations(value, paths),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add_destinations(value, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The subject of a call without a structured input: of our own agents, whose requests are structured, or unknown.
fn plain_subject(call: &ToolCall, request: Option<&PermissionRequest>) -> RequestAction {
    let is_own = call.extra.as_ref().is_none_or(|extra| !extra.contains_key("acp"));
    let Some(request) = request.filter(|_| is_own) else {
        let kind = match call.kind {
            Some(ToolKind::Terminal) => Some(Kind::Shell),
            Some(ToolKind::Read | ToolKind::Search) => Some(Kind::Read),
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => Some(Kind::Edit),
            Some(ToolKind::Fetch) => Some(Kind::Fetch),
            Some(ToolKind::Think | ToolKind::SwitchMode) | None => None,
        };
        return RequestAction::Unknown { kind };
    };
    let path = || request.path.clone().into_iter().collect::<Vec<_>>();
    match (request.kind, &request.full_command_text) {
        (PermissionKind::Shell, Some(command)) => RequestAction::Shell { command: command.clone() },
        (PermissionKind::Shell, None) => RequestAction::Unknown { kind: Some(Kind::Shell) },
        (PermissionKind::Read, _) => RequestAction::Read { paths: path() },
        (PermissionKind::Write, _) => RequestAction::Edit { paths: path() },
        (PermissionKind::Url, _) => match path().pop() {
            Some(url) => RequestAction::Fetch { url },
            None => RequestAction::Unknown { kind: Some(Kind::Fetch) },
        },
        (PermissionKind::Mcp, _) => RequestAction::Unknown { kind: Some(Kind::Mcp) },
    }
}

impl ToolNaming {
    /// The MCP tool that a call names, as `server/tool`.
    fn tool(self, name: &str, acp: Option<&Value>) -> Option<String> {
        match self {
            ToolNaming::Prefixed => {
                let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
                Some(format!("{server}/{tool}"))
            }
            ToolNaming::Goose => {
                let call = acp?.get("_meta")?.get("goose")?.get("toolCall")?;
                Some(format!("{}/{}", call.get("extensionName")?.as_str()?, call.get("toolName")?.as_str()?))
            }
            ToolNaming::Unknown => None,
        }
    }
}

/// The command of an input: a text, or a list of words.
fn command(value: &Value) -> Option<String> {
    match value {
        Value::String(command) if !command.is_empty() => Some(command.clone()),
        Value::Array(words) => {
            let quote = |(at, word): (usize, &Value)| match word.as_str()? {
                // In a list, "CI=1" is a program and sets no variable.
                word if at == 0 && word.contains('=') => Some(format!("'{}'", word.replace('\'', r"'\''"))),
                word => Some(shell::quote(word)),
            };
            let words: Option<Vec<String>> = words.iter().enumerate().map(quote).collect();
            words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// The command in the folder that the input names: rules see it as a `cd` before the command.
fn in_folder(command: String, input: &Map<String, Value>, directory: Option<&str>) -> String {
    let named =
        ["cwd", "workdir", "working_directory", "directory"].iter().filter_map(|name| input.get(*name)?.as_str());
    let mut differing = named.filter(|folder| !folder.is_empty() && Some(*folder) != directory);
    let Some(folder) = differing.next() else { return command };
    let inside = directory.and_then(|directory| folder.strip_prefix(directory)?.strip_prefix('/'));
    format!("cd {} && {command}", shell::quote(inside.unwrap_or(folder)))
}

#[cfg(test)]
mod tests {
    use grove_core::{Extra, ToolCallStatus};
    use serde_json::json;

    use super::*;

    /// A call as the host knows it after these updates of an agent.
    fn call(updates: &[Value]) -> ToolCall {
        let mut known = Map::new();
        for update in updates.iter().filter_map(Value::as_object) {
            known.extend(
                update.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        let kind = match known.get("kind").and_then(Value::as_str) {
            Some("execute") => Some(ToolKind::Terminal),
            Some("read") => Some(ToolKind::Read),
            Some("search") => Some(ToolKind::Search),
            Some("edit") => Some(ToolKind::Edit),
            Some("move") => Some(ToolKind::Move),
            Some("fetch") => Some(ToolKind::Fetch),
            _ => None,
        };
        let name = known.get("name").and_then(Value::as_str).unwrap_or("tool").to_owned();
        let input = known.remove("rawInput").filter(|input| *input != json!({})).map(|input| input.to_string());
        let extra: Extra = [("acp".to_owned(), Value::Object(known))].into_iter().collect();
        ToolCall {
            id: "c".into(),
            display_name: name.clone(),
            name,
            kind,
            language: None,
            invocation_message: "rm -rf /".into(),
            intention: None,
            client: None,
            input,
            confirmed: None,
            output: None,
            status: ToolCallStatus::Running,
            ready_rank: None,
            announced: None,
            extra: Some(extra),
            running_since: None,
            ran_ms: None,
        }
    }

    fn subject(agent: &str, update: Value) -> RequestAction {
        call_subject(agent, &call(&[update]), None, Some("/w"))
    }

    /// The calls of a recording up to the first permission request, or to the end of the first call.
    #[cfg_attr(not(outside_fixtures), allow(dead_code, reason = "only recordings need it"))]
    fn recorded(agent: &str) -> RequestAction {
        let path = grove_fixtures::outside("acp").join(format!("{agent}.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut updates = Vec::new();
        for line in text.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let params = &message["msg"]["params"];
            if message["msg"]["method"] == "session/request_permission" {
                updates.push(params["toolCall"].clone());
                break;
            }
            let update = &params["update"];
            if update["sessionUpdate"].as_str().is_some_and(|kind| kind.starts_with("tool_call")) {
                if update["status"] == "completed" {
                    break;
                }
                updates.push(update.clone());
            }
        }
        assert!(!updates.is_empty(), "{agent} calls no tool");
        call_subject(agent, &call(&updates), None, None)
    }

    #[test]
    #[cfg_attr(not(outside_fixtures), ignore = "needs recordings of agents")]
    fn recorded_commands_come_from_the_input_and_never_from_a_title() {
        let command = "echo hello-from-tool && ls";
        for agent in ["claude", "copilot", "goose", "omp", "qwen"] {
            assert_eq!(recorded(agent), RequestAction::Shell { command: command.to_owned() }, "{agent}");
        }
        let elsewhere =
            |folder: &str, command: &str| RequestAction::Shell { command: format!("cd {folder} && {command}") };
        assert_eq!(recorded("codex"), elsewhere("/home/dev/acp/w-codex", &format!("/bin/bash -lc '{command}'")));
        assert!(matches!(recorded("opencode"), RequestAction::Shell { command: found } if found.ends_with(command)));
        assert_eq!(
            recorded("gemini"),
            RequestAction::Unknown { kind: Some(Kind::Shell) },
            "it has the command in its title alone"
        );
    }

    #[test]
    fn paths_addresses_and_tools_come_from_the_members_of_the_agent() {
        let edit = json!({"kind": "edit", "rawInput": {"file_path": "/w/a"}, "locations": [{"path": "/w/b"}]});
        assert_eq!(subject("claude", edit), RequestAction::Edit { paths: vec!["/w/a".into(), "/w/b".into()] });
        let changes = json!({"kind": "edit", "rawInput": {"changes": {"/w/x": {}, "/w/y": {}}}});
        assert_eq!(subject("codex", changes), RequestAction::Edit { paths: vec!["/w/x".into(), "/w/y".into()] });
        let moves = json!({"kind": "edit", "rawInput": {"changes": {
            "/w/x": {"type": "update", "move_path": "/w/z"}, "/w/y": {"update": {"move_path": "/etc/y"}}}}});
        let paths = ["/etc/y", "/w/x", "/w/y", "/w/z"].map(str::to_owned).to_vec();
        assert_eq!(subject("codex", moves), RequestAction::Edit { paths });
        let fetch = json!({"kind": "fetch", "rawInput": {"url": "https://docs.rs"}});
        assert_eq!(subject("claude", fetch), RequestAction::Fetch { url: "https://docs.rs".into() });
        let tool = json!({"name": "mcp__github__get_issue", "rawInput": {"command": "ls"}});
        assert_eq!(subject("claude", tool), RequestAction::Mcp { tool: "github/get_issue".into() });
        let goose = json!({"rawInput": {"command": "ls"}, "_meta": {"goose": {"toolCall": {"toolName": "run", "extensionName": "x"}}}});
        assert_eq!(subject("goose", goose), RequestAction::Mcp { tool: "x/run".into() });
    }

    #[test]
    fn a_command_is_judged_in_its_folder_and_a_list_sets_no_variable() {
        let shell = |command: &str| RequestAction::Shell { command: command.to_owned() };
        let inside = json!({"kind": "execute", "rawInput": {"command": "ls", "directory": "/w/src"}});
        assert_eq!(subject("qwen", inside), shell("cd src && ls"));
        let outside = json!({"kind": "execute", "rawInput": {"command": "ls", "directory": "/etc"}});
        assert_eq!(subject("qwen", outside), shell("cd /etc && ls"));
        let same = json!({"kind": "execute", "rawInput": {"command": "ls", "cwd": "", "directory": "/w"}});
        assert_eq!(subject("qwen", same), shell("ls"));
        let list = json!({"kind": "execute", "rawInput": {"command": ["CI=1", "ls"]}});
        assert_eq!(subject("codex", list), shell("'CI=1' ls"));
    }

    #[test]
    fn what_an_agent_does_not_say_stays_unknown() {
        for (update, kind) in [
            (json!({"kind": "execute", "title": "ls"}), Some(Kind::Shell)),
            (json!({"kind": "execute", "rawInput": {"description": "ls"}}), Some(Kind::Shell)),
            (json!({"kind": "other", "rawInput": {"command": "ls"}}), None),
            (json!({"kind": "search", "rawInput": {"query": "x"}}), Some(Kind::Read)),
            (json!({"kind": "fetch", "rawInput": {"query": "x"}}), Some(Kind::Fetch)),
            (json!({"kind": "move", "rawInput": {"path": "a"}}), Some(Kind::Edit)),
        ] {
            assert_eq!(subject("claude", update.clone()), RequestAction::Unknown { kind }, "{update}");
        }
    }

    #[test]
    fn the_folder_of_a_command_is_judged_with_it() {
        let run =
            |cwd: &str| subject("opencode", json!({"kind": "execute", "rawInput": {"command": "ls", "cwd": cwd}}));
        assert_eq!(run("/w"), RequestAction::Shell { command: "ls".into() });
        assert_eq!(run("/w/src"), RequestAction::Shell { command: "cd src && ls".into() });
        assert_eq!(run("/etc"), RequestAction::Shell { command: "cd /etc && ls".into() });
    }
}
