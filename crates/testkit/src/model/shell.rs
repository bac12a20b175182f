//! Finding the agent's tool that runs shell commands, and its arguments.

use serde_json::{Value, json};

use super::model_request::{ModelTool, ModelToolKind};
use super::schema;

/// The names of shell tools, the surest first.
const NAMES: [&str; 14] = [
    "bash",
    "shell",
    "run_shell_command",
    "exec_command",
    "shell_command",
    "local_shell",
    "execute_command",
    "run_command",
    "run_terminal_cmd",
    "run_in_terminal",
    "terminal",
    "execute",
    "exec",
    "powershell",
];

/// Words in unknown names. Tools beside the shell have them too (`read_bash`, `KillShell`), but those take no command.
const WORDS: [&str; 5] = ["shell", "bash", "exec", "command", "terminal"];

/// The names of the argument with the command.
const COMMANDS: [&str; 6] = ["command", "cmd", "commandLine", "command_line", "script", "code"];

/// The names of the argument with the working folder. Left out unless it is required.
const FOLDERS: [&str; 6] = ["cwd", "workdir", "working_directory", "dir_path", "directory", "path"];

/// The tool that looks most like a shell.
pub(super) fn find(tools: &[ModelTool]) -> Option<&ModelTool> {
    let known = |tool: &&ModelTool| NAMES.iter().position(|name| *name == plain(&tool.name));
    let unknown =
        |tool: &&ModelTool| WORDS.iter().any(|word| plain(&tool.name).contains(word)) && takes(tool).is_some();
    let by_name = tools.iter().filter(|tool| known(tool).is_some()).min_by_key(|tool| known(tool));
    by_name.or_else(|| tools.iter().find(unknown))
}

/// The arguments that run a command.
pub(super) fn arguments(tool: &ModelTool, command: &str) -> Value {
    let words = json!(["bash", "-lc", command]);
    match tool.kind {
        ModelToolKind::LocalShell => return json!({ "command": words }),
        ModelToolKind::Custom => return json!(command),
        ModelToolKind::Function => {}
    }
    let mut arguments = schema::fit(&tool.schema, "Says that grove was here");
    let name = takes(tool).unwrap_or(COMMANDS[0]);
    let property = &tool.schema["properties"][name];
    let is_list = schema::type_of(property).as_deref() == Some("array");
    for folder in FOLDERS {
        if let Some(folder) = arguments.get_mut(folder) {
            *folder = json!(".");
        }
    }
    arguments[name] = if is_list { words } else { json!(command) };
    arguments
}

/// The argument that takes the command.
fn takes(tool: &ModelTool) -> Option<&'static str> {
    COMMANDS.into_iter().find(|name| tool.schema["properties"].get(name).is_some())
}

/// A name without the server that offers it (`developer__shell`), in the spelling of the lists above.
fn plain(name: &str) -> String {
    let name = name.rsplit_once("__").map_or(name, |(_, name)| name);
    name.to_ascii_lowercase().replace('-', "_")
}
