//! The file changes of each request: the contents before it, compared with those after it.

use std::collections::{BTreeMap, BTreeSet};

use grove_transcript::TranscriptEdit;

use super::{EditHistory, EditingSession, Moment, snapshots};
use crate::changes::MAX_CHANGES;
use crate::file_edit::edit_between;

/// The maximum size of compared text of one request.
const MAX_COMPARED: usize = 64 * 1024 * 1024;

impl EditingSession {
    /// The files that a request created, changed, moved or deleted, in the order of their URIs: no more than the
    /// maximum of a session's changes.
    pub fn edits(&self, request: &str) -> Vec<TranscriptEdit> {
        let before = Moment::At { request: request.to_owned(), stop: None };
        let after = Moment::After { request: request.to_owned() };
        let (touched, moved) = match &self.history {
            EditHistory::Timeline(timeline) => timeline.touched(&before, &after),
            EditHistory::Snapshots(_) => (self.differing(&before, &after), BTreeMap::new()),
        };
        let mut edits = Vec::new();
        let mut compared = 0;
        for uri in touched.iter().filter(|uri| !moved.values().any(|old| old == *uri)).take(MAX_CHANGES) {
            let Some(place) = self.places.get(uri) else { continue };
            let old = moved.get(uri);
            let from = old.and_then(|old| self.places.get(old));
            let (held, holds) = (self.text_at(old.unwrap_or(uri), &before), self.text_at(uri, &after));
            compared += [&held, &holds].iter().map(|file| file.length()).sum::<usize>();
            // Further files are reported as edited, without the changes.
            let (held, holds) = if compared > MAX_COMPARED { (held.unread(), holds.unread()) } else { (held, holds) };
            edits.extend(edit_between(place, from, held, holds));
        }
        edits
    }

    /// The files whose snapshots differ between two moments.
    fn differing(&self, before: &Moment, after: &Moment) -> BTreeSet<String> {
        let EditHistory::Snapshots(snapshots) = &self.history else { return BTreeSet::new() };
        let hash = |uri: &String, moment: &Moment| match snapshots.hash_at(uri, moment) {
            snapshots::SnapshotContent::Hash(hash) => Some(Some(hash.to_owned())),
            snapshots::SnapshotContent::Deleted => Some(None),
            snapshots::SnapshotContent::NotYet => Some(self.initial.get(uri).cloned()),
            snapshots::SnapshotContent::NoSuchMoment => None,
        };
        let differs = |uri: &&String| match (hash(uri, before), hash(uri, after)) {
            (Some(before), Some(after)) => before != after,
            _ => false,
        };
        self.places.keys().filter(differs).cloned().collect()
    }
}
