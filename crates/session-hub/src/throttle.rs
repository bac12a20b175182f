//! Limits how often a row is told whose live details alone change: the activity, and the time of the change.
//!
//! An agent may call many tools in a second. Everything else, such as the status, is told at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use grove_core::Timestamp;
use grove_sessions::provider::SessionsChange;
use grove_sessions::session::{ChatState, SessionState, SessionStatus};
use grove_sessions::{Session, SessionId};
use tokio::time::Instant;

/// The minimal interval between two rows of a running session that differ in live details alone.
pub const ACTIVITY_INTERVAL: Duration = Duration::from_secs(1);

/// The running sessions that were told, and the rows that wait.
#[derive(Default)]
pub(super) struct Throttle {
    /// Only sessions that run, so there are no more than rows.
    told: HashMap<SessionId, SentRow>,
}

struct SentRow {
    /// The state without its live details.
    lasting: SessionState,
    is_pinned: bool,
    at: Instant,
    /// The session, if a row waits to be told.
    held: Option<Session>,
}

impl Throttle {
    /// The part of a change that is told now. The rest waits.
    pub(super) fn admit(&mut self, change: &SessionsChange, pins: &HashSet<SessionId>, now: Instant) -> SessionsChange {
        for session in &change.removed {
            self.told.remove(session.id());
        }
        let changed = change
            .changed
            .iter()
            .filter(|session| self.is_due(session, pins.contains(session.id()), now))
            .cloned()
            .collect();
        SessionsChange { added: change.added.clone(), removed: change.removed.clone(), changed }
    }

    fn is_due(&mut self, session: &Session, is_pinned: bool, now: Instant) -> bool {
        let state = session.state();
        if !matches!(state.status(), SessionStatus::InProgress | SessionStatus::NeedsInput) {
            self.told.remove(session.id());
            return true;
        }
        let lasting = lasting(&state);
        if let Some(told) = self.told.get_mut(session.id())
            && (told.is_pinned, &told.lasting) == (is_pinned, &lasting)
            && now < told.at + ACTIVITY_INTERVAL
        {
            told.held = Some(session.clone());
            return false;
        }
        self.told.insert(session.id().clone(), SentRow { lasting, is_pinned, at: now, held: None });
        true
    }

    /// The time at which a waiting row is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let held = self.told.values().filter(|told| told.held.is_some());
        held.map(|told| told.at + ACTIVITY_INTERVAL).min()
    }

    /// The waiting rows that are due.
    pub(super) fn due(&mut self, now: Instant) -> SessionsChange {
        let mut sessions = Vec::new();
        for told in self.told.values_mut().filter(|told| told.at + ACTIVITY_INTERVAL <= now) {
            if let Some(session) = told.held.take() {
                told.at = now;
                sessions.push(session);
            }
        }
        SessionsChange::changed(sessions)
    }

    /// Forgets everything: clients list again.
    pub(super) fn clear(&mut self) {
        self.told.clear();
    }
}

/// A state without its live details.
fn lasting(state: &SessionState) -> SessionState {
    let chat = |chat: &Arc<ChatState>| {
        let untimed = ChatState { description: None, updated_at: Timestamp(0), ..ChatState::clone(chat) };
        Arc::new(untimed)
    };
    SessionState {
        main_chat: chat(&state.main_chat),
        more_chats: state.more_chats.iter().map(chat).collect(),
        ..state.clone()
    }
}

#[cfg(test)]
mod tests {
    use grove_sessions::session::SessionSource;

    use super::*;
    use crate::sample;

    fn source() -> SessionSource {
        sample::session(1, "", SessionStatus::InProgress)
    }

    fn rows(throttle: &mut Throttle, source: &SessionSource, now: Instant) -> usize {
        throttle.admit(&SessionsChange::changed([source.session()]), &HashSet::new(), now).changed.len()
    }

    #[tokio::test(start_paused = true)]
    async fn an_activity_is_told_once_a_second_and_the_last_one_is_not_lost() {
        let (source, mut throttle, start) = (source(), Throttle::default(), Instant::now());
        let mut told = 0;
        for step in 0..100 {
            source.update_main_chat(|chat| {
                chat.description = Some(format!("step {step}").as_str().into());
                chat.updated_at = Timestamp(step);
            });
            let now = start + Duration::from_millis(step * 25);
            told += rows(&mut throttle, &source, now) + throttle.due(now).changed.len();
        }
        assert_eq!(told, 3, "2.5 seconds");
        let due = throttle.next().unwrap();
        assert_eq!(throttle.due(due).changed.len(), 1);
        assert_eq!(throttle.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_is_told_at_once() {
        let (source, mut throttle, now) = (source(), Throttle::default(), Instant::now());
        assert_eq!(rows(&mut throttle, &source, now), 1);
        source.update_main_chat(|chat| chat.status = SessionStatus::NeedsInput);
        assert_eq!(rows(&mut throttle, &source, now), 1);
        source.update_main_chat(|chat| chat.description = Some("x".into()));
        assert_eq!(rows(&mut throttle, &source, now), 0);
        let (changed, pins) =
            (SessionsChange::changed([source.session()]), HashSet::from([source.session().id().clone()]));
        assert_eq!(throttle.admit(&changed, &pins, now).changed.len(), 1, "and so is a pin");
        source.update_main_chat(|chat| chat.status = SessionStatus::Completed);
        assert_eq!(rows(&mut throttle, &source, now), 1);
        assert_eq!(throttle.next(), None, "what was held is in the row of the status");
        assert!(throttle.told.is_empty());
    }
}
