//! The requests of all sessions that wait for a person.

use std::collections::HashMap;
use std::sync::Arc;

use grove_sessions::session::{InputRequest, SessionStatus};
use grove_sessions::{ProviderId, Session};
use grove_wire::x_grove::sessions as wire;

/// The pending requests of these sessions, those of the session that changed last first.
///
/// A session whose provider tells only its status is listed once, without a request. Archived sessions are included: a
/// person has to know that their agent waits.
pub(super) fn waiting(sessions: Vec<Session>, labels: &HashMap<ProviderId, Arc<str>>) -> wire::WaitingResult {
    let is_waiting = |session: &Session| {
        let state = session.state();
        !state.waiting.is_empty() || state.status() == SessionStatus::NeedsInput
    };
    let mut sessions: Vec<Session> = sessions.into_iter().filter(is_waiting).collect();
    sessions.sort_by_cached_key(|session| std::cmp::Reverse((session.updated_at(), session.id().clone())));
    let mut result = wire::WaitingResult::default();
    for session in &sessions {
        let requests = session.state().waiting.clone();
        let count = requests.len().max(1);
        let room = wire::MAX_WAITING_ITEMS - result.items.len();
        result.more += count.saturating_sub(room);
        let about = about(session, labels);
        match &*requests {
            [] => result.items.extend((room > 0).then_some(about)),
            requests => result.items.extend(requests.iter().take(room).map(|request| item(session, &about, request))),
        }
    }
    result
}

/// A session that waits, without its request.
fn about(session: &Session, labels: &HashMap<ProviderId, Arc<str>>) -> wire::WaitingItem {
    let state = session.state();
    let provider = session.provider_id();
    wire::WaitingItem {
        session: session.id().to_string(),
        resource: session.resource().to_string(),
        title: state.title().to_string(),
        provider_id: provider.to_string(),
        provider_label: labels.get(provider).map_or_else(|| provider.to_string(), ToString::to_string),
        workspace: state.workspace.as_ref().map(|workspace| workspace.label.to_string()),
        updated_at: state.updated_at().0,
        ..wire::WaitingItem::default()
    }
}

fn item(session: &Session, about: &wire::WaitingItem, request: &Arc<InputRequest>) -> wire::WaitingItem {
    let state = session.state();
    let chat = (state.main_chat.resource != request.chat).then(|| state.chat(&request.chat)).flatten();
    wire::WaitingItem {
        chat_title: chat.map(|chat| chat.title.to_string()),
        id: Some(request.id.to_string()),
        request: is_small(request).then(|| request.content.clone()),
        ..about.clone()
    }
}

/// Returns whether a request fits into the list. The size is counted without building the text.
fn is_small(request: &InputRequest) -> bool {
    let mut counter = ByteCounter { left: wire::MAX_WAITING_BYTES };
    serde_json::to_writer(&mut counter, &request.content).is_ok()
}

/// Counts written bytes, and fails beyond a number of them.
struct ByteCounter {
    left: usize,
}

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.left.checked_sub(bytes.len()) {
            Some(left) => {
                self.left = left;
                Ok(bytes.len())
            }
            None => Err(std::io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use grove_sessions::session::SessionSource;
    use serde_json::json;

    use super::*;
    use crate::sample;

    /// A session with so many requests, each with a text of a length.
    fn waiting_session(number: u64, requests: usize, length: usize) -> SessionSource {
        let source = sample::session(number, "It waits", SessionStatus::NeedsInput);
        let request = |id: usize| {
            let content = json!({"kind": "chatInput", "id": id.to_string(), "chat": "c",
                "request": {"id": "q", "message": "?".repeat(length)}});
            let (id, content) = (id.to_string().into(), serde_json::from_value(content).unwrap());
            Arc::new(InputRequest { id, chat: format!("p:/{number}/main").as_str().into(), content })
        };
        source.update(|state| state.waiting = (0..requests).map(request).collect());
        source
    }

    fn listed(sources: &[SessionSource]) -> wire::WaitingResult {
        waiting(sources.iter().map(SessionSource::session).collect(), &HashMap::new())
    }

    #[test]
    fn no_more_than_the_limit_is_listed_and_the_rest_is_counted() {
        let sources: Vec<_> = (0..10).map(|number| waiting_session(number, 30, 1)).collect();
        let result = listed(&sources);
        assert_eq!((result.items.len(), result.more), (wire::MAX_WAITING_ITEMS, 100));
        assert_eq!(result.items[0].session, "p:9", "the one that changed last is first");
    }

    #[test]
    fn a_request_that_is_too_large_or_unknown_is_listed_without_its_content() {
        let unknown = sample::session(1, "", SessionStatus::NeedsInput);
        let running = sample::session(2, "", SessionStatus::InProgress);
        let large = waiting_session(3, 1, wire::MAX_WAITING_BYTES);
        let result = listed(&[unknown, running, large, waiting_session(4, 1, 10)]);
        let found: Vec<_> = result.items.iter().map(|item| (item.id.is_some(), item.request.is_some())).collect();
        assert_eq!(found, [(true, true), (true, false), (false, false)]);
    }
}
