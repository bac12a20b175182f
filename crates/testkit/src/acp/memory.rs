//! An agent's memory of its sessions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::behavior::AgentBehavior;

/// The most updates that a session remembers. The oldest are dropped.
const MOST_UPDATES: usize = 10_000;
/// The bytes of one answer that it remembers.
const LONGEST_TEXT: usize = 64 << 20;

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionMemory {
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    #[serde(default)]
    pub(super) title: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) changed: u64,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
    /// The chosen values of the configuration options.
    #[serde(default)]
    pub(super) chosen: Map<String, Value>,
    /// The permanent answers, by the kinds of tools.
    #[serde(default)]
    pub(super) allowed: Map<String, Value>,
    /// The number of tool calls.
    #[serde(default)]
    pub(super) calls: u64,
    /// The conversation as updates; neighbouring chunks are one.
    #[serde(default)]
    pub(super) history: Vec<Value>,
}

impl SessionMemory {
    pub(super) fn new(cwd: &Path, behavior: &AgentBehavior) -> Self {
        Self {
            id: fresh_id(),
            cwd: cwd.to_owned(),
            mode: behavior.modes.first().cloned(),
            model: behavior.models.first().cloned(),
            changed: now().as_millis() as u64,
            ..Self::default()
        }
    }

    /// The same conversation under another id.
    pub(super) fn fork(&self, cwd: &Path) -> Self {
        Self { id: fresh_id(), cwd: cwd.to_owned(), changed: now().as_millis() as u64, ..self.clone() }
    }

    pub(super) fn record_prompt(&mut self, text: &str) {
        if self.title.is_none() {
            self.title = text.lines().next().map(|line| line.chars().take(60).collect());
        }
        self.changed = now().as_millis() as u64;
        self.push(chunk("user_message_chunk", text));
    }

    /// Adds an update that belongs to the conversation.
    pub(super) fn record_update(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some(kind @ ("agent_message_chunk" | "agent_thought_chunk")) => {
                let Some(text) = update["content"]["text"].as_str().filter(|text| !text.is_empty()) else { return };
                let last = self.history.last_mut().filter(|last| last["sessionUpdate"] == kind);
                match last.and_then(|last| last.pointer_mut("/content/text")) {
                    Some(Value::String(so_far)) if so_far.len() + text.len() <= LONGEST_TEXT => so_far.push_str(text),
                    Some(_) => {}
                    None => self.push(chunk(kind, text)),
                }
            }
            Some("tool_call" | "tool_call_update" | "plan") => self.push(update.clone()),
            _ => {}
        }
    }

    fn push(&mut self, update: Value) {
        if self.history.len() == MOST_UPDATES {
            self.history.remove(0);
        }
        self.history.push(update);
    }

    /// The texts of the conversation, one per line, each with its speaker.
    pub(super) fn transcript(&self) -> String {
        let line = |update: &Value| {
            let who = match update["sessionUpdate"].as_str()? {
                "user_message_chunk" => "user",
                "agent_message_chunk" => "agent",
                _ => return None,
            };
            Some(format!("{who}: {}", update["content"]["text"].as_str()?))
        };
        self.history.iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }

    /// The updates that `session/load` replays.
    pub(super) fn replay(&self, differs: bool) -> Vec<Value> {
        self.history.iter().cloned().map(|update| if differs { retold(update) } else { update }).collect()
    }

    /// The settings, as in the answers to `session/new` and similar requests.
    pub(super) fn settings(&self, behavior: &AgentBehavior) -> Map<String, Value> {
        let mut settings = Map::new();
        if let Some(mode) = &self.mode {
            let modes = behavior.modes.iter().map(|id| json!({"id": id, "name": last_word(id)}));
            let modes: Vec<Value> = modes.collect();
            settings.insert("modes".to_owned(), json!({"currentModeId": mode, "availableModes": modes}));
        }
        if let Some(model) = &self.model {
            let models = behavior.models.iter().map(|id| json!({"modelId": id, "name": last_word(id)}));
            let models: Vec<Value> = models.collect();
            settings.insert("models".to_owned(), json!({"currentModelId": model, "availableModels": models}));
        }
        if !behavior.options.is_empty() {
            settings.insert("configOptions".to_owned(), self.options(behavior));
        }
        settings
    }

    /// The configuration options with their values.
    pub(super) fn options(&self, behavior: &AgentBehavior) -> Value {
        let set = |option: &Value| {
            let mut option = option.clone();
            let chosen = option["id"].as_str().and_then(|id| self.chosen.get(id)).cloned();
            let follows = option["category"] == "mode" && self.mode.is_some();
            let current = if follows { self.mode.clone().map(Value::from) } else { chosen };
            if let (Some(current), Value::Object(option)) = (current, &mut option) {
                option.insert("currentValue".to_owned(), current);
            }
            option
        };
        behavior.options.iter().map(set).collect()
    }
}

