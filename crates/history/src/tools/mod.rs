//! The tools that agents are known to have, in each spelling, and what their input means.

mod input;

pub(crate) use input::{input_of, patch_in, todo_items};

use crate::normal::ForeignToolKind as Kind;

/// A tool: what the model calls it, what else it is called, what it does.
struct Known {
    name: &'static str,
    others: &'static [&'static str],
    kind: Kind,
}

/// The first name is the one that models use.
const KNOWN: &[Known] = &[
    known("run_in_terminal", &["copilot_runInTerminal", "runInTerminal"], Kind::Shell),
    known("bash", &["shell", "powershell", "run_command", "Bash", "run_shell_command"], Kind::Shell),
    known("shell_command", &["exec_command", "local_shell"], Kind::Shell),
    known("get_terminal_output", &["copilot_getTerminalOutput", "getTerminalOutput"], Kind::ShellOutput),
    known("read_bash", &["read_powershell", "BashOutput", "TaskOutput", "write_stdin"], Kind::ShellOutput),
    known("read_file", &["copilot_readFile", "readFile"], Kind::Read),
    known("view", &["str_replace_editor"], Kind::Read),
    known("read", &["Read"], Kind::Read),
    known("list_dir", &["copilot_listDirectory", "listDirectory", "list_directory", "list"], Kind::List),
    known("ls", &["LS"], Kind::List),
    known("manage_todo_list", &["copilot_manageTodoList", "manageTodoList", "update_todo", "todo_write"], Kind::Todo),
    known("todowrite", &["TodoWrite", "write_todos", "update_plan"], Kind::Todo),
    known("runSubagent", &["run_subagent", "copilot_runSubagent"], Kind::Subagent),
    known("task", &["Task", "Agent", "spawn_agent"], Kind::Subagent),
    known("replace_string_in_file", &["copilot_replaceString", "replaceStringInFile"], Kind::Edit),
    known("insert_edit_into_file", &["copilot_insertEdit", "copilot_editFile", "vscode_editFile_internal"], Kind::Edit),
    known("create_file", &["copilot_createFile", "createFile"], Kind::Edit),
    known("create", &["write", "Write", "write_file"], Kind::Edit),
    known("edit", &["Edit", "replace", "NotebookEdit"], Kind::Edit),
    known("apply_patch", &["copilot_applyPatch", "applyPatch", "patch"], Kind::Edits),
    known("multiedit", &["MultiEdit"], Kind::Edits),
    known("multi_replace_string_in_file", &["copilot_multiReplaceString", "multiReplaceStringInFile"], Kind::Edits),
    known("grep_search", &["copilot_findTextInFiles", "findTextInFiles"], Kind::Search),
    known("file_search", &["copilot_findFiles", "findFiles"], Kind::Search),
    known("semantic_search", &["copilot_searchCodebase", "searchCodebase"], Kind::Search),
    known("test_search", &["copilot_findTestFiles"], Kind::Search),
    known("list_code_usages", &["copilot_listCodeUsages"], Kind::Search),
    known("search_workspace_symbols", &["copilot_searchWorkspaceSymbols"], Kind::Search),
    known("grep", &["rg", "Grep", "search_file_content"], Kind::Search),
    known("glob", &["Glob", "find"], Kind::Search),
    known("fetch_webpage", &["copilot_fetchWebPage", "vscode_fetchWebPage_internal", "web_fetch"], Kind::Fetch),
    known("webfetch", &["WebFetch"], Kind::Fetch),
    known("web_search", &["WebSearch", "google_web_search", "websearch"], Kind::Fetch),
];

const fn known(name: &'static str, others: &'static [&'static str], kind: Kind) -> Known {
    Known { name, others, kind }
}

fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name || known.others.contains(&name))
}

/// What a tool does.
pub fn kind_of(name: &str) -> Kind {
    find(name).map_or(Kind::Other, |known| known.kind)
}

/// The name by which a tool is the same in each spelling: as models use it. One that nobody here knows is told in
/// snake case and without its prefix, which is how those names differ as well.
pub fn model_name(name: &str) -> String {
    if let Some(known) = find(name) {
        return known.name.to_owned();
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
            assert_eq!(names.map(kind_of), [kind, kind], "{names:?}");
            assert_eq!(model_name(names[0]), model_name(names[1]));
        }
        assert_eq!(kind_of("mcp_github_list_issues"), Kind::Other);
    }

    #[test]
    fn the_spellings_of_an_unknown_tool_meet_in_snake_case() {
        assert_eq!(model_name("copilot_getVSCodeThings"), "get_vscode_things");
        assert_eq!(model_name("mcp_server_DoIt"), "mcp_server_DoIt");
    }
}
