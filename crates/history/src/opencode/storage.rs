//! The files of older versions: a file for each session, one for each message, one for each part.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{MessageSink, MessageStore, StoredMessage};
use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::json_lines::value_of;
use crate::limits::{MAX_JSON_ITEM, MAX_SMALL_FILE};

/// The folder `storage`.
#[derive(Debug)]
pub(super) struct FileStorage {
    folder: PathBuf,
}

impl FileStorage {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The storage that a session's file belongs to: `storage/session/<project>/<id>.json`.
    pub(super) fn of_session(path: &Path) -> Option<Self> {
        let is_inside = path.ancestors().nth(2)?.file_name().is_some_and(|name| name == "session");
        path.ancestors().nth(3).filter(|_| is_inside).map(|folder| Self::new(folder.to_owned()))
    }

    /// The file of a session, in any project.
    pub(super) fn session(&self, id: &str) -> Option<PathBuf> {
        let name = format!("{}.json", plain(id)?);
        let sessions = self.folder.join("session");
        let projects = files::names(&sessions).unwrap_or_default();
        projects.iter().map(|project| sessions.join(project).join(&name)).find(|path| path.is_file())
    }

    /// Every session's file.
    pub(super) fn sessions(&self, problems: &mut Vec<HistoryError>) -> Vec<(String, PathBuf)> {
        let sessions = self.folder.join("session");
        let mut list = |folder: &Path| {
            files::names(folder).unwrap_or_else(|problem| {
                problems.push(problem);
                Vec::new()
            })
        };
        let mut found = Vec::new();
        for project in list(&sessions) {
            let folder = sessions.join(project);
            for name in list(&folder) {
                if let Some(id) = name.strip_suffix(".json") {
                    found.push((id.to_owned(), folder.join(&name)));
                }
            }
        }
        found
    }
}

impl MessageStore for FileStorage {
    fn session_info(&self, id: &str) -> Result<Option<JsonMembers>, HistoryError> {
        let Some(path) = self.session(id) else { return Ok(None) };
        let value = parsed(&path).map_err(|what| HistoryError::malformed(&path, what))?;
        Ok(JsonMembers::of(value).ok())
    }

    fn messages(&self, id: &str, each: &mut MessageSink<'_>) -> Result<(), HistoryError> {
        let Some(id) = plain(id) else { return Ok(()) };
        let folder = self.folder.join("message").join(id);
        // Ids begin with the time, so that their order is the order of messages.
        for name in files::names(&folder)? {
            let Some(message) = name.strip_suffix(".json") else { continue };
            let value = match parsed(&folder.join(&name)).map(JsonMembers::of) {
                Ok(Ok(value)) => value,
                Ok(Err(_)) => {
                    let _goes_on = each(Err(format!("message {message}: no object")));
                    continue;
                }
                Err(error) => {
                    let _goes_on = each(Err(format!("message {message}: {error}")));
                    continue;
                }
            };
            let mut stored_message =
                StoredMessage { id: message.to_owned(), message: value, parts: Vec::new(), weight: 0 };
            let parts = self.folder.join("part").join(message);
            for name in files::names(&parts)?.iter().filter(|name| name.ends_with(".json")) {
                let path = parts.join(name);
                stored_message.weight = stored_message.weight.saturating_add(size_of(&path));
                if stored_message.weight > MAX_JSON_ITEM {
                    let _goes_on = each(Err(format!("message {message}: more than {MAX_JSON_ITEM} bytes")));
                    break;
                }
                match parsed(&path) {
                    Ok(part) => stored_message.parts.push(part),
                    Err(error) => {
                        let _goes_on = each(Err(format!("a part of message {message}: {error}")));
                    }
                }
            }
            if each(Ok(stored_message)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn parsed(path: &Path) -> Result<Value, String> {
    let bytes = files::read(path, MAX_SMALL_FILE).map_err(|error| error.to_string())?;
    value_of(&bytes).map_err(|error| error.to_string())
}

fn size_of(path: &Path) -> usize {
    files::stat(path).ok().and_then(|metadata| usize::try_from(metadata.len()).ok()).unwrap_or(0)
}

/// A name without a path.
fn plain(name: &str) -> Option<&str> {
    let is_plain = !name.is_empty() && !name.contains(['/', '\\', '\0', ':']) && name != "." && name != "..";
    is_plain.then_some(name)
}