/// A chunk of text as an update.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// The same, from an agent that stores its history in another form.
fn retold(mut update: Value) -> Value {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    if let Value::Object(fields) = &mut update {
        match kind.as_str() {
            "tool_call" => {
                fields.insert("title".to_owned(), json!("exec_command"));
                fields.remove("kind");
                fields.insert("status".to_owned(), json!("completed"));
            }
            "tool_call_update" => {
                fields.remove("content");
                fields.insert("rawOutput".to_owned(), json!("as it was stored"));
            }
            _ => {}
        }
    }
    update
}

fn last_word(id: &str) -> &str {
    id.rsplit(['/', '#']).next().filter(|word| !word.is_empty()).unwrap_or(id)
}

/// The time since 1970.
pub(super) fn now() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn fresh_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let count = LAST.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count}", now().as_micros(), std::process::id())
}

/// The store of sessions.
pub(super) struct SessionStore(pub(super) Option<PathBuf>);

impl SessionStore {
    /// The file of a session; `None` for a name that is not one of ours.
    fn file(&self, id: &str) -> Option<PathBuf> {
        let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        self.0.as_ref().filter(|_| is_plain).map(|folder| folder.join(format!("{id}.json")))
    }

    pub(super) fn load(&self, id: &str) -> Option<SessionMemory> {
        serde_json::from_slice(&std::fs::read(self.file(id)?).ok()?).ok()
    }

    /// Writes a session atomically.
    pub(super) fn save(&self, memory: &SessionMemory) -> std::io::Result<()> {
        let Some(file) = self.file(&memory.id) else { return Ok(()) };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let new = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&new, serde_json::to_vec(memory)?)?;
        std::fs::rename(new, file)
    }

    pub(super) fn delete(&self, id: &str) {
        if let Some(file) = self.file(id) {
            // Deleting a missing one succeeds.
            std::fs::remove_file(file).ok();
        }
    }

    /// All sessions, the newest first.
    pub(super) fn all(&self) -> Vec<SessionMemory> {
        let files = self.0.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        let files = files.into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let mut all: Vec<SessionMemory> =
            files.filter_map(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).collect();
        all.sort_by(|one, other| (other.changed, &other.id).cmp(&(one.changed, &one.id)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered() -> SessionMemory {
        let mut memory = SessionMemory::new(Path::new("/w"), &AgentBehavior::default());
        memory.record_prompt("hello");
        memory.record_update(&chunk("agent_message_chunk", "good "));
        memory.record_update(&chunk("agent_message_chunk", "day"));
        memory.record_update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "touch x", "kind": "execute"}),
        );
        memory.record_update(&json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
        memory
    }

    #[test]
    fn a_conversation_is_remembered_with_neighbouring_chunks_as_one() {
        let memory = remembered();
        assert_eq!(memory.transcript(), "user: hello\nagent: good day");
        assert_eq!(memory.history.len(), 3);
    }

    #[test]
    fn a_history_may_be_told_otherwise() {
        let memory = remembered();
        assert_eq!(memory.replay(false), memory.history);
        let other = memory.replay(true);
        assert_eq!(other[2]["title"], "exec_command");
        assert_eq!(other[2].get("kind"), None);
        assert_eq!(other[..2], memory.history[..2]);
    }

    #[test]
    fn a_stored_session_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore(Some(folder.path().join("sessions")));
        let memory = remembered();
        store.save(&memory).unwrap();
        assert_eq!(store.load(&memory.id), Some(memory.clone()));
        assert_eq!(store.all(), vec![memory.clone()]);
        store.delete(&memory.id);
        assert_eq!(store.load(&memory.id), None);
    }

    #[test]
    fn a_session_never_lies_outside_the_store() {
        let store = SessionStore(Some("/store".into()));
        for id in ["../x", "", "a/b", "a.json", "/etc/passwd"] {
            assert_eq!(store.file(id), None, "{id}");
        }
    }
}
