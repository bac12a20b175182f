//! The timeline: every operation has an epoch, and a file's text at an epoch is its newest stored text with the later
//! operations applied.

use std::collections::{BTreeMap, BTreeSet};

use grove_transcript::uri::{location_from, range_of};
use grove_transcript::{FileLocation, TextChange};
use serde_json::Value;

use super::text::apply_changes;
use super::{FileSnapshot, Moment, list, note, text};
use crate::limits::MAX_DEPTH;

/// The maximum number of copied bytes for one file's text: each operation copies it completely.
const MAX_WORK: u64 = 2 * 1024 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Timeline {
    checkpoints: Vec<TimelineCheckpoint>,
    /// By epoch.
    operations: Vec<TimelineOperation>,
    baselines: Vec<Baseline>,
    /// The target of an undo; later operations are not in effect.
    current: u64,
}

#[derive(Clone, Debug)]
struct TimelineCheckpoint {
    request: Option<String>,
    stop: Option<String>,
    epoch: u64,
}

#[derive(Clone, Debug)]
struct TimelineOperation {
    uri: String,
    epoch: u64,
    action: TimelineAction,
}

#[derive(Clone, Debug)]
enum TimelineAction {
    Create(String),
    Delete,
    /// The file was renamed from another name.
    RenamedFrom(String),
    /// The file was renamed to another name.
    RenamedAway,
    Edit(Vec<TextChange>),
    /// A notebook cell, or a newer operation: its effect on the text is not known.
    Other,
}

#[derive(Clone, Debug)]
struct Baseline {
    uri: String,
    epoch: u64,
    content: String,
}

impl Timeline {
    pub(super) fn of(timeline: &Value, places: &mut BTreeMap<String, FileLocation>) -> Self {
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        let checkpoints = list(timeline, "checkpoints").iter().map(|checkpoint| TimelineCheckpoint {
            request: text(checkpoint, "requestId").map(str::to_owned),
            stop: text(checkpoint, "undoStopId").map(str::to_owned),
            epoch: number(checkpoint, "epoch").unwrap_or(0),
        });
        let baselines = list(timeline, "fileBaselines").iter().filter_map(|pair| {
            let baseline = pair.get(1)?;
            let content = text(baseline, "content")?.to_owned();
            Some((location_from(baseline.get("uri")?)?, number(baseline, "epoch")?, content))
        });
        let mut read = Self {
            checkpoints: checkpoints.collect(),
            operations: Vec::new(),
            baselines: Vec::new(),
            current: number(timeline, "currentEpoch").unwrap_or(u64::MAX),
        };
        for (place, epoch, content) in baselines {
            read.baselines.push(Baseline { uri: note(places, place), epoch, content });
        }
        for operation in list(timeline, "operations") {
            let (Some(place), Some(epoch)) = (operation.get("uri").and_then(location_from), number(operation, "epoch"))
            else {
                continue;
            };
            read.operation(operation, epoch, place, places);
        }
        read.operations.sort_by_key(|operation| operation.epoch);
        read
    }

    fn operation(
        &mut self,
        operation: &Value,
        epoch: u64,
        place: FileLocation,
        places: &mut BTreeMap<String, FileLocation>,
    ) {
        let uri = note(places, place);
        let action = match text(operation, "type") {
            Some("create") => TimelineAction::Create(text(operation, "initialContent").unwrap_or_default().to_owned()),
            Some("delete") => TimelineAction::Delete,
            Some("rename") => {
                let end = |key: &str| operation.get(key).and_then(location_from);
                if let (Some(old), Some(new)) = (end("oldUri"), end("newUri")) {
                    let (old, new) = (note(places, old), note(places, new));
                    self.operations.push(TimelineOperation {
                        uri: new,
                        epoch,
                        action: TimelineAction::RenamedFrom(old.clone()),
                    });
                    self.operations.push(TimelineOperation { uri: old, epoch, action: TimelineAction::RenamedAway });
                }
                return;
            }
            Some("textEdit") if operation.get("cellIndex").is_none_or(Value::is_null) => {
                let changes: Option<Vec<TextChange>> = list(operation, "edits")
                    .iter()
                    .map(|edit| {
                        Some(TextChange { range: range_of(edit.get("range")?)?, text: text(edit, "text")?.to_owned() })
                    })
                    .collect();
                changes.map_or(TimelineAction::Other, TimelineAction::Edit)
            }
            _ => TimelineAction::Other,
        };
        self.operations.push(TimelineOperation { uri, epoch, action });
    }

    pub(super) fn text_at(
        &self,
        uri: &str,
        moment: &Moment,
        initial: &dyn Fn(&str) -> Option<FileSnapshot>,
    ) -> FileSnapshot {
        match self.epoch_of(moment) {
            Some(epoch) => self.text_before(uri, epoch, initial, 0),
            None => FileSnapshot::Unknown,
        }
    }

