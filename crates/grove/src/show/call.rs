//! Descriptions of tool calls: the subject, the question for permission, the duration.

use std::time::Duration;

use serde_json::{Map, Value};

use super::style::sanitize;
use crate::chat_client::{ApprovalStage, ToolPermission, one_line};

/// The number of lines of a command or another input in a question. `?` shows the others.
const MAX_LINES: usize = 12;
/// The number of characters of a value in a question.
const MAX_VALUE_CHARS: usize = 200;

/// The keys of files in the inputs of agents' tools.
const FILES: [&str; 7] = ["file_path", "filePath", "path", "notebook_path", "absolute_path", "filename", "file"];
/// The keys of other values that describe a call.
const OTHERS: [&str; 5] = ["url", "pattern", "query", "description", "prompt"];

/// The subject of a tool call, from its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolCallSubject {
    /// The call has no input.
    Nothing,
    Command(String),
    File(String),
    /// Text that is not JSON.
    Text(String),
    /// The members of an object that names neither a command nor a file.
    Members(Vec<(String, String)>),
}

impl ToolCallSubject {
    pub(crate) fn of(input: Option<&str>) -> Self {
        let Some(input) = input.filter(|input| !input.trim().is_empty()) else { return ToolCallSubject::Nothing };
        match serde_json::from_str::<Value>(input) {
            Ok(Value::Object(members)) => Self::of_object(&members),
            Ok(_) | Err(_) => ToolCallSubject::Text(input.to_owned()),
        }
    }

    fn of_object(members: &Map<String, Value>) -> Self {
        if let Some(command) = ["command", "cmd", "script"].iter().find_map(|key| command(members.get(*key)?)) {
            return ToolCallSubject::Command(command);
        }
        let text = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)?.as_str()).map(str::to_owned);
        if let Some(file) = text(&FILES) {
            return ToolCallSubject::File(file);
        }
        if let (Some(text), true) = (text(&OTHERS), members.len() <= 2) {
            return ToolCallSubject::Text(text);
        }
        if members.is_empty() {
            return ToolCallSubject::Nothing;
        }
        let value = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        ToolCallSubject::Members(members.iter().map(|(key, member)| (key.clone(), value(member))).collect())
    }

    /// The subject in one line, for a row.
    pub(crate) fn line(&self) -> String {
        match self {
            ToolCallSubject::Nothing => String::new(),
            ToolCallSubject::Command(text) | ToolCallSubject::File(text) | ToolCallSubject::Text(text) => {
                one_line(&sanitize(text))
            }
            ToolCallSubject::Members(members) => {
                let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                one_line(&sanitize(&members.join(", ")))
            }
        }
    }

    /// The subject in a few lines for a question, and whether they are complete.
    pub(crate) fn lines(&self) -> (Vec<String>, bool) {
        let (all, mut is_all): (Vec<String>, bool) = match self {
            ToolCallSubject::Nothing => (Vec::new(), true),
            ToolCallSubject::Command(text) | ToolCallSubject::Text(text) => {
                (sanitize(text).lines().map(str::to_owned).collect(), true)
            }
            ToolCallSubject::File(path) => (vec![one_line(&sanitize(path))], false),
            ToolCallSubject::Members(members) => {
                let line = |(key, value): &(String, String)| {
                    let value: String = one_line(&sanitize(value)).chars().take(MAX_VALUE_CHARS).collect();
                    format!("{}: {value}", sanitize(key))
                };
                (members.iter().map(line).collect(), false)
            }
        };
        is_all &= all.len() <= MAX_LINES;
        (all.into_iter().take(MAX_LINES).collect(), is_all)
    }
}

