//! Editing sessions: the contents of a session's files before, between and after its requests.
//!
//! VS Code has had three formats: snapshots for each request (version 1), snapshots for each stop inside a request
//! (version 2 until September 2025), and a timeline of operations (version 2 since). Contents that are not in
//! `state.json` itself are stored in `contents/`, named by the beginning of their hash.

mod edits;
mod snapshots;
mod text;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grove_transcript::FileLocation;
use grove_transcript::uri::{location_from, same_uri};
use serde_json::Value;

use crate::error::HistoryError;
pub use crate::file_edit::FileSnapshot;
use crate::files;
use crate::json::lenient;
use crate::limits::{MAX_EDITING_STATE, MAX_SMALL_FILE};
use snapshots::Snapshots;
pub use text::apply_changes;
use timeline::Timeline;

/// The format of an editing session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Snapshots for each request.
    Requests,
    /// Snapshots for each stop of each request.
    Stops,
    Timeline,
}

/// A moment in an editing session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the first edit.
    Start,
    /// The start of a request; with a stop, the time of that stop inside it.
    At { request: String, stop: Option<String> },
    /// The end of a request.
    After { request: String },
    /// The last state of the session.
    Now,
}

/// An editing session.
#[derive(Clone, Debug)]
pub struct EditingSession {
    pub generation: Generation,
    folder: PathBuf,
    /// Hashes of files' contents before the first edit, by URI.
    initial: BTreeMap<String, String>,
    history: EditHistory,
    /// Every touched file, in the order of their URIs.
    places: BTreeMap<String, FileLocation>,
}

#[derive(Clone, Debug)]
enum EditHistory {
    Snapshots(Snapshots),
    Timeline(Timeline),
}

/// Reads an editing session from its folder.
pub fn read(folder: &Path) -> Result<EditingSession, HistoryError> {
    let path = folder.join("state.json");
    let json = files::read(&path, MAX_EDITING_STATE)?;
    of_json(&json, folder).map_err(|error| HistoryError::malformed(&path, error))
}

/// Reads an editing session from its `state.json`; contents are read from the folder.
pub fn of_json(json: &[u8], folder: &Path) -> Result<EditingSession, serde_json::Error> {
    let state = lenient::read::<Value>(json)?.value;
    let mut places = BTreeMap::new();
    let mut initial = BTreeMap::new();
    for pair in list(&state, "initialFileContents") {
        if let (Some(place), Some(hash)) = (pair.get(0).and_then(location_from), pair.get(1).and_then(Value::as_str)) {
            initial.insert(note(&mut places, place), hash.to_owned());
        }
    }
    let (generation, history) = match (state.get("timeline"), state.get("linearHistory")) {
        (Some(timeline), _) => (Generation::Timeline, EditHistory::Timeline(Timeline::of(timeline, &mut places))),
        (None, Some(items)) => {
            let has_stops = items.as_array().is_some_and(|items| items.iter().any(|item| item.get("stops").is_some()));
            let is_first = !has_stops && state.get("version").and_then(Value::as_u64) != Some(2);
            let generation = if is_first { Generation::Requests } else { Generation::Stops };
            (generation, EditHistory::Snapshots(Snapshots::of(&state, &mut places)))
        }
        // A state without a timeline has only the newest snapshot.
        (None, None) => (Generation::Timeline, EditHistory::Snapshots(Snapshots::of(&state, &mut places))),
    };
    Ok(EditingSession { generation, folder: folder.to_owned(), initial, history, places })
}

impl EditingSession {
    /// Every touched file.
    pub fn files(&self) -> impl Iterator<Item = &FileLocation> {
        self.places.values()
    }

    /// A file's content at a moment.
    pub fn text_at(&self, uri: &str, moment: &Moment) -> FileSnapshot {
        let uri = same_uri(uri);
        if *moment == Moment::Start
            && let Some(hash) = self.initial.get(&uri)
        {
            return self.content(hash);
        }
        match &self.history {
            EditHistory::Timeline(timeline) => {
                timeline.text_at(&uri, moment, &|uri| self.initial.get(uri).map(|hash| self.content(hash)))
            }
            EditHistory::Snapshots(snapshots) => match snapshots.hash_at(&uri, moment) {
                snapshots::SnapshotContent::Hash(hash) => self.content(hash),
                snapshots::SnapshotContent::Deleted => FileSnapshot::Absent,
                snapshots::SnapshotContent::NotYet => {
                    self.initial.get(&uri).map_or(FileSnapshot::Unknown, |hash| self.content(hash))
                }
                snapshots::SnapshotContent::NoSuchMoment => FileSnapshot::Unknown,
            },
        }
    }

    /// A content by its hash. Only a valid hash is used as a file's name.
    fn content(&self, hash: &str) -> FileSnapshot {
        // Empty files have no stored content.
        if hash.is_empty() || hash.len() > 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return FileSnapshot::Unknown;
        }
        let path = self.folder.join("contents").join(hash);
        files::read_text(&path, MAX_SMALL_FILE).map_or(FileSnapshot::Unknown, FileSnapshot::Text)
    }
}

/// Records a file; returns the URI for comparison.
fn note(places: &mut BTreeMap<String, FileLocation>, place: FileLocation) -> String {
    let uri = same_uri(&place.uri);
    places.entry(uri.clone()).or_insert(place);
    uri
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
