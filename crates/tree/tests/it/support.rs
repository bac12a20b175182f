//! Helpers that write small logs and describe the result of reading them.

use grove_tree::{Children, Log, LogIndex, open};
use serde_json::{Value, json};

pub(crate) const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me/project"}"#;

/// Ids as a test expects them: e0000001, e0000002, …
pub(crate) fn ids_from(first: u32) -> impl FnMut() -> String {
    let mut next = first;
    move || {
        next += 1;
        format!("e{:07x}", next - 1)
    }
}

pub(crate) fn opened(bytes: impl AsRef<[u8]>) -> Log {
    open(bytes.as_ref().to_vec(), &mut ids_from(1)).unwrap()
}

/// A log of a header and these lines, each with a line feed.
pub(crate) fn log_of(lines: &[Value]) -> String {
    let mut text = format!("{HEADER}\n");
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

/// A user's message at second `second`.
pub(crate) fn user(id: &str, parent: Option<&str>, second: u32) -> Value {
    json!({
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": format!("2026-01-02T03:{:02}:{:02}.000Z", second / 60, second % 60),
        "message": {"role": "user", "content": id},
    })
}

/// One of Grove's own entries.
pub(crate) fn own(id: &str, parent: Option<&str>, custom_type: &str, data: Value) -> Value {
    json!({
        "type": "custom",
        "customType": custom_type,
        "data": data,
        "id": id,
        "parentId": parent,
        "timestamp": "2026-01-02T03:04:05.000Z",
    })
}

pub(crate) fn branch(index: &LogIndex) -> Vec<String> {
    let branch = index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default();
    branch.iter().map(|entry| index.id(*entry).into_owned()).collect()
}

pub(crate) fn leaf(index: &LogIndex) -> Option<String> {
    index.leaf().map(|leaf| index.id(leaf).into_owned())
}

pub(crate) fn ids(index: &LogIndex) -> Vec<String> {
    index.entries().map(|entry| index.id(entry).into_owned()).collect()
}

pub(crate) fn roots(index: &LogIndex) -> Vec<String> {
    Children::oldest_first(index).roots().iter().map(|entry| index.id(*entry).into_owned()).collect()
}

/// Ids of an entry's children, the oldest first.
pub(crate) fn children(index: &LogIndex, id: &str) -> Vec<String> {
    let children = Children::oldest_first(index);
    children.of(index.find(id).unwrap()).iter().map(|entry| index.id(*entry).into_owned()).collect()
}

/// The damage, as `line kind`.
pub(crate) fn damage(index: &LogIndex) -> Vec<String> {
    index.damage().iter().map(|damage| format!("{} {}", damage.line, json!(damage.kind).as_str().unwrap())).collect()
}
