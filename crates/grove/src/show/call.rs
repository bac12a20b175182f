//! Tool calls in words: the subject of a call, the question that asks for permission, a call's duration.

use std::time::Duration;

use serde_json::{Map, Value};

use super::style::harmless;
use crate::talk::{About, Permission, one_line};

/// How many lines of a command or of other input stand in a question. `?` shows the rest.
const MOST_LINES: usize = 12;
/// How many characters of a value stand in a question.
const MOST_VALUE: usize = 200;

/// The names under which agents pass a file.
const FILES: [&str; 7] = ["file_path", "filePath", "path", "notebook_path", "absolute_path", "filename", "file"];
/// The names under which agents pass anything else that says what a call is about.
const OTHERS: [&str; 5] = ["url", "pattern", "query", "description", "prompt"];

/// The subject of a tool call, as its input tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// There is no input.
    Nothing,
    Command(String),
    File(String),
    /// Text that is not JSON.
    Text(String),
    /// The members of an object that names neither a command nor a file.
    Members(Vec<(String, String)>),
}

impl Subject {
    pub(crate) fn of(input: Option<&str>) -> Self {
        let Some(input) = input.filter(|input| !input.trim().is_empty()) else { return Subject::Nothing };
        match serde_json::from_str::<Value>(input) {
            Ok(Value::Object(members)) => Self::of_object(&members),
            Ok(_) | Err(_) => Subject::Text(input.to_owned()),
        }
    }

    fn of_object(members: &Map<String, Value>) -> Self {
        if let Some(command) = ["command", "cmd", "script"].iter().find_map(|key| command(members.get(*key)?)) {
            return Subject::Command(command);
        }
        let text = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)?.as_str()).map(str::to_owned);
        if let Some(file) = text(&FILES) {
            return Subject::File(file);
        }
        if let (Some(text), true) = (text(&OTHERS), members.len() <= 2) {
            return Subject::Text(text);
        }
        if members.is_empty() {
            return Subject::Nothing;
        }
        let value = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Subject::Members(members.iter().map(|(key, member)| (key.clone(), value(member))).collect())
    }

    /// The subject in one line, for a row.
    pub(crate) fn line(&self) -> String {
        match self {
            Subject::Nothing => String::new(),
            Subject::Command(text) | Subject::File(text) | Subject::Text(text) => one_line(&harmless(text)),
            Subject::Members(members) => {
                let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                one_line(&harmless(&members.join(", ")))
            }
        }
    }

    /// The subject in a few lines, for a question, and whether that is all of it.
    pub(crate) fn lines(&self) -> (Vec<String>, bool) {
        let (all, mut is_all): (Vec<String>, bool) = match self {
            Subject::Nothing => (Vec::new(), true),
            Subject::Command(text) | Subject::Text(text) => (harmless(text).lines().map(str::to_owned).collect(), true),
            Subject::File(path) => (vec![one_line(&harmless(path))], false),
            Subject::Members(members) => {
                let line = |(key, value): &(String, String)| {
                    let value: String = one_line(&harmless(value)).chars().take(MOST_VALUE).collect();
                    format!("{}: {value}", harmless(key))
                };
                (members.iter().map(line).collect(), false)
            }
        };
        is_all &= all.len() <= MOST_LINES;
        (all.into_iter().take(MOST_LINES).collect(), is_all)
    }
}

/// A command as a text, or as a program with its arguments. `sh -c TEXT` is shown as the text.
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

/// The question that a permission request puts to the person. It never repeats the subject.
pub(crate) fn question(permission: &Permission) -> String {
    let title = one_line(&harmless(&permission.title));
    if permission.about == About::Result || title.ends_with('?') {
        return title;
    }
    match permission.edits.as_slice() {
        [] => {}
        [edit] => {
            let (name, verb) = super::facts::edited(edit, super::facts::here().as_deref());
            return format!("{verb} {name}?");
        }
        several => return format!("Change {} files?", several.len()),
    }
    match Subject::of(permission.input.as_deref()) {
        Subject::Command(_) => "Run this command?".to_owned(),
        Subject::Text(_) if permission.is_command => "Run this command?".to_owned(),
        Subject::File(path) if title.contains(path.trim()) || title.is_empty() => {
            format!("Allow {}?", if title.is_empty() { permission.name.as_str() } else { &title })
        }
        subject => match title.as_str() {
            "" => format!("Allow {}?", one_line(&harmless(&permission.name))),
            title if title == subject.line() => format!("Allow {}?", one_line(&harmless(&permission.name))),
            title => format!("Allow {title}?"),
        },
    }
}

/// A question about a call that has no input to show: it names the tool.
pub(crate) fn with_tool(permission: &Permission, question: String) -> String {
    let name = one_line(&harmless(&permission.name));
    let is_clear = name.is_empty() || question.contains(&name) || !permission.edits.is_empty();
    if is_clear { question } else { format!("{question} ({name})") }
}

/// A duration, to two or three figures.
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

    fn of(input: &Value) -> Subject {
        Subject::of(Some(&input.to_string()))
    }

    #[test]
    fn the_subject_of_a_call_is_its_command_or_file_and_never_escaped_json() {
        assert_eq!(of(&json!({"command": "ls -l", "description": "List"})), Subject::Command("ls -l".into()));
        assert_eq!(of(&json!({"command": ["bash", "-lc", "make test"]})), Subject::Command("make test".into()));
        assert_eq!(of(&json!({"command": ["git", "status"]})), Subject::Command("git status".into()));
        assert_eq!(of(&json!({"file_path": "/a.rs", "content": "x\ny"})), Subject::File("/a.rs".into()));
        assert_eq!(of(&json!({"pattern": "fn main"})), Subject::Text("fn main".into()));
        assert_eq!(Subject::of(Some("ls")), Subject::Text("ls".into()));
        assert_eq!(Subject::of(Some(" ")), Subject::Nothing);
        assert_eq!(of(&json!({})), Subject::Nothing);
        let members = of(&json!({"a": "x\ny", "b": 3, "c": true}));
        assert_eq!(members.line(), "a: x y, b: 3, c: true");
        assert_eq!(members.lines(), (vec!["a: x y".to_owned(), "b: 3".to_owned(), "c: true".to_owned()], false));
        let long = Subject::Command("x\n".repeat(100));
        let (lines, is_all) = long.lines();
        assert_eq!((lines.len(), is_all), (MOST_LINES, false));
    }

    #[test]
    fn a_permission_is_a_question_that_does_not_repeat_its_subject() {
        let asks = |title: &str, input: Option<&str>| {
            question(&Permission {
                title: title.into(),
                input: input.map(Into::into),
                name: "bash".into(),
                ..Permission::default()
            })
        };
        assert_eq!(asks("Run this command?", Some("ls")), "Run this command?");
        assert_eq!(asks("rm x", Some(r#"{"command":"rm x"}"#)), "Run this command?");
        assert_eq!(asks("Fetch a page", Some(r#"{"url":"https://x"}"#)), "Allow Fetch a page?");
        assert_eq!(asks("https://x", Some(r#"{"url":"https://x"}"#)), "Allow bash?");
        assert_eq!(asks("", None), "Allow bash?");
        let command =
            Permission { title: "ls".into(), input: Some("ls".into()), is_command: true, ..Permission::default() };
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
