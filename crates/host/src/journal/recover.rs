//! What a journal says of the time before.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::{ClientId, Lifecycle, Session, SessionUri, State, apply};

use super::files;
use super::record::Record;
use crate::config::Limits;
use crate::sequencer::{Replay, Sequenced};

/// The state at the journal's end, and what is needed to go on from there.
#[derive(Debug)]
pub struct Recovered {
    pub(crate) state: State,
    /// No number up to here is given again.
    pub(crate) seq: u64,
    pub(crate) replay: Replay,
    /// The versions that clients spoke.
    pub(crate) clients: HashMap<ClientId, u32>,
    /// What could not be read, in words.
    pub damage: Vec<String>,
}

impl Recovered {
    /// Nothing was before.
    pub fn nothing(limits: &Limits) -> Self {
        Self {
            state: State::default(),
            seq: 0,
            replay: Replay::new(limits.replay_actions, limits.replay_bytes, 0),
            clients: HashMap::new(),
            damage: Vec::new(),
        }
    }

    /// What the bytes of one segment say, however they end.
    pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Self {
        let mut recovered = Self::nothing(limits);
        // Reading from memory cannot fail.
        files::read_lines(bytes, "journal", files::End::MayBeTorn, &mut recovered).ok();
        recovered
    }

    /// The state at the journal's end.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The highest number that may have been used.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The sessions that are in the middle of something.
    pub(crate) fn unfinished(&self) -> Vec<SessionUri> {
        let busy = |session: &&Session| {
            session.lifecycle == Lifecycle::Creating || session.chats.iter().any(|chat| chat.active.is_some())
        };
        self.state.sessions.values().filter(busy).map(|session| session.uri.clone()).collect()
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.state.sessions.len()
    }

    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Event { seq, origin, event } => {
                apply(&mut self.state, &event);
                let session = event.change.session().and_then(|id| self.state.sessions.get(id));
                let uri = session.map(|session: &Session| session.uri.clone());
                self.seq = self.seq.max(seq);
                self.replay.push(Arc::new(Sequenced::new(seq, event, origin, uri)));
            }
            Record::Reserved(upto) => self.seq = self.seq.max(upto),
            Record::Client { id, version } => {
                self.clients.insert(id, version);
            }
        }
    }

    /// Part of the journal cannot be read: the rest is taken as it is, and nothing from before is replayed.
    pub(super) fn damaged(&mut self, what: String) {
        self.replay.forget();
        self.damage.push(what);
    }
}