    /// The files touched between two moments, and the earlier names of the moved ones.
    pub(super) fn touched(&self, from: &Moment, to: &Moment) -> (BTreeSet<String>, BTreeMap<String, String>) {
        let (Some(from), Some(to)) = (self.epoch_of(from), self.epoch_of(to)) else { return Default::default() };
        let mut files = BTreeSet::new();
        let mut moved: BTreeMap<String, String> = BTreeMap::new();
        let to = to.min(self.current);
        for operation in self.operations.iter().filter(|it| (from..to).contains(&it.epoch)) {
            files.insert(operation.uri.clone());
            if let TimelineAction::RenamedFrom(old) = &operation.action {
                // A file that is moved twice comes from its first name.
                let first = moved.remove(old).unwrap_or_else(|| old.clone());
                moved.insert(operation.uri.clone(), first);
            }
        }
        moved.retain(|new, old| new != old);
        (files, moved)
    }

    /// The epoch of a moment: earlier operations count.
    fn epoch_of(&self, moment: &Moment) -> Option<u64> {
        match moment {
            Moment::Start => Some(0),
            Moment::Now => Some(self.current),
            Moment::At { request, stop } => {
                let is = |checkpoint: &&TimelineCheckpoint| {
                    checkpoint.request.as_ref() == Some(request) && (stop.is_none() || checkpoint.stop == *stop)
                };
                self.checkpoints.iter().find(is).map(|checkpoint| checkpoint.epoch)
            }
            Moment::After { request } => {
                let last =
                    self.checkpoints.iter().rposition(|checkpoint| checkpoint.request.as_ref() == Some(request))?;
                Some(self.checkpoints.get(last + 1).map_or(self.current, |next| next.epoch))
            }
        }
    }

    fn text_before(
        &self,
        uri: &str,
        epoch: u64,
        initial: &dyn Fn(&str) -> Option<FileSnapshot>,
        depth: usize,
    ) -> FileSnapshot {
        // A chain of renames might not end; epochs decrease with each, so this is only for invalid files.
        if depth > MAX_DEPTH {
            return FileSnapshot::Unknown;
        }
        let earlier = || self.operations.iter().filter(|operation| operation.uri == uri && operation.epoch < epoch);
        let begins = |operation: &&TimelineOperation| {
            matches!(operation.action, TimelineAction::Create(_) | TimelineAction::RenamedFrom(_))
        };
        let baseline = self.baselines.iter().filter(|baseline| baseline.uri == uri && baseline.epoch <= epoch);
        let baseline = baseline.max_by_key(|baseline| baseline.epoch);
        let beginning = earlier().rfind(begins);
        let (mut file, from) = match (beginning, baseline) {
            (Some(beginning), baseline) if baseline.is_none_or(|baseline| baseline.epoch <= beginning.epoch) => {
                let file = match &beginning.action {
                    TimelineAction::Create(content) => FileSnapshot::Text(content.clone()),
                    TimelineAction::RenamedFrom(old) => self.text_before(old, beginning.epoch, initial, depth + 1),
                    TimelineAction::Delete
                    | TimelineAction::RenamedAway
                    | TimelineAction::Edit(_)
                    | TimelineAction::Other => FileSnapshot::Unknown,
                };
                (file, beginning.epoch + 1)
            }
            (_, Some(baseline)) => (FileSnapshot::Text(baseline.content.clone()), baseline.epoch),
            (_, None) => (self.untouched(uri, initial), 0),
        };
        let mut work = 0_u64;
        for operation in earlier().filter(|operation| operation.epoch >= from) {
            if let FileSnapshot::Text(text) = &file {
                work = work.saturating_add(text.len() as u64);
            }
            if work > MAX_WORK {
                return FileSnapshot::Unknown;
            }
            file = match (&operation.action, file) {
                (TimelineAction::Create(content), _) => FileSnapshot::Text(content.clone()),
                (TimelineAction::Delete | TimelineAction::RenamedAway, _) => FileSnapshot::Absent,
                (TimelineAction::Edit(changes), FileSnapshot::Text(text)) => {
                    FileSnapshot::Text(apply_changes(&text, changes))
                }
                (TimelineAction::RenamedFrom(_), file) => file,
                (TimelineAction::Edit(_) | TimelineAction::Other, _) => FileSnapshot::Unknown,
            };
        }
        file
    }

    /// A file before the session knew it: as at its first appearance.
    fn untouched(&self, uri: &str, initial: &dyn Fn(&str) -> Option<FileSnapshot>) -> FileSnapshot {
        if let Some(file) = initial(uri) {
            return file;
        }
        let baseline =
            self.baselines.iter().filter(|baseline| baseline.uri == uri).min_by_key(|baseline| baseline.epoch);
        let first = self.operations.iter().find(|operation| operation.uri == uri);
        match (first.map(|first| (&first.action, first.epoch)), baseline) {
            (Some((TimelineAction::Create(_) | TimelineAction::RenamedFrom(_), epoch)), baseline)
                if baseline.is_none_or(|baseline| baseline.epoch >= epoch) =>
            {
                FileSnapshot::Absent
            }
            (_, Some(baseline)) => FileSnapshot::Text(baseline.content.clone()),
            (_, None) => FileSnapshot::Unknown,
        }
    }
}
