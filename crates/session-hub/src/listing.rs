//! The pages of the list: filter, order and groups.

use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use grove_core::Timestamp;
use grove_host::session_hub::SessionHubRefusal;
use grove_sessions::session::SessionState;
use grove_sessions::{Management, ProviderId, Session, SessionId};
use grove_wire::x_grove::sessions as wire;
use grove_wire::x_grove::sessions::{SessionListFilter, SessionListGrouping, SessionListSort};

use super::refusal::unfit;
use super::{groups, rows};

/// The requested page of all sessions of a management.
pub fn list_page(
    management: &Management,
    params: wire::SessionsListParams,
) -> Result<wire::SessionsListResult, SessionHubRefusal> {
    let (sessions, pins, labels) = (management.sessions(), management.pins(), provider_labels(management));
    Listing { sessions, pins: &pins, labels: &labels }.page(params)
}

/// The names of the providers.
pub(super) fn provider_labels(management: &Management) -> HashMap<ProviderId, Arc<str>> {
    let providers = management.registry().providers().into_iter();
    providers.map(|provider| (provider.id().clone(), provider.label())).collect()
}

/// Everything that a list is made of.
struct Listing<'a> {
    sessions: Vec<Session>,
    pins: &'a HashSet<SessionId>,
    /// The names of the providers, which are searched too.
    labels: &'a HashMap<ProviderId, Arc<str>>,
}

/// The place of a session in the list. Lower ones come first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListPosition {
    is_pinned: bool,
    at: Timestamp,
    id: SessionId,
}

impl Listing<'_> {
    /// The requested page.
    fn page(self, params: wire::SessionsListParams) -> Result<wire::SessionsListResult, SessionHubRefusal> {
        let after = params.cursor.as_deref().map(read_cursor).transpose()?;
        let limit = params.limit.unwrap_or(wire::DEFAULT_LIST_ROWS).clamp(1, wire::MAX_LIST_ROWS);
        let sort = params.sort.unwrap_or_default();
        let Self { mut sessions, pins, labels } = self;
        if let Some(filter) = params.filter {
            let filter = RowFilter::new(filter, pins, labels)?;
            let mut text = String::new();
            sessions.retain(|session| filter.matches(session, &mut text));
        }
        let total = sessions.len();
        let is_by_project = params.grouping.unwrap_or_default() == SessionListGrouping::Project;
        let groups = (after.is_none() && is_by_project).then(|| groups::headings(sessions.clone()));
        let mut placed: Vec<(ListPosition, Session)> =
            sessions.into_iter().map(|session| (place(&session, pins, sort), session)).collect();
        placed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let first = after.map_or(0, |after| placed.partition_point(|(place, _)| *place <= after));
        let page = &placed[first..placed.len().min(first.saturating_add(limit))];
        let has_more = first + page.len() < total;
        let next_cursor = page.last().filter(|_| has_more).map(|(place, _)| place.cursor());
        let sessions = page.iter().map(|(place, session)| rows::row(session, place.is_pinned)).collect();
        Ok(wire::SessionsListResult { sessions, total, groups, next_cursor })
    }
}

fn place(session: &Session, pins: &HashSet<SessionId>, sort: SessionListSort) -> ListPosition {
    let at = match sort {
        SessionListSort::Created => session.created_at(),
        SessionListSort::Updated => session.updated_at(),
    };
    ListPosition { is_pinned: pins.contains(session.id()), at, id: session.id().clone() }
}

impl ListPosition {
    /// The cursor behind it.
    fn cursor(&self) -> String {
        let pin = if self.is_pinned { "+" } else { "" };
        format!("{pin}{}:{}", self.at.0, self.id)
    }
}

impl Ord for ListPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |place: &Self| (!place.is_pinned, Reverse(place.at));
        key(self).cmp(&key(other)).then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for ListPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn read_cursor(text: &str) -> Result<ListPosition, SessionHubRefusal> {
    let read = || {
        let (is_pinned, rest) = match text.strip_prefix('+') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (at, id) = rest.split_once(':')?;
        Some(ListPosition { is_pinned, at: Timestamp(at.parse().ok()?), id: SessionId::parse(id).ok()? })
    };
    read().ok_or_else(|| unfit("the cursor is invalid: start without one"))
}

/// A filter that was checked.
struct RowFilter<'a> {
    filter: SessionListFilter,
    /// The words of its text, in lower case.
    words: Vec<String>,
    pins: &'a HashSet<SessionId>,
    labels: &'a HashMap<ProviderId, Arc<str>>,
}

impl<'a> RowFilter<'a> {
    fn new(
        filter: SessionListFilter,
        pins: &'a HashSet<SessionId>,
        labels: &'a HashMap<ProviderId, Arc<str>>,
    ) -> Result<Self, SessionHubRefusal> {
        let text = filter.text.as_deref().unwrap_or_default();
        if text.len() > wire::MAX_FILTER_TEXT {
            return Err(unfit(format!("the text of a filter has at most {} bytes", wire::MAX_FILTER_TEXT)));
        }
        if filter.providers.len() > wire::MAX_FILTER_PROVIDERS {
            return Err(unfit(format!("a filter has at most {} providers", wire::MAX_FILTER_PROVIDERS)));
        }
        let words = text.split_whitespace().map(str::to_lowercase).collect();
        Ok(Self { filter, words, pins, labels })
    }

