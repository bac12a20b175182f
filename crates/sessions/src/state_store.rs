//! State that outlives the process: the last chosen provider and session, and the trusted folders.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ids::{ProviderId, SessionId, Uri};

/// The most sessions whose last open chat is stored. The oldest is dropped first.
pub const MAX_LAST_CHATS: usize = 1000;

/// The most answers about folders. Past it no more are accepted, so that no answer is lost silently.
pub const MAX_TRUST_ANSWERS: usize = 10_000;

/// The most pinned sessions. Past it no more are accepted.
pub const MAX_PINS: usize = 200;

/// A store for this state. It answers at once: one on a disk keeps the newest in memory and writes in the background.
pub trait StateStore: Send + Sync + fmt::Debug {
    /// The stored state.
    fn recall(&self) -> Result<PersistentState, StateStoreError>;

    /// Stores one change. [`PersistentState::apply`] gives its effect.
    fn remember(&self, thing: StateChange) -> Result<(), StateStoreError>;
}

/// The stored state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentState {
    /// The provider that was chosen for new sessions.
    pub active_provider: Option<ProviderId>,
    /// The session that was last open.
    pub last_session: Option<SessionId>,
    /// The chat that was last open in a session, the newest last.
    pub last_chats: Vec<LastChat>,
    /// The answers about folders, by provider and folder: the same path on another host is another folder.
    pub trust: BTreeMap<ProviderId, BTreeMap<Uri, Trust>>,
    /// The pinned sessions, the one that was pinned last at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<SessionId>,
}

/// The chat that was last open in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastChat {
    /// The session.
    pub session: SessionId,
    /// Its chat.
    pub chat: Uri,
}

/// A person's answer about a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// Agents may work there.
    Trusted,
    /// They may not.
    Refused,
}

/// One change to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// The provider that was chosen for new sessions.
    ActiveProvider(ProviderId),
    /// The session that was last open.
    LastSession(SessionId),
    /// The chat that was last open in a session.
    LastChat(LastChat),
    /// A session replaced another.
    SessionReplacement {
        /// The replaced one.
        from: SessionId,
        /// The replacement.
        to: SessionId,
    },
    /// A person's answer about a folder.
    Trust {
        /// The folder's provider.
        provider: ProviderId,
        /// The folder.
        folder: Uri,
        /// The answer.
        answer: Trust,
    },
    /// A session was pinned, or is not any more.
    Pin {
        /// The session.
        session: SessionId,
        /// Pinned from now on.
        is_pinned: bool,
    },
}

/// The error of storing or loading.
#[derive(Debug, Error)]
pub enum StateStoreError {
    /// The limit of answers is reached.
    #[error("{MAX_TRUST_ANSWERS} folders already have an answer: remove some before you trust another one")]
    Full,
    /// The limit of pinned sessions is reached.
    #[error("{MAX_PINS} sessions are already pinned: unpin some before you pin another one")]
    TooManyPins,
    /// The underlying storage failed.
    #[error("cannot store the choice: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl PersistentState {
    /// Applies one change, within the limits.
    pub fn apply(&mut self, thing: StateChange) -> Result<(), StateStoreError> {
        match thing {
            StateChange::ActiveProvider(provider) => self.active_provider = Some(provider),
            StateChange::LastSession(session) => self.last_session = Some(session),
            StateChange::LastChat(last) => {
                self.last_chats.retain(|known| known.session != last.session);
                if self.last_chats.len() >= MAX_LAST_CHATS {
                    self.last_chats.remove(0);
                }
                self.last_chats.push(last);
            }
            StateChange::SessionReplacement { from, to } => {
                if self.last_session.as_ref() == Some(&from) {
                    self.last_session = Some(to.clone());
                }
                // The chats of a temporary session are gone with it.
                self.last_chats.retain(|known| known.session != from);
                if let Some(pin) = self.pinned.iter_mut().find(|pinned| **pinned == from) {
                    *pin = to;
                }
            }
            StateChange::Trust { provider, folder, answer } => {
                let known = self.trust(&provider, &folder).is_some();
                if !known && self.trust.values().map(BTreeMap::len).sum::<usize>() >= MAX_TRUST_ANSWERS {
                    return Err(StateStoreError::Full);
                }
                self.trust.entry(provider).or_default().insert(folder, answer);
            }
            StateChange::Pin { session, is_pinned: false } => self.pinned.retain(|pinned| *pinned != session),
            StateChange::Pin { session, is_pinned: true } => {
                if self.pinned.contains(&session) {
                    return Ok(());
                }
                if self.pinned.len() >= MAX_PINS {
                    return Err(StateStoreError::TooManyPins);
                }
                self.pinned.push(session);
            }
        }
        Ok(())
    }

