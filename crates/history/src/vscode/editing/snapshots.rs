//! Snapshots: which content each file had when a request, or a stop inside it, was made.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Moment, list, note, text};
use crate::normal::Place;
use crate::vscode::uri::place_of;

/// The snapshots, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Snapshots(Vec<Snapshot>);

#[derive(Clone, Debug)]
struct Snapshot {
    when: When,
    /// What each file held, by URI; `None` where it was deleted.
    files: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum When {
    At { request: Option<String>, stop: Option<String> },
    After { request: Option<String> },
    Newest,
}

pub(super) enum Found<'a> {
    Hash(&'a str),
    Deleted,
    /// The file had not been touched.
    NotYet,
    NoSuchMoment,
}

impl Snapshots {
    pub(super) fn of(state: &Value, places: &mut BTreeMap<String, Place>) -> Self {
        let mut snapshots = Vec::new();
        for item in list(state, "linearHistory") {
            let request = text(item, "requestId").map(str::to_owned);
            if item.get("stops").is_none() {
                let when = When::At { request, stop: None };
                snapshots.push(Snapshot { when, files: files_of(list(item, "entries"), places) });
                continue;
            }
            for stop in list(item, "stops") {
                let when = When::At { request: request.clone(), stop: text(stop, "stopId").map(str::to_owned) };
                snapshots.push(Snapshot { when, files: files_of(list(stop, "entries"), places) });
            }
            if item.get("postEdit").is_some() {
                let when = When::After { request };
                snapshots.push(Snapshot { when, files: files_of(list(item, "postEdit"), places) });
            }
        }
        let newest = ["pendingSnapshot", "recentSnapshot"].iter().filter_map(|key| state.get(key));
        for snapshot in newest {
            let entries = if snapshot.is_array() {
                snapshot.as_array().map_or(&[][..], Vec::as_slice)
            } else {
                list(snapshot, "entries")
            };
            snapshots.push(Snapshot { when: When::Newest, files: files_of(entries, places) });
        }
        Self(snapshots)
    }

    pub(super) fn hash_at(&self, uri: &str, moment: &Moment) -> Found<'_> {
        let Some(at) = self.position(moment) else {
            return if *moment == Moment::Start { Found::NotYet } else { Found::NoSuchMoment };
        };
        // A snapshot lists the files that the session knew of then; one that came earlier still counts.
        let known = self.0[..=at].iter().rev().find_map(|snapshot| snapshot.files.get(uri));
        match known {
            Some(Some(hash)) => Found::Hash(hash),
            Some(None) => Found::Deleted,
            None => Found::NotYet,
        }
    }

    fn position(&self, moment: &Moment) -> Option<usize> {
        let is = |request: &Option<String>, wanted: &str| request.as_deref() == Some(wanted);
        match moment {
            Moment::Start => None,
            Moment::Now => self.0.len().checked_sub(1),
            Moment::At { request: wanted, stop: wanted_stop } => {
                self.0.iter().position(|snapshot| match &snapshot.when {
                    When::At { request, stop } => is(request, wanted) && (wanted_stop.is_none() || stop == wanted_stop),
                    When::After { .. } | When::Newest => false,
                })
            }
            Moment::After { request: wanted } => {
                let said = self.0.iter().position(|snapshot| match &snapshot.when {
                    When::After { request } => is(request, wanted),
                    When::At { .. } | When::Newest => false,
                });
                // Without a snapshot of its own a request ended where the next one began.
                said.or_else(|| {
                    let last = self.0.iter().rposition(|snapshot| match &snapshot.when {
                        When::At { request, .. } => is(request, wanted),
                        When::After { .. } | When::Newest => false,
                    })?;
                    Some((last + 1).min(self.0.len() - 1))
                })
            }
        }
    }
}

fn files_of(entries: &[Value], places: &mut BTreeMap<String, Place>) -> BTreeMap<String, Option<String>> {
    let mut files = BTreeMap::new();
    for entry in entries {
        let Some(place) = entry.get("resource").and_then(place_of) else { continue };
        let is_deleted = entry.get("isDeleted").and_then(Value::as_bool) == Some(true);
        let hash = text(entry, "currentHash").map(str::to_owned);
        if is_deleted || hash.is_some() {
            files.insert(note(places, place), hash.filter(|_| !is_deleted));
        }
    }
    files
}
