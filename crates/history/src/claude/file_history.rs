//! The program's backups of files before it changes them. Each user message has a snapshot, which names the newest
//! backup of each file; if a later one names another, the file was changed in between.

use std::collections::BTreeMap;

use grove_transcript::{FileLocation, TranscriptEdit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sidecar::Sidecar;
use crate::file_edit::{FileSnapshot, edit_between};
use crate::json::JsonMembers;

/// The maximum number of tracked files. Further ones are left out.
const MAX_FILES: usize = 1_000;

/// The newest backup of each file, by its path; `None` if the file did not exist.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FileBackups(BTreeMap<String, Option<String>>);

impl FileBackups {
    /// Adds a snapshot, and returns the edits of the files whose backups differ now.
    pub(super) fn take(
        &mut self,
        snapshot: &JsonMembers,
        below: Option<&str>,
        sidecar: &Sidecar,
    ) -> Vec<TranscriptEdit> {
        let mut edits = Vec::new();
        let backups = snapshot.peek("trackedFileBackups").and_then(Value::as_object);
        for (path, backup) in backups.into_iter().flatten() {
            let name = backup.get("backupFileName").and_then(Value::as_str).map(str::to_owned);
            if self.0.len() >= MAX_FILES && !self.0.contains_key(path) {
                continue;
            }
            let Some(before) = self.0.insert(path.clone(), name.clone()) else { continue };
            if before == name {
                continue;
            }
            let held = |name: Option<String>| match name {
                Some(name) => sidecar.backup(&name).map_or(FileSnapshot::Unknown, FileSnapshot::Text),
                None => FileSnapshot::Absent,
            };
            // Paths in the working directory are relative.
            let whole = match below {
                Some(below) if !path.starts_with(['/', '\\', '~']) && path.get(1..2) != Some(":") => {
                    format!("{}/{path}", below.trim_end_matches('/'))
                }
                Some(_) | None => path.clone(),
            };
            edits.extend(edit_between(&FileLocation::local(whole), None, held(before), held(name)));
        }
        edits
    }
}