    /// Returns whether a session matches. `text` is a buffer that is used again.
    fn matches(&self, session: &Session, text: &mut String) -> bool {
        let filter = &self.filter;
        let provider = session.provider_id();
        if !filter.providers.is_empty() && !filter.providers.iter().any(|id| id == provider.as_str()) {
            return false;
        }
        if filter.pinned.is_some_and(|pinned| pinned != self.pins.contains(session.id())) {
            return false;
        }
        let state = session.state();
        if filter.archived.is_some_and(|archived| archived != state.is_archived())
            || filter.unread.is_some_and(|unread| unread == state.is_read())
            || (!filter.states.is_empty() && !filter.states.contains(&rows::status(state.status())))
        {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        searched(&state, self.labels.get(provider).map(|label| &**label), text);
        self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Puts the text of a session that is searched into a buffer, in lower case.
fn searched(state: &SessionState, provider: Option<&str>, text: &mut String) {
    text.clear();
    let mut add = |part: &str| {
        // Most text is ASCII, for which no other string is made.
        match part.is_ascii() {
            true => text.extend(part.chars().map(|char| char.to_ascii_lowercase())),
            false => text.push_str(&part.to_lowercase()),
        }
        text.push('\n');
    };
    add(&state.title());
    if let Some(workspace) = &state.workspace {
        add(&workspace.label);
        add(workspace.uri.as_str());
    }
    add(state.metadata.text("branch").unwrap_or_default());
    add(state.session_type.as_str());
    add(provider.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use grove_sessions::session::{SessionSource, SessionStatus};

    use super::*;
    use crate::sample;

    /// Sessions of all states, the oldest first.
    fn sources(count: u64) -> Vec<SessionSource> {
        let status = [SessionStatus::Completed, SessionStatus::InProgress, SessionStatus::Error];
        let status = status.iter().cycle();
        (0..count)
            .zip(status)
            .map(|(number, status)| sample::session(number, &format!("Fix {number}"), *status))
            .collect()
    }

    fn page(sources: &[SessionSource], pins: &[u64], params: wire::SessionsListParams) -> wire::SessionsListResult {
        let pins = pins.iter().map(|pin| sample::provider().session(pin.to_string()).unwrap()).collect();
        let labels = HashMap::from([(sample::provider(), Arc::from("Other tool"))]);
        let sessions = sources.iter().map(SessionSource::session).collect();
        Listing { sessions, pins: &pins, labels: &labels }.page(params).unwrap()
    }

    fn by(filter: SessionListFilter) -> wire::SessionsListParams {
        wire::SessionsListParams { filter: Some(filter), ..wire::SessionsListParams::default() }
    }

    fn titles(result: &wire::SessionsListResult) -> Vec<&str> {
        result.sessions.iter().map(|row| row.title.as_str()).collect()
    }

    #[test]
    fn pages_have_every_session_once_the_pinned_ones_first_in_both_orders() {
        let sources = sources(10);
        for sort in [SessionListSort::Created, SessionListSort::Updated] {
            let (mut found, mut cursor) = (Vec::new(), None);
            loop {
                let params = wire::SessionsListParams {
                    cursor: cursor.clone(),
                    limit: Some(3),
                    sort: Some(sort),
                    ..wire::SessionsListParams::default()
                };
                let part = page(&sources, &[2, 4], params);
                assert_eq!((part.total, part.groups.is_some()), (10, cursor.is_none()));
                found.extend(part.sessions.iter().map(|row| row.title.clone()));
                cursor = part.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            let numbers = [4, 2, 9, 8, 7, 6, 5, 3, 1, 0];
            assert_eq!(found, numbers.map(|number| format!("Fix {number}")), "{sort:?}");
        }
    }

    #[test]
    fn a_row_matches_if_it_fits_every_member_of_the_filter() {
        let sources = sources(6);
        sources[5].update_main_chat(|chat| (chat.is_archived, chat.is_read) = (true, false));
        let found = |filter: SessionListFilter| {
            let result = page(&sources, &[1], by(filter));
            titles(&result).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let text = |text: &str| SessionListFilter { text: Some(text.to_owned()), ..SessionListFilter::default() };
        assert_eq!(found(text("3 fix")), ["Fix 3"]);
        assert_eq!(found(text("OTHER tool agent")).len(), 6, "the provider and the agent are searched");
        assert!(found(text("fix 7")).is_empty());
        let archived = SessionListFilter { archived: Some(true), ..SessionListFilter::default() };
        assert_eq!(found(archived.clone()), ["Fix 5"]);
        assert!(found(SessionListFilter { unread: Some(false), ..archived }).is_empty());
        assert_eq!(found(SessionListFilter { pinned: Some(true), ..SessionListFilter::default() }), ["Fix 1"]);
        let failed = SessionListFilter { states: vec![wire::RowStatus::Error], ..SessionListFilter::default() };
        assert_eq!(found(failed), ["Fix 5", "Fix 2"]);
        let elsewhere = SessionListFilter { providers: vec!["q".to_owned()], ..SessionListFilter::default() };
        assert!(found(elsewhere).is_empty());
    }

    #[test]
    fn a_cursor_that_nobody_made_is_refused() {
        for cursor in ["", "x", "+", "+5", "5:", "-1:p:1"] {
            assert!(read_cursor(cursor).is_err(), "{cursor}");
        }
        let place = ListPosition { is_pinned: true, at: Timestamp(5), id: sample::provider().session("a:b").unwrap() };
        assert_eq!(read_cursor(&place.cursor()).ok(), Some(place));
    }
}
