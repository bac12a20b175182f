//! Logs for imports: intact ones, and ones damaged by crashes or written by other programs.

use serde_json::{Value, json};

/// A log, and the turns that must be read from it.
pub(crate) struct SessionLog {
    pub(crate) text: String,
    /// Prompt and answer of each turn on the current branch; its id is that of its prompt's entry.
    pub(crate) turns: Vec<(String, String, String)>,
    /// The name in the log.
    pub(crate) name: Option<String>,
    /// The log is damaged.
    pub(crate) is_damaged: bool,
}

/// A log of three turns, changed in one of several ways.
pub(crate) fn log(kind: u64, title: &str, first_token: u64) -> SessionLog {
    let mut lines = Vec::new();
    let mut turns = Vec::new();
    let mut parent: Option<String> = None;
    for token in first_token..first_token + 3 {
        let (prompt, answer) = (format!("#{token}# said elsewhere"), format!("#{token}# answered"));
        let (ask, reply) = (format!("u{token}"), format!("a{token}"));
        lines.push(message(&ask, parent.as_deref(), "user", &prompt));
        lines.push(message(&reply, Some(&ask), "assistant", &answer));
        turns.push((ask, prompt, answer));
        parent = Some(reply);
    }
    let last = parent.unwrap_or_default();
    let name = |id: &str, parent: &str| json!({"type": "session_info", "id": id, "parentId": parent, "name": title});
    let mut log = SessionLog { text: String::new(), turns, name: None, is_damaged: true };
    let mut end = "";
    match kind % 6 {
        0 => log.is_damaged = false,
        1 => {
            // A name, as another program writes it.
            lines.push(name("n", &last));
            (log.name, log.is_damaged) = (Some(title.to_owned()), false);
        }
        // Two entries that are each other's parent, on the branch of the leaf.
        2 => lines[0]["parentId"] = json!(last),
        3 => {
            // The same line again, as its own child.
            lines.insert(2, name("n", &format!("a{first_token}")));
            lines[3]["parentId"] = json!("n");
            lines.push(name("n", &last));
            log.name = Some(title.to_owned());
        }
        4 => end = "{\"type\":\"message\",\"id\":\"torn",
        _ => {
            // The parent of the first turn is missing.
            lines[0]["parentId"] = json!("gone");
        }
    }
    let header = json!({"type": "session", "version": 3, "id": "elsewhere", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/"});
    log.text = std::iter::once(&header).chain(&lines).map(|line| format!("{line}\n")).collect();
    log.text.push_str(end);
    log
}

fn message(id: &str, parent: Option<&str>, role: &str, text: &str) -> Value {
    let content = match role {
        "user" => json!(text),
        _ => json!([{"type": "text", "text": text}]),
    };
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:06.000Z",
        "message": {"role": role, "content": content, "timestamp": 1}})
}
