//! Snapshots: the content of each file at the start of a request, or at a stop inside it.

use std::collections::BTreeMap;

use grove_transcript::FileLocation;
use grove_transcript::uri::location_from;
use serde_json::Value;

use super::{Moment, list, note, text};

/// The snapshots, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Snapshots(Vec<RequestSnapshot>);

#[derive(Clone, Debug)]
struct RequestSnapshot {
    when: SnapshotMoment,
    /// The content of each file, by URI; `None` if it was deleted.
    files: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SnapshotMoment {
    At { request: Option<String>, stop: Option<String> },
    After { request: Option<String> },
    Newest,
}

pub(super) enum SnapshotContent<'a> {
    Hash(&'a str),
    Deleted,
    /// The file was not touched yet.
    NotYet,
    NoSuchMoment,
}

impl Snapshots {
    pub(super) fn of(state: &Value, places: &mut BTreeMap<String, FileLocation>) -> Self {
        let mut snapshots = Vec::new();
        for item in list(state, "linearHistory") {
            let request = text(item, "requestId").map(str::to_owned);
            if item.get("stops").is_none() {
                let when = SnapshotMoment::At { request, stop: None };
                snapshots.push(RequestSnapshot { when, files: files_of(list(item, "entries"), places) });
                continue;
            }
            for stop in list(item, "stops") {
                let when =
                    SnapshotMoment::At { request: request.clone(), stop: text(stop, "stopId").map(str::to_owned) };
                snapshots.push(RequestSnapshot { when, files: files_of(list(stop, "entries"), places) });
            }
            if item.get("postEdit").is_some() {
                let when = SnapshotMoment::After { request };
                snapshots.push(RequestSnapshot { when, files: files_of(list(item, "postEdit"), places) });
            }
        }
        let newest = ["pendingSnapshot", "recentSnapshot"].iter().filter_map(|key| state.get(key));
        for snapshot in newest {
            let entries = if snapshot.is_array() {
                snapshot.as_array().map_or(&[][..], Vec::as_slice)
            } else {
                list(snapshot, "entries")
            };
            snapshots.push(RequestSnapshot { when: SnapshotMoment::Newest, files: files_of(entries, places) });
        }
        Self(snapshots)
    }

    pub(super) fn hash_at(&self, uri: &str, moment: &Moment) -> SnapshotContent<'_> {
        let Some(at) = self.position(moment) else {
            return if *moment == Moment::Start { SnapshotContent::NotYet } else { SnapshotContent::NoSuchMoment };
        };
        // A snapshot lists the files known then; an earlier one still counts.
        let known = self.0[..=at].iter().rev().find_map(|snapshot| snapshot.files.get(uri));
        match known {
            Some(Some(hash)) => SnapshotContent::Hash(hash),
            Some(None) => SnapshotContent::Deleted,
            None => SnapshotContent::NotYet,
        }
    }

    fn position(&self, moment: &Moment) -> Option<usize> {
        let is = |request: &Option<String>, wanted: &str| request.as_deref() == Some(wanted);
        match moment {
            Moment::Start => None,
            Moment::Now => self.0.len().checked_sub(1),
            Moment::At { request: wanted, stop: wanted_stop } => {
                self.0.iter().position(|snapshot| match &snapshot.when {
                    SnapshotMoment::At { request, stop } => {
                        is(request, wanted) && (wanted_stop.is_none() || stop == wanted_stop)
                    }
                    SnapshotMoment::After { .. } | SnapshotMoment::Newest => false,
                })
            }
            Moment::After { request: wanted } => {
                let position = self.0.iter().position(|snapshot| match &snapshot.when {
                    SnapshotMoment::After { request } => is(request, wanted),
                    SnapshotMoment::At { .. } | SnapshotMoment::Newest => false,
                });
                // A request without a snapshot ended where the next one began.
                position.or_else(|| {
                    let last = self.0.iter().rposition(|snapshot| match &snapshot.when {
                        SnapshotMoment::At { request, .. } => is(request, wanted),
                        SnapshotMoment::After { .. } | SnapshotMoment::Newest => false,
                    })?;
                    Some((last + 1).min(self.0.len() - 1))
                })
            }
        }
    }
}

fn files_of(entries: &[Value], places: &mut BTreeMap<String, FileLocation>) -> BTreeMap<String, Option<String>> {
    let mut files = BTreeMap::new();
    for entry in entries {
        let Some(place) = entry.get("resource").and_then(location_from) else { continue };
        let is_deleted = entry.get("isDeleted").and_then(Value::as_bool) == Some(true);
        let hash = text(entry, "currentHash").map(str::to_owned);
        if is_deleted || hash.is_some() {
            files.insert(note(places, place), hash.filter(|_| !is_deleted));
        }
    }
    files
}
