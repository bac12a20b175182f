//! Snapshots: captured in one step with their subscription, encoded later.

use std::borrow::Cow;

use grove_core::Session;
use grove_host::Limits;
use grove_host::sequencer::{AttachOutcome, PublishedState, ResolvedTarget};
use grove_wire::v1::{self, project};

use super::wanted;
use crate::dialect::turns::newest;

/// The snapshots of full size in one answer; with more, each has fewer turns.
const FULL_SNAPSHOTS: usize = 8;

/// A resource's state, taken at a sequence number and not yet encoded.
pub(super) struct PendingSnapshot {
    /// The resource as the client spelled it.
    uri: String,
    seq: u64,
    state: PendingSnapshotState,
}

enum PendingSnapshotState {
    Root(v1::RootState),
    Session { session: Box<Session>, bytes: usize },
    HistorySnapshot(HistorySnapshot),
}

/// The state of another tool's session. It is encoded at once, so that the data read from disk is freed.
pub(super) struct HistorySnapshot(String);

/// The bytes of each snapshot, if one answer holds so many.
pub(super) fn share(limits: &Limits, snapshots: usize) -> usize {
    limits.snapshot_bytes.min(FULL_SNAPSHOTS * limits.snapshot_bytes / snapshots.max(1))
}

/// The states of a connection's current subscriptions, and of other tools' sessions.
///
/// Resources that are neither are left out.
pub(super) fn cut_all(
    uris: &[String],
    foreign: Vec<Option<HistorySnapshot>>,
    attached: &AttachOutcome<'_>,
    limits: &Limits,
) -> Vec<PendingSnapshot> {
    let share = share(limits, uris.len());
    let asked = uris.iter().zip(foreign).zip(&attached.subscribed);
    let cuts = asked.filter_map(|((uri, foreign), subscribed)| match subscribed {
        true => cut(uri, attached.published, limits, share),
        false => foreign.map(|foreign| foreign.at(uri, attached.published.seq)),
    });
    cuts.collect()
}

pub(super) fn cut(uri: &str, published: &PublishedState, limits: &Limits, bytes: usize) -> Option<PendingSnapshot> {
    let state = match published.find(&wanted(uri))? {
        ResolvedTarget::Root => PendingSnapshotState::Root(project::root(&published.state.root)),
        ResolvedTarget::SessionWithMainChat(session)
        | ResolvedTarget::Session(session)
        | ResolvedTarget::Chat(session, _) => {
            PendingSnapshotState::Session { session: Box::new(session.with_newest_turns(limits.snapshot_turns)), bytes }
        }
    };
    Some(PendingSnapshot { uri: uri.to_owned(), seq: published.seq, state })
}

impl HistorySnapshot {
    pub(super) fn of(session: &Session, bytes: usize) -> Self {
        Self(plain(session_json(session, bytes)))
    }

    pub(super) fn at(self, uri: &str, seq: u64) -> PendingSnapshot {
        PendingSnapshot { uri: uri.to_owned(), seq, state: PendingSnapshotState::HistorySnapshot(self) }
    }
}

fn session_json(session: &Session, bytes: usize) -> serde_json::Result<String> {
    let turns = session.main_chat().map(|chat| chat.turns.as_slice()).unwrap_or_default();
    project::session_json(session, &newest(turns, |turn| project::turn_json(&session.id, turn), bytes))
}

/// Plain data with string keys always serializes; a client would see `null` if that ever changed.
fn plain(json: serde_json::Result<String>) -> String {
    json.unwrap_or_else(|_| "null".to_owned())
}

impl PendingSnapshot {
    pub(super) fn json(&self) -> String {
        let state = match &self.state {
            PendingSnapshotState::Root(root) => Cow::Owned(plain(serde_json::to_string(root))),
            PendingSnapshotState::Session { session, bytes } => Cow::Owned(plain(session_json(session, *bytes))),
            PendingSnapshotState::HistorySnapshot(HistorySnapshot(json)) => Cow::Borrowed(json.as_str()),
        };
        let uri = serde_json::to_string(&self.uri).unwrap_or_else(|_| "\"\"".to_owned());
        format!(r#"{{"resource":{uri},"state":{state},"fromSeq":{}}}"#, self.seq)
    }
}
