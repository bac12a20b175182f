//! Sessions under headings, one for each place that they work in.
//!
//! What belongs together is decided by what the place is: the host, then the repository wherever it was cloned, else the
//! folder. The heading is only how that is called. So folders of the same name stay apart, and are told apart by where
//! they lie; the same repository on another host is a group of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ids::Uri;
use crate::session::{Session, SessionWorkspace};

/// The heading of sessions of which nobody knows where they work.
pub const UNKNOWN: &str = "Unknown";

/// How many folders above a place a heading names at most. Past it the whole place stands there.
const FOLDERS: usize = 32;

/// Sessions that work in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionGroup {
    /// The place. `None`: it is not known.
    pub key: Option<GroupKey>,
    /// What people call it.
    pub label: Arc<str>,
    /// Where it lies, given where another group is called the same.
    pub detail: Option<String>,
    /// The sessions, in the order in which they were given.
    pub sessions: Vec<Session>,
}

impl SessionGroup {
    /// What stands above the sessions.
    pub fn heading(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.label),
            None => self.label.to_string(),
        }
    }
}

/// What a place is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The host, where it is not this one.
    pub host: Option<Arc<str>>,
    /// What lies there.
    pub place: GroupLocation,
}

/// What lies on a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupLocation {
    /// A repository that is the same wherever it was cloned.
    Repository(Arc<str>),
    /// A folder, or a repository that only its folder tells from others.
    Folder(Uri),
}

impl GroupKey {
    /// The place of a workspace. `None` where it has no label.
    pub fn of(workspace: &SessionWorkspace) -> Option<Self> {
        if workspace.label.is_empty() {
            return None;
        }
        let repository = workspace.repositories.first();
        let place = match repository.and_then(|repository| repository.identity.clone()) {
            Some(identity) => GroupLocation::Repository(identity),
            None => GroupLocation::Folder(repository.map_or(&workspace.uri, |repository| &repository.uri).clone()),
        };
        Some(Self { host: workspace.host.clone(), place })
    }

    /// The names on the way to the place, outermost first and without its own.
    fn parents(&self) -> Vec<String> {
        let mut way: Vec<String> = match &self.place {
            GroupLocation::Repository(identity) => identity.split('/').map(str::to_owned).collect(),
            GroupLocation::Folder(uri) => uri.segments(),
        };
        way.pop();
        way
    }
}

/// Puts sessions under headings, sorted by name. Those without a place come last.
pub fn group(sessions: impl IntoIterator<Item = Session>) -> Vec<SessionGroup> {
    let mut places: HashMap<GroupKey, GroupMembers> = HashMap::new();
    let mut unknown = Vec::new();
    for session in sessions {
        let workspace = session.workspace();
        match workspace.and_then(|workspace| Some((GroupKey::of(&workspace)?, workspace.label.clone()))) {
            Some((key, label)) => {
                let members = places.entry(key).or_default();
                *members.labels.entry(label).or_default() += 1;
                members.sessions.push(session);
            }
            None => unknown.push(session),
        }
    }
    let mut groups: Vec<SessionGroup> = places.into_iter().map(|(key, members)| members.into_group(key)).collect();
    tell_apart(&mut groups);
    groups.sort_by_cached_key(|group| (group.heading().to_lowercase(), group.key.clone()));
    if !unknown.is_empty() {
        groups.push(SessionGroup { key: None, label: UNKNOWN.into(), detail: None, sessions: unknown });
    }
    groups
}

#[derive(Default)]
struct GroupMembers {
    /// How many sessions call the place so: a clone may have another name than its repository.
    labels: BTreeMap<Arc<str>, usize>,
    sessions: Vec<Session>,
}

impl GroupMembers {
    /// The group is called as most of its sessions call it, of equally many the first in the alphabet.
    fn into_group(self, key: GroupKey) -> SessionGroup {
        let most = self.labels.iter().rev().max_by_key(|(_, count)| **count);
        let label = most.map_or_else(|| UNKNOWN.into(), |(label, _)| label.clone());
        SessionGroup { key: Some(key), label, detail: None, sessions: self.sessions }
    }
}

/// Gives groups of one label as much of where they lie as it takes to tell them apart.
fn tell_apart(groups: &mut [SessionGroup]) {
    let mut same: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (place, group) in groups.iter().enumerate() {
        same.entry(group.label.clone()).or_default().push(place);
    }
    for places in same.into_values().filter(|places| places.len() > 1) {
        let keys: Vec<GroupKey> = places.iter().filter_map(|place| groups[*place].key.clone()).collect();
        for (place, detail) in places.into_iter().zip(details(&keys)) {
            groups[place].detail = Some(detail);
        }
    }
}

/// As many folders above each place as make all of them differ; past the last one the host and the whole place.
fn details(keys: &[GroupKey]) -> Vec<String> {
    let ways: Vec<Vec<String>> = keys.iter().map(GroupKey::parents).collect();
    let deepest = ways.iter().map(Vec::len).max().unwrap_or_default();
    for depth in 1..=deepest.min(FOLDERS) {
        let tail = |way: &Vec<String>| way[way.len().saturating_sub(depth)..].join("/");
        let details: Vec<String> = ways.iter().map(tail).collect();
        let mut distinct = details.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() == details.len() && !distinct[0].is_empty() {
            return details;
        }
    }
    let whole = |key: &GroupKey| {
        let host = key.host.as_deref().map(|host| format!("{host} ")).unwrap_or_default();
        match &key.place {
            GroupLocation::Repository(identity) => format!("{host}{identity}"),
            GroupLocation::Folder(uri) => format!("{host}{uri}"),
        }
    };
    keys.iter().map(whole).collect()
}
