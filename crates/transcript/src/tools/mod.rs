//! The known tools of agents, in each spelling, and the meaning of their input.

mod input;

pub use input::{input_of, patch_in, todo_items};

use crate::normal::TranscriptToolKind as Kind;

/// A tool: the model's name, other names, and its purpose.
struct ToolNames {
    name: &'static str,
    others: &'static [&'static str],
    kind: Kind,
}

/// The first name is the one that models use.
const TOOLS: &[ToolNames] = &[
    tool("run_in_terminal", &["copilot_runInTerminal", "runInTerminal"], Kind::Shell),
    tool("bash", &["shell", "powershell", "run_command", "Bash", "run_shell_command"], Kind::Shell),
    tool("shell_command", &["exec_command", "local_shell"], Kind::Shell),
    tool("get_terminal_output", &["copilot_getTerminalOutput", "getTerminalOutput"], Kind::ShellOutput),
    tool("read_bash", &["read_powershell", "BashOutput", "TaskOutput", "write_stdin"], Kind::ShellOutput),
    tool("read_file", &["copilot_readFile", "readFile"], Kind::Read),
    tool("view", &["str_replace_editor"], Kind::Read),
    tool("read", &["Read"], Kind::Read),
    tool("list_dir", &["copilot_listDirectory", "listDirectory", "list_directory", "list"], Kind::List),
    tool("ls", &["LS"], Kind::List),
    tool("manage_todo_list", &["copilot_manageTodoList", "manageTodoList", "update_todo", "todo_write"], Kind::Todo),
    tool("todowrite", &["TodoWrite", "write_todos", "update_plan"], Kind::Todo),
    tool("runSubagent", &["run_subagent", "copilot_runSubagent"], Kind::Subagent),
    tool("task", &["Task", "Agent", "spawn_agent"], Kind::Subagent),
    tool("replace_string_in_file", &["copilot_replaceString", "replaceStringInFile"], Kind::Edit),
    tool("insert_edit_into_file", &["copilot_insertEdit", "copilot_editFile", "vscode_editFile_internal"], Kind::Edit),
    tool("create_file", &["copilot_createFile", "createFile"], Kind::Edit),
    tool("create", &["write", "Write", "write_file"], Kind::Edit),
    tool("edit", &["Edit", "replace", "NotebookEdit"], Kind::Edit),
    tool("apply_patch", &["copilot_applyPatch", "applyPatch", "patch"], Kind::Edits),
    tool("multiedit", &["MultiEdit"], Kind::Edits),
    tool("multi_replace_string_in_file", &["copilot_multiReplaceString", "multiReplaceStringInFile"], Kind::Edits),
    tool("grep_search", &["copilot_findTextInFiles", "findTextInFiles"], Kind::Search),
    tool("file_search", &["copilot_findFiles", "findFiles"], Kind::Search),
    tool("semantic_search", &["copilot_searchCodebase", "searchCodebase"], Kind::Search),
    tool("test_search", &["copilot_findTestFiles"], Kind::Search),
    tool("list_code_usages", &["copilot_listCodeUsages"], Kind::Search),
    tool("search_workspace_symbols", &["copilot_searchWorkspaceSymbols"], Kind::Search),
    tool("grep", &["rg", "Grep", "search_file_content"], Kind::Search),
    tool("glob", &["Glob", "find"], Kind::Search),
    tool("fetch_webpage", &["copilot_fetchWebPage", "vscode_fetchWebPage_internal", "web_fetch"], Kind::Fetch),
    tool("webfetch", &["WebFetch"], Kind::Fetch),
    tool("web_search", &["WebSearch", "google_web_search", "websearch"], Kind::Fetch),
];

const fn tool(name: &'static str, others: &'static [&'static str], kind: Kind) -> ToolNames {
    ToolNames { name, others, kind }
}

fn find(name: &str) -> Option<&'static ToolNames> {
    TOOLS.iter().find(|tool| tool.name == name || tool.others.contains(&name))
}

/// The purpose of a tool.
pub fn tool_kind(name: &str) -> Kind {
    find(name).map_or(Kind::Other, |tool| tool.kind)
}

/// The canonical name of a tool: as models use it. An unknown one is written in snake case and without its prefix,
/// since spellings differ in these.
pub fn canonical_tool_name(name: &str) -> String {
    if let Some(tool) = find(name) {
        return tool.name.to_owned();
    }
    let Some(bare) = name.strip_prefix("copilot_").or_else(|| name.strip_prefix("vscode_")) else {
        return name.to_owned();
    };
    let mut snake = String::with_capacity(bare.len() + 4);
    let mut was_upper = true;
    for letter in bare.chars() {
        if letter.is_ascii_uppercase() && !was_upper {
            snake.push('_');
        }
        was_upper = letter.is_ascii_uppercase();
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tools_have_their_kind_in_both_spellings() {
        for (names, kind) in [
            (["run_in_terminal", "copilot_runInTerminal"], Kind::Shell),
            (["get_terminal_output", "copilot_getTerminalOutput"], Kind::ShellOutput),
            (["read_file", "copilot_readFile"], Kind::Read),
            (["list_dir", "copilot_listDirectory"], Kind::List),
            (["manage_todo_list", "copilot_manageTodoList"], Kind::Todo),
            (["runSubagent", "run_subagent"], Kind::Subagent),
            (["replace_string_in_file", "copilot_replaceString"], Kind::Edit),
            (["multi_replace_string_in_file", "copilot_multiReplaceString"], Kind::Edits),
        ] {
            assert_eq!(names.map(tool_kind), [kind, kind], "{names:?}");
            assert_eq!(canonical_tool_name(names[0]), canonical_tool_name(names[1]));
        }
        assert_eq!(tool_kind("mcp_github_list_issues"), Kind::Other);
    }

    #[test]
    fn the_spellings_of_an_unknown_tool_meet_in_snake_case() {
        assert_eq!(canonical_tool_name("copilot_getVSCodeThings"), "get_vscode_things");
        assert_eq!(canonical_tool_name("mcp_server_DoIt"), "mcp_server_DoIt");
    }
}
