//! Snapshots: cut in one step with their subscription, encoded later.

use grove_core::Session;
use grove_wire::v1::{self, project};

use super::wanted;
use crate::config::Limits;
use crate::dialect::turns::newest;
use crate::sequencer::{Found, Published, Welcome};

/// How many snapshots of the full size one answer may hold; beyond, snapshots hold fewer turns.
const FULL_SNAPSHOTS: usize = 8;

/// A resource's state, taken at a number and not yet encoded.
pub(super) struct Cut {
    /// The resource as the client spelled it.
    uri: String,
    seq: u64,
    state: CutState,
}

enum CutState {
    Root(v1::RootState),
    Session { session: Box<Session>, bytes: usize },
}

/// The states of what a connection is subscribed to now; the rest of what it asked for is left out.
pub(super) fn cut_all(uris: &[String], attached: &Welcome<'_>, limits: &Limits) -> Vec<Cut> {
    let share = limits.snapshot_bytes.min(FULL_SNAPSHOTS * limits.snapshot_bytes / uris.len().max(1));
    let subscribed = uris.iter().zip(&attached.subscribed).filter(|(_, subscribed)| **subscribed);
    subscribed.filter_map(|(uri, _)| cut(uri, attached.published, limits, share)).collect()
}

pub(super) fn cut(uri: &str, published: &Published, limits: &Limits, bytes: usize) -> Option<Cut> {
    let state = match published.find(&wanted(uri))? {
        Found::Root => CutState::Root(project::root(&published.state.root)),
        Found::Whole(session) | Found::Session(session) | Found::Chat(session, _) => {
            CutState::Session { session: Box::new(session.with_newest_turns(limits.snapshot_turns)), bytes }
        }
    };
    Some(Cut { uri: uri.to_owned(), seq: published.seq, state })
}

impl Cut {
    /// The state of a session that is not the host's own.
    pub(super) fn of(uri: &str, session: Session, seq: u64, bytes: usize) -> Self {
        Self { uri: uri.to_owned(), seq, state: CutState::Session { session: Box::new(session), bytes } }
    }

    pub(super) fn json(&self) -> String {
        let state = match &self.state {
            CutState::Root(root) => serde_json::to_string(root),
            CutState::Session { session, bytes } => {
                let turns = session.main_chat().map(|chat| chat.turns.as_slice()).unwrap_or_default();
                project::session_json(session, &newest(turns, |turn| project::turn_json(&session.id, turn), *bytes))
            }
        };
        // Plain data with string keys always serializes; `null` is what a client would see if that ever changed.
        let state = state.unwrap_or_else(|_| "null".to_owned());
        let uri = serde_json::to_string(&self.uri).unwrap_or_else(|_| "\"\"".to_owned());
        format!(r#"{{"resource":{uri},"state":{state},"fromSeq":{}}}"#, self.seq)
    }
}