/// A command as text. For a program with arguments, `sh -c TEXT` is shown as the text.
fn command(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => Some((*script).to_owned()),
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// The question of a permission request. It never repeats the subject.
pub(crate) fn question(permission: &ToolPermission) -> String {
    let title = one_line(&sanitize(&permission.title));
    if permission.about == ApprovalStage::Result || title.ends_with('?') {
        return title;
    }
    match permission.edits.as_slice() {
        [] => {}
        [edit] => {
            let (name, verb) = super::facts::edited(edit, super::facts::current_folder().as_deref());
            return format!("{verb} {name}?");
        }
        several => return format!("Change {} files?", several.len()),
    }
    match ToolCallSubject::of(permission.input.as_deref()) {
        ToolCallSubject::Command(_) => "Run this command?".to_owned(),
        ToolCallSubject::Text(_) if permission.is_command => "Run this command?".to_owned(),
        ToolCallSubject::File(path) if title.contains(path.trim()) || title.is_empty() => {
            format!("Allow {}?", if title.is_empty() { permission.name.as_str() } else { &title })
        }
        subject => match title.as_str() {
            "" => format!("Allow {}?", one_line(&sanitize(&permission.name))),
            title if title == subject.line() => format!("Allow {}?", one_line(&sanitize(&permission.name))),
            title => format!("Allow {title}?"),
        },
    }
}

/// A question about a call that has no input to show: it names the tool.
pub(crate) fn with_tool(permission: &ToolPermission, question: String) -> String {
    let name = one_line(&sanitize(&permission.name));
    let is_clear = name.is_empty() || question.contains(&name) || !permission.edits.is_empty();
    if is_clear { question } else { format!("{question} ({name})") }
}

/// A duration with two or three digits.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        milliseconds @ 0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => {
            let seconds = duration.as_secs();
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(input: &Value) -> ToolCallSubject {
        ToolCallSubject::of(Some(&input.to_string()))
    }

    #[test]
    fn the_subject_of_a_call_is_its_command_or_file_and_never_escaped_json() {
        assert_eq!(of(&json!({"command": "ls -l", "description": "List"})), ToolCallSubject::Command("ls -l".into()));
        assert_eq!(of(&json!({"command": ["bash", "-lc", "make test"]})), ToolCallSubject::Command("make test".into()));
        assert_eq!(of(&json!({"command": ["git", "status"]})), ToolCallSubject::Command("git status".into()));
        assert_eq!(of(&json!({"file_path": "/a.rs", "content": "x\ny"})), ToolCallSubject::File("/a.rs".into()));
        assert_eq!(of(&json!({"pattern": "fn main"})), ToolCallSubject::Text("fn main".into()));
        assert_eq!(ToolCallSubject::of(Some("ls")), ToolCallSubject::Text("ls".into()));
        assert_eq!(ToolCallSubject::of(Some(" ")), ToolCallSubject::Nothing);
        assert_eq!(of(&json!({})), ToolCallSubject::Nothing);
        let members = of(&json!({"a": "x\ny", "b": 3, "c": true}));
        assert_eq!(members.line(), "a: x y, b: 3, c: true");
        assert_eq!(members.lines(), (vec!["a: x y".to_owned(), "b: 3".to_owned(), "c: true".to_owned()], false));
        let long = ToolCallSubject::Command("x\n".repeat(100));
        let (lines, is_all) = long.lines();
        assert_eq!((lines.len(), is_all), (MAX_LINES, false));
    }

    #[test]
    fn a_permission_is_a_question_that_does_not_repeat_its_subject() {
        let asks = |title: &str, input: Option<&str>| {
            question(&ToolPermission {
                title: title.into(),
                input: input.map(Into::into),
                name: "bash".into(),
                ..ToolPermission::default()
            })
        };
        assert_eq!(asks("Run this command?", Some("ls")), "Run this command?");
        assert_eq!(asks("rm x", Some(r#"{"command":"rm x"}"#)), "Run this command?");
        assert_eq!(asks("Fetch a page", Some(r#"{"url":"https://x"}"#)), "Allow Fetch a page?");
        assert_eq!(asks("https://x", Some(r#"{"url":"https://x"}"#)), "Allow bash?");
        assert_eq!(asks("", None), "Allow bash?");
        let command = ToolPermission {
            title: "ls".into(),
            input: Some("ls".into()),
            is_command: true,
            ..ToolPermission::default()
        };
        assert_eq!(question(&command), "Run this command?");
    }

    #[test]
    fn durations_have_the_figures_that_say_something() {
        for (milliseconds, text) in
            [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (59_999, "60.0 s"), (83_000, "1 min 23 s")]
        {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }
}