    /// The answer for a folder.
    pub fn trust(&self, provider: &ProviderId, folder: &Uri) -> Option<Trust> {
        self.trust.get(provider)?.get(folder).copied()
    }

    /// The chat that was last open in a session.
    pub fn last_chat(&self, session: &SessionId) -> Option<&Uri> {
        self.last_chats.iter().find(|known| &known.session == session).map(|known| &known.chat)
    }
}

/// Stores the state as long as it lives.
#[derive(Debug, Default)]
pub struct InMemoryState {
    persistent_state: Mutex<PersistentState>,
}

impl InMemoryState {
    /// A store with an initial state.
    pub fn new(persistent_state: PersistentState) -> Self {
        Self { persistent_state: Mutex::new(persistent_state) }
    }
}

impl StateStore for InMemoryState {
    fn recall(&self) -> Result<PersistentState, StateStoreError> {
        Ok(self.persistent_state.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn remember(&self, thing: StateChange) -> Result<(), StateStoreError> {
        self.persistent_state.lock().unwrap_or_else(PoisonError::into_inner).apply(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::parse(format!("p:{name}")).unwrap()
    }

    #[test]
    fn the_chat_opened_longest_ago_is_forgotten_first() {
        let mut persistent_state = PersistentState::default();
        let open = |name: usize| {
            StateChange::LastChat(LastChat {
                session: session(&name.to_string()),
                chat: format!("chat:/{name}").into(),
            })
        };
        for name in 0..MAX_LAST_CHATS {
            persistent_state.apply(open(name)).unwrap();
        }
        persistent_state.apply(open(0)).unwrap();
        persistent_state.apply(open(MAX_LAST_CHATS)).unwrap();
        assert_eq!(persistent_state.last_chats.len(), MAX_LAST_CHATS);
        assert!(
            persistent_state.last_chat(&session("0")).is_some() && persistent_state.last_chat(&session("1")).is_none()
        );
    }

    #[test]
    fn an_answer_about_a_folder_is_never_pushed_out() {
        let mut persistent_state = PersistentState::default();
        let provider = ProviderId::new("p").unwrap();
        let trust = |name: usize, answer| StateChange::Trust {
            provider: provider.clone(),
            folder: format!("file:///{name}").into(),
            answer,
        };
        for name in 0..MAX_TRUST_ANSWERS {
            persistent_state.apply(trust(name, Trust::Refused)).unwrap();
        }
        assert!(matches!(persistent_state.apply(trust(MAX_TRUST_ANSWERS, Trust::Trusted)), Err(StateStoreError::Full)));
        persistent_state.apply(trust(3, Trust::Trusted)).unwrap();
        assert_eq!(persistent_state.trust(&provider, &"file:///3".into()), Some(Trust::Trusted));
    }

    #[test]
    fn pins_are_kept_once_and_no_more_than_the_limit() {
        let mut persistent_state = PersistentState::default();
        let pin = |name: usize, is_pinned| StateChange::Pin { session: session(&name.to_string()), is_pinned };
        for name in 0..MAX_PINS {
            persistent_state.apply(pin(name, true)).unwrap();
        }
        persistent_state.apply(pin(3, true)).unwrap();
        assert_eq!(persistent_state.pinned.len(), MAX_PINS);
        assert!(matches!(persistent_state.apply(pin(MAX_PINS, true)), Err(StateStoreError::TooManyPins)));
        persistent_state.apply(pin(0, false)).unwrap();
        persistent_state.apply(pin(MAX_PINS, true)).unwrap();
        let (from, to) = (session("1"), session("new"));
        persistent_state.apply(StateChange::SessionReplacement { from: from.clone(), to: to.clone() }).unwrap();
        assert!(persistent_state.pinned.contains(&to) && !persistent_state.pinned.contains(&from));
    }

    #[test]
    fn what_is_remembered_survives_being_written() {
        let mut persistent_state = PersistentState::default();
        let provider = ProviderId::new("p").unwrap();
        persistent_state.apply(StateChange::ActiveProvider(provider.clone())).unwrap();
        persistent_state.apply(StateChange::LastSession(session("a"))).unwrap();
        persistent_state.apply(StateChange::SessionReplacement { from: session("a"), to: session("b") }).unwrap();
        let folder = "file:///x".into();
        persistent_state.apply(StateChange::Trust { provider, folder, answer: Trust::Trusted }).unwrap();
        let written = serde_json::to_string(&persistent_state).unwrap();
        assert_eq!(serde_json::from_str::<PersistentState>(&written).unwrap(), persistent_state);
        assert_eq!(persistent_state.last_session, Some(session("b")));
        assert_eq!(serde_json::from_str::<PersistentState>("{}").unwrap(), PersistentState::default());
    }
}
