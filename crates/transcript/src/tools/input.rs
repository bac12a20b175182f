//! The meaning of a call's input: command, file, diff, to-do list, a prompt for another agent.

use serde_json::Value;

use crate::normal::{
    EditKind, FileLocation, Replacement, TextPosition, TextRange, TodoItem, TodoStatus, ToolInput,
    TranscriptToolKind as Kind,
};

/// The input of a call of this kind. An input that does not fit the kind stays generic.
pub fn input_of(kind: Kind, input: &Value) -> ToolInput {
    let understood = match kind {
        Kind::Shell => command(input),
        Kind::ShellOutput => first(input, &["id", "terminalId", "shellId", "sessionId", "bash_id", "task_id"])
            .map(|terminal| ToolInput::ShellOutput { terminal }),
        Kind::Read => file(input),
        Kind::List => first(input, &["path", "dirPath", "dir_path"])
            .map(|path| ToolInput::Folder { place: FileLocation::local(path) }),
        Kind::Todo => todo_list(input),
        Kind::Subagent => subagent(input),
        Kind::Edit | Kind::Edits => edits(input),
        Kind::Search | Kind::Fetch | Kind::Other => None,
    };
    understood.unwrap_or_default()
}

/// To-do items from a list of objects.
pub fn todo_items(items: &[Value]) -> Vec<TodoItem> {
    items.iter().filter_map(todo_item).collect()
}

fn todo_item(item: &Value) -> Option<TodoItem> {
    let text = |key: &str| item.get(key).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let status = match item.get("status").and_then(Value::as_str) {
        Some("completed" | "done") => TodoStatus::Completed,
        Some("in-progress" | "in_progress") => TodoStatus::InProgress,
        _ => TodoStatus::NotStarted,
    };
    let title = ["title", "content", "step", "subject", "description"].iter().find_map(|key| text(key))?;
    Some(TodoItem {
        id: text("id").unwrap_or_default(),
        description: text("description").filter(|description| *description != title).unwrap_or_default(),
        title,
        status,
    })
}

fn command(input: &Value) -> Option<ToolInput> {
    let flag = |key: &str| input.get(key).and_then(Value::as_bool).unwrap_or(false);
    Some(ToolInput::Command {
        command: first(input, &["command", "cmd"]).or_else(|| words(input.get("command")?))?,
        folder: first(input, &["cwd", "workingDirectory", "workdir", "working_directory", "dir_path"]),
        language: None,
        background: flag("isBackground") || flag("run_in_background") || flag("is_background"),
    })
}

/// A command given as a list of words. The argument of a shell is the command.
fn words(command: &Value) -> Option<String> {
    let words: Option<Vec<&str>> = command.as_array()?.iter().map(Value::as_str).collect();
    Some(match words?.as_slice() {
        [shell, "-c" | "-lc", line] if shell.ends_with("sh") => (*line).to_owned(),
        words => words.join(" "),
    })
}

fn file(input: &Value) -> Option<ToolInput> {
    let number = |key: &str| input.get(key).and_then(Value::as_u64);
    let path = first(input, &["filePath", "path", "file_path"])?;
    let listed = |at: usize| input.get("view_range").and_then(|range| range.get(at)).and_then(Value::as_u64);
    let from = number("startLine").or_else(|| number("offset")).or_else(|| listed(0));
    let to = number("endLine").or_else(|| Some(from?.saturating_add(number("limit")?))).or_else(|| listed(1));
    let range = from.map(|from| {
        let end = TextPosition { line: to.map_or(from, |to| to.saturating_add(1)), column: 1 };
        TextRange { start: TextPosition { line: from, column: 1 }, end }
    });
    Some(ToolInput::File { place: FileLocation { range, ..FileLocation::local(path) } })
}

fn todo_list(input: &Value) -> Option<ToolInput> {
    let items = ["todoList", "todos", "items", "plan"].iter().find_map(|key| input.get(key)?.as_array())?;
    Some(ToolInput::Todos(todo_items(items)))
}

