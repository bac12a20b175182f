//! Grouping sessions under headings, one for each workspace.
//!
//! Sessions are grouped by the host, then by the repository wherever it was cloned, else by the folder. The heading is
//! only the name of that. So folders of the same name stay separate, and their headings show their parent folders; the
//! same repository on another host is another group.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ids::Uri;
use crate::session::{Session, SessionWorkspace};

/// The heading of sessions without a known workspace.
pub const UNKNOWN: &str = "Unknown";

/// The most parent folders that a heading names. Past it the heading has the full path.
const FOLDERS: usize = 32;

/// Sessions in the same workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionGroup {
    /// The workspace. `None`: it is unknown.
    pub key: Option<GroupKey>,
    /// Its name for people.
    pub label: Arc<str>,
    /// Its location, given if another group has the same name.
    pub detail: Option<String>,
    /// The sessions, in the given order.
    pub sessions: Vec<Session>,
}

impl SessionGroup {
    /// The heading above the sessions.
    pub fn heading(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.label),
            None => self.label.to_string(),
        }
    }
}

/// The identity of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The host, if it is not this one.
    pub host: Option<Arc<str>>,
    /// Its location there.
    pub place: GroupLocation,
}

/// A location on a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupLocation {
    /// A repository that is the same wherever it was cloned.
    Repository(Arc<str>),
    /// A folder, or a repository that is identified only by its folder.
    Folder(Uri),
}

impl GroupKey {
    /// The key of a workspace. `None` if it has no label.
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

    /// The names of the parent folders, outermost first.
    fn parents(&self) -> Vec<String> {
        let mut way: Vec<String> = match &self.place {
            GroupLocation::Repository(identity) => identity.split('/').map(str::to_owned).collect(),
            GroupLocation::Folder(uri) => uri.segments(),
        };
        way.pop();
        way
    }
}

/// Groups sessions under headings, sorted by name. Those without a workspace come last.
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
    /// The number of sessions for each label: a clone may have another name than its repository.
    labels: BTreeMap<Arc<str>, usize>,
    sessions: Vec<Session>,
}

impl GroupMembers {
    /// The group gets the most frequent label, of equally frequent ones the alphabetically first.
    fn into_group(self, key: GroupKey) -> SessionGroup {
        let most = self.labels.iter().rev().max_by_key(|(_, count)| **count);
        let label = most.map_or_else(|| UNKNOWN.into(), |(label, _)| label.clone());
        SessionGroup { key: Some(key), label, detail: None, sessions: self.sessions }
    }
}

/// Adds as much location to groups of the same label as makes them distinct.
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

/// As many parent folders as make all of them differ; past the limit the host and the full path.
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
