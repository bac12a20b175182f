//! Detecting changes of the list's headings.
//!
//! Computing the headings takes the whole list. So it is only done if a place, or a session's name for it, is added or
//! removed.

use std::collections::HashMap;
use std::sync::Arc;

use grove_sessions::grouping::{self, GroupKey, GroupLocation};
use grove_sessions::provider::SessionsChange;
use grove_sessions::session::SessionState;
use grove_sessions::{Session, SessionId};
use grove_wire::x_grove::sessions::SessionListGroup;

/// A place, and a session's name for it. `None` if it is not known.
type Tag = Option<(GroupKey, Arc<str>)>;

#[derive(Debug, Default)]
pub(super) struct Headings {
    tags: HashMap<SessionId, Tag>,
    /// The number of sessions for each name of a place.
    places: HashMap<Option<GroupKey>, HashMap<Arc<str>, usize>>,
}

impl Headings {
    pub(super) fn of(sessions: &[Session]) -> Self {
        let mut headings = Self::default();
        for session in sessions {
            headings.put(session);
        }
        headings
    }

    /// Handles a change. Returns whether headings may have changed.
    pub(super) fn change(&mut self, change: &SessionsChange) -> bool {
        let mut differs = false;
        for session in &change.removed {
            if let Some(tag) = self.tags.remove(session.id()) {
                differs |= self.count(&tag, |count| *count -= 1);
            }
        }
        for session in change.added.iter().chain(&change.changed) {
            differs |= self.put(session);
        }
        differs
    }

    fn put(&mut self, session: &Session) -> bool {
        let tag = tag(&session.state());
        let before = self.tags.insert(session.id().clone(), tag.clone());
        if before.as_ref() == Some(&tag) {
            return false;
        }
        let left = before.is_some_and(|before| self.count(&before, |count| *count -= 1));
        self.count(&tag, |count| *count += 1) | left
    }

    /// Counts a session. Returns whether a name was added or removed, or the weights of several names changed.
    fn count(&mut self, tag: &Tag, change: impl FnOnce(&mut usize)) -> bool {
        let (key, label) = match tag {
            Some((key, label)) => (Some(key.clone()), label.clone()),
            None => (None, grouping::UNKNOWN.into()),
        };
        let names = self.places.entry(key.clone()).or_default();
        let count = names.entry(label.clone()).or_default();
        let before = *count;
        change(count);
        let after = *count;
        if after == 0 {
            names.remove(&label);
        }
        let differs = (before == 0) != (after == 0) || names.len() > 1;
        if names.is_empty() {
            self.places.remove(&key);
        }
        differs
    }
}

fn tag(state: &SessionState) -> Tag {
    let workspace = state.workspace.as_ref()?;
    Some((GroupKey::of(workspace)?, workspace.label.clone()))
}

/// The headings of a list, in their order.
pub(super) fn headings(sessions: Vec<Session>) -> Vec<SessionListGroup> {
    let groups = grouping::group(sessions).into_iter();
    groups.map(|group| SessionListGroup { key: group.key.as_ref().map(name), heading: group.heading() }).collect()
}

/// The key of a row's group.
pub(super) fn group_of(state: &SessionState) -> Option<String> {
    GroupKey::of(state.workspace.as_ref()?).as_ref().map(name)
}

fn name(key: &GroupKey) -> String {
    // The bar ends the host's name, so the name must not contain one.
    let host = key.host.as_deref().unwrap_or_default().replace('|', "%7C");
    match &key.place {
        GroupLocation::Repository(identity) => format!("{host}|repository|{identity}"),
        GroupLocation::Folder(uri) => format!("{host}|folder|{uri}"),
    }
}