fn subagent(input: &Value) -> Option<ToolInput> {
    Some(ToolInput::Subagent {
        agent: first(input, &["agentName", "agent_type", "subagentType", "subagent_type"]),
        description: first(input, &["description"]),
        prompt: first(input, &["prompt", "task", "message"])?,
    })
}

fn edits(input: &Value) -> Option<ToolInput> {
    if let Some(items) = ["replacements", "edits"].iter().find_map(|key| input.get(key)?.as_array()) {
        let path = path_of(input).unwrap_or_default();
        let edits: Vec<_> = items.iter().filter_map(|item| edit(item, &path)).collect();
        return (edits.len() == items.len()).then_some(ToolInput::Edits(edits));
    }
    if let Some(patch) =
        first(input, &["patch", "patchText"]).or_else(|| Some(input.get("input")?.as_str()?.to_owned()))
    {
        return Some(ToolInput::Edits(patched(&patch)));
    }
    Some(ToolInput::Edits(vec![edit(input, "")?]))
}

fn edit(item: &Value, path: &str) -> Option<Replacement> {
    let before = first(item, &["oldString", "old_str", "old_string", "oldText"]);
    let piece = first(item, &["newString", "new_str", "new_string", "newText", "code", "new_source"]);
    // An empty text cannot be replaced in an existing file: the replacement is a whole new file.
    let is_whole = piece.is_none() || before.as_deref() == Some("");
    Some(Replacement {
        path: path_of(item).unwrap_or_else(|| path.to_owned()),
        kind: if is_whole { EditKind::Create } else { EditKind::Edit },
        before,
        after: piece.or_else(|| first(item, &["content", "file_text"]))?,
        ..Replacement::default()
    })
}

fn path_of(input: &Value) -> Option<String> {
    first(input, &["filePath", "path", "file_path", "notebook_path"])
}

/// The edits of a patch that a command applies.
pub fn patch_in(command: &str) -> Vec<Replacement> {
    let is_patch = command.contains("apply_patch") || command.contains("applypatch");
    let patch = command.split_once("*** Begin Patch").filter(|_| is_patch).map(|(_, patch)| patch);
    let patch = patch.map(|patch| patch.split_once("*** End Patch").map_or(patch, |(patch, _)| patch));
    patch.map(patched).unwrap_or_default()
}

/// The files of a patch in the form of `*** Update File: path`, each with the removed and added lines.
fn patched(patch: &str) -> Vec<Replacement> {
    let mut files: Vec<Replacement> = Vec::new();
    for line in patch.lines() {
        let named = [
            ("*** Update File: ", EditKind::Edit),
            ("*** Add File: ", EditKind::Create),
            ("*** Delete File: ", EditKind::Delete),
        ];
        if let Some((path, kind)) = named.iter().find_map(|(head, kind)| Some((line.strip_prefix(head)?, *kind))) {
            let path = path.to_owned();
            files.push(Replacement { path, kind, added: Some(0), removed: Some(0), ..Replacement::default() });
        } else if let Some(file) = files.last_mut() {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                file.kind = EditKind::Rename;
                file.from = Some(std::mem::replace(&mut file.path, path.to_owned()));
                continue;
            }
            let (text, count, line) = match (line.strip_prefix('-'), line.strip_prefix('+')) {
                (Some(line), _) => (file.before.get_or_insert_default(), &mut file.removed, line),
                (None, Some(line)) => (&mut file.after, &mut file.added, line),
                (None, None) => continue,
            };
            text.push_str(line);
            text.push('\n');
            *count = count.map(|count| count + 1);
        }
    }
    files
}

