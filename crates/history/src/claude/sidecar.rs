//! The files beside a session's log: its subagents' logs, and results that were too long for it.
//!
//! Names come from the log, so only the last part of a path is used, in the folders where the program puts such files.

use std::path::{Path, PathBuf};

use grove_transcript::tools::todo_items;
use grove_transcript::{TodoItem, TranscriptChat};

use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::limits::MAX_SMALL_FILE;

/// The folders beside a log. A log without a file has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Sidecar {
    /// The session's own folder.
    own: Option<PathBuf>,
    /// The log's folder, where older versions put subagents' logs.
    project: Option<PathBuf>,
}

/// The maximum number of a session's subagents.
const MAX_AGENTS: usize = 10_000;

impl Sidecar {
    pub(super) fn of(log: &Path) -> Self {
        Self { own: log.file_stem().map(|stem| log.with_file_name(stem)), project: log.parent().map(Path::to_owned) }
    }

    /// A complete result, by the name of its file; `None` if there is no such file.
    pub(super) fn spilled(&self, name: &str) -> Option<Result<String, HistoryError>> {
        let path = self.own.as_ref()?.join("tool-results").join(plain(name)?);
        path.is_file().then(|| files::read_text(&path, MAX_SMALL_FILE))
    }

    /// The text of a file's backup; `None` if there is none.
    pub(super) fn backup(&self, name: &str) -> Option<String> {
        self.backup_path(name)
            .filter(|path| path.is_file())
            .and_then(|path| files::read_text(&path, MAX_SMALL_FILE).ok())
    }

    fn backup_path(&self, name: &str) -> Option<PathBuf> {
        let own = self.own.as_ref()?;
        Some(own.ancestors().nth(3)?.join("file-history").join(own.file_name()?).join(plain(name)?))
    }

    /// The log of a subagent.
    pub(super) fn agent(&self, id: &str) -> Option<PathBuf> {
        let name = format!("agent-{}.jsonl", plain(id)?);
        let own = self.own.as_ref().map(|own| own.join("subagents").join(&name));
        let older = self.project.as_ref().map(|project| project.join(&name));
        own.into_iter().chain(older).find(|path| path.is_file())
    }

    /// The subagents with a log in the session's folder.
    pub(super) fn agents(&self) -> Vec<String> {
        let Some(own) = &self.own else { return Vec::new() };
        let names = files::names(&own.join("subagents")).unwrap_or_default();
        let ids = names.iter().filter_map(|name| name.strip_prefix("agent-")?.strip_suffix(".jsonl"));
        ids.take(MAX_AGENTS).map(str::to_owned).collect()
    }
}

/// The metadata beside a subagent's log.
#[derive(Debug, Default)]
pub(super) struct SubagentMetadata {
    pub agent: Option<String>,
    pub description: Option<String>,
    /// The call that started it.
    pub call: Option<String>,
}

impl SubagentMetadata {
    pub(super) fn of(log: &Path) -> Self {
        let bytes = files::read(&log.with_extension("meta.json"), MAX_SMALL_FILE).ok();
        let members = bytes.and_then(|bytes| JsonMembers::of(serde_json::from_slice(&bytes).ok()?).ok());
        let Some(mut members) = members else { return Self::default() };
        Self {
            agent: members.string("agentType"),
            description: members.string("description"),
            call: members.string("toolUseId"),
        }
    }

    pub(super) fn write_to(self, chat: &mut TranscriptChat) {
        chat.agent = self.agent.or(chat.agent.take());
        chat.description = self.description.or(chat.description.take());
    }
}

/// A name without a path.
fn plain(name: &str) -> Option<&str> {
    let is_plain = !name.is_empty() && !name.contains(['/', '\\', '\0', ':']) && name != "." && name != "..";
    is_plain.then_some(name)
}

/// The to-do list that older versions keep for a session, or for one of its subagents:
/// `todos/<session>-agent-<agent>.json` beside the folder of projects. The session's own has its id instead of the
/// agent's.
pub fn todos(log: &Path, agent: &str) -> Result<Vec<TodoItem>, HistoryError> {
    let names = (log.file_stem().and_then(|stem| stem.to_str()), log.ancestors().nth(3), plain(agent));
    let (Some(id), Some(home), Some(agent)) = names else { return Ok(Vec::new()) };
    let path = home.join("todos").join(format!("{id}-agent-{agent}.json"));
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let items = files::read(&path, MAX_SMALL_FILE)?;
    let items: Vec<serde_json::Value> =
        serde_json::from_slice(&items).map_err(|error| HistoryError::malformed(&path, error))?;
    Ok(todo_items(&items))
}

/// A backup of a file from before the program changed it, by its name in a snapshot of the log.
pub fn backup(log: &Path, name: &str) -> Result<Option<Vec<u8>>, HistoryError> {
    match Sidecar::of(log).backup_path(name) {
        Some(path) if path.is_file() => files::read(&path, MAX_SMALL_FILE).map(Some),
        Some(_) | None => Ok(None),
    }
}