/// The first of the members that is a text.
fn first(input: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| input.get(key)?.as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replacement(path: &str, before: Option<&str>, after: &str) -> Replacement {
        Replacement {
            path: path.into(),
            before: before.map(str::to_owned),
            after: after.into(),
            ..Replacement::default()
        }
    }

    #[test]
    fn the_input_of_known_tools_is_understood() {
        let range = TextRange { start: TextPosition { line: 3, column: 1 }, end: TextPosition { line: 8, column: 1 } };
        for (kind, input, expected) in [
            (
                Kind::Shell,
                json!({"command": "make", "isBackground": true}),
                ToolInput::Command { command: "make".into(), folder: None, language: None, background: true },
            ),
            (
                Kind::Shell,
                json!({"command": ["/bin/bash", "-lc", "make all"], "workdir": "/w"}),
                ToolInput::Command {
                    command: "make all".into(),
                    folder: Some("/w".into()),
                    language: None,
                    background: false,
                },
            ),
            (Kind::ShellOutput, json!({"id": "t1"}), ToolInput::ShellOutput { terminal: "t1".into() }),
            (
                Kind::Read,
                json!({"filePath": "/a.rs", "startLine": 3, "endLine": 7}),
                ToolInput::File { place: FileLocation { range: Some(range), ..FileLocation::local("/a.rs") } },
            ),
            (Kind::List, json!({"path": "/src"}), ToolInput::Folder { place: FileLocation::local("/src") }),
            (
                Kind::Todo,
                json!({"todoList": [{"id": 1, "title": "write", "status": "in-progress"}]}),
                ToolInput::Todos(vec![TodoItem {
                    id: "1".into(),
                    title: "write".into(),
                    description: String::new(),
                    status: TodoStatus::InProgress,
                }]),
            ),
            (
                Kind::Subagent,
                json!({"description": "look", "prompt": "look around"}),
                ToolInput::Subagent { agent: None, description: Some("look".into()), prompt: "look around".into() },
            ),
            (
                Kind::Edit,
                json!({"filePath": "/a", "oldString": "x", "newString": "y"}),
                ToolInput::Edits(vec![replacement("/a", Some("x"), "y")]),
            ),
            (
                Kind::Edits,
                json!({"replacements": [
                    {"filePath": "/a", "oldString": "x", "newString": "y"},
                    {"filePath": "/b", "oldString": "1", "newString": "2"},
                ]}),
                ToolInput::Edits(vec![replacement("/a", Some("x"), "y"), replacement("/b", Some("1"), "2")]),
            ),
            (
                Kind::Edits,
                json!({"input": "*** Begin Patch\n*** Update File: /a\n*** Move to: /c\n@@\n-x\n+y\n*** Add File: /b\n+z\n\
                    *** Delete File: /d\n*** End Patch"}),
                ToolInput::Edits(vec![
                    Replacement {
                        kind: EditKind::Rename,
                        from: Some("/a".into()),
                        added: Some(1),
                        removed: Some(1),
                        ..replacement("/c", Some("x\n"), "y\n")
                    },
                    Replacement {
                        kind: EditKind::Create,
                        added: Some(1),
                        removed: Some(0),
                        ..replacement("/b", None, "z\n")
                    },
                    Replacement {
                        kind: EditKind::Delete,
                        added: Some(0),
                        removed: Some(0),
                        ..replacement("/d", None, "")
                    },
                ]),
            ),
            (
                Kind::Edit,
                json!({"path": "/a", "file_text": "x"}),
                ToolInput::Edits(vec![Replacement { kind: EditKind::Create, ..replacement("/a", None, "x") }]),
            ),
        ] {
            assert_eq!(input_of(kind, &input), expected, "{input}");
        }
    }

    #[test]
    fn what_does_not_fit_a_tool_stays_generic() {
        for (kind, input) in [
            (Kind::Shell, json!({"line": "x"})),
            (Kind::Shell, json!({"command": ["x", 1]})),
            (Kind::Edits, json!({"replacements": [{"filePath": "/a"}]})),
            (Kind::Read, json!("text")),
            (Kind::Other, json!({"command": "x"})),
        ] {
            assert_eq!(input_of(kind, &input), ToolInput::Generic, "{input}");
        }
    }
}
