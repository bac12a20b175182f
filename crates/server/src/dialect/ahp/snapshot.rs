//! Snapshots: captured in one step with their subscription, encoded later.

use std::borrow::Cow;
use std::sync::Arc;

use grove_core::{Chat, SessionId};
use grove_host::Limits;
use grove_host::history::{self, HistoryTranscript};
use grove_host::sequencer::{AttachOutcome, PublishedState, ResolvedTarget, SubscriptionTarget};
use grove_wire::ahp::uri::{ChannelName, SessionUris};
use grove_wire::ahp::{self, project};

use super::wanted;
use crate::dialect::turns::newest;

/// The snapshots of full size in one answer; with more, each has fewer turns.
pub const FULL_SNAPSHOTS: usize = 8;

/// The size of the snapshot that a client wants of a chat.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotLimits {
    pub(super) turns: usize,
    pub(super) bytes: usize,
}

impl SnapshotLimits {
    /// Everything, divided among so many snapshots of one answer.
    pub(super) fn all(limits: &Limits, snapshots: usize) -> Self {
        let share = limits.snapshot_bytes.min(FULL_SNAPSHOTS * limits.snapshot_bytes / snapshots.max(1));
        Self { turns: usize::MAX, bytes: share }
    }
}

/// A channel's state, taken at a sequence number and not yet encoded.
pub(super) struct PendingSnapshot {
    /// The channel as the client spelled it.
    uri: String,
    seq: u64,
    state: PendingSnapshotState,
}

enum PendingSnapshotState {
    Root(Box<ahp::RootState>),
    Session(Box<ahp::SessionState>),
    Chat { session: SessionId, chat: Box<Chat>, names: Box<SessionUris>, spelling: ahp::uri::Spelling, bytes: usize },
    HistorySnapshot(HistorySnapshot),
}

/// The state of another tool's session, or of its chat, or of a terminal.
///
/// It is encoded at once, so that the data read from disk is freed.
pub(super) struct HistorySnapshot(String);

/// The states of a connection's current subscriptions, and of other tools' sessions.
///
/// Channels that are neither are left out.
pub(super) fn cut_all(
    uris: &[String],
    foreign: Vec<Option<HistorySnapshot>>,
    attached: &AttachOutcome<'_>,
    limits: &Limits,
) -> Vec<PendingSnapshot> {
    let view = SnapshotLimits::all(limits, uris.len());
    let asked = uris.iter().zip(foreign).zip(&attached.subscribed);
    let cuts = asked.filter_map(|((uri, foreign), subscribed)| match subscribed {
        true => cut(uri, attached.published, limits, view),
        false => foreign.map(|foreign| foreign.at(uri, attached.published.seq)),
    });
    cuts.collect()
}

pub(super) fn cut(
    uri: &str,
    published: &PublishedState,
    limits: &Limits,
    view: SnapshotLimits,
) -> Option<PendingSnapshot> {
    let wanted = wanted(ChannelName::parse(uri)?)?;
    let spelling = wanted.spelling();
    let state = match published.find(&wanted)? {
        ResolvedTarget::Root => {
            let terminals = published.terminals.clone();
            let root = ahp::RootState { terminals, ..project::root(&published.state.root) };
            PendingSnapshotState::Root(Box::new(root))
        }
        ResolvedTarget::SessionWithMainChat(session) | ResolvedTarget::Session(session) => {
            PendingSnapshotState::Session(Box::new(project::session(session, &SessionUris::of(session), spelling)))
        }
        ResolvedTarget::Chat(session, chat) => PendingSnapshotState::Chat {
            session: session.id.clone(),
            chat: Box::new(chat.with_newest_turns(limits.snapshot_turns.min(view.turns))),
            names: Box::new(SessionUris::of(session)),
            spelling,
            bytes: view.bytes,
        },
    };
    Some(PendingSnapshot { uri: uri.to_owned(), seq: published.seq, state })
}

impl HistorySnapshot {
    /// The state of a name's target; `None` if the session has no such chat.
    pub(super) fn of(wanted: &SubscriptionTarget, opened: &HistoryTranscript, view: SnapshotLimits) -> Option<Self> {
        let HistoryTranscript { session, started } = opened;
        let (names, spelling) = (SessionUris::of(session), wanted.spelling());
        let json = match wanted {
            SubscriptionTarget::Root | SubscriptionTarget::SessionWithMainChat(_) => return None,
            SubscriptionTarget::Session(_) => {
                serde_json::to_string(&project::history_session(session, started, &names, spelling))
            }
            SubscriptionTarget::Chat(_) => {
                let (_, chat) = history::place(wanted)?;
                let chat = session.chat(&chat)?;
                let (turns, cursor) = window(&session.id, chat, view.bytes);
                project::history_chat_json((&session.id, chat), started, &turns, cursor, &names, spelling)
            }
        };
        Some(Self(plain(json)))
    }

    /// The state of a terminal, which no event changes.
    pub(super) fn of_terminal(state: &ahp::TerminalState) -> Self {
        Self(plain(serde_json::to_string(state)))
    }

    pub(super) fn at(self, uri: &str, seq: u64) -> PendingSnapshot {
        PendingSnapshot { uri: uri.to_owned(), seq, state: PendingSnapshotState::HistorySnapshot(self) }
    }
}

/// The newest turns that fit, and the cursor for older ones.
fn window(session: &SessionId, chat: &Chat, bytes: usize) -> (Vec<Arc<str>>, Option<String>) {
    let turns = newest(&chat.turns, |turn| project::turn_json(session, turn), bytes);
    let first = chat.turns.get(chat.turns.len() - turns.len());
    let older = chat.has_older_turns || turns.len() < chat.turns.len();
    // A client that wants no turns gets the empty cursor, before which all turns are.
    let cursor = older.then(|| first.map(|turn| turn.id.to_string()).unwrap_or_default());
    (turns, cursor)
}

/// Plain data with string keys always serializes; a client would see `null` if that ever changed.
fn plain(json: serde_json::Result<String>) -> String {
    json.unwrap_or_else(|_| "null".to_owned())
}

impl PendingSnapshot {
    pub(super) fn json(&self) -> String {
        let state = match &self.state {
            PendingSnapshotState::Root(root) => Cow::Owned(plain(serde_json::to_string(root))),
            PendingSnapshotState::Session(session) => Cow::Owned(plain(serde_json::to_string(session))),
            PendingSnapshotState::Chat { session, chat, names, spelling, bytes } => {
                let (turns, cursor) = window(session, chat, *bytes);
                Cow::Owned(plain(project::chat_json(session, chat, &turns, cursor, names, *spelling)))
            }
            PendingSnapshotState::HistorySnapshot(HistorySnapshot(json)) => Cow::Borrowed(json.as_str()),
        };
        let uri = serde_json::to_string(&self.uri).unwrap_or_else(|_| "\"\"".to_owned());
        format!(r#"{{"resource":{uri},"state":{state},"fromSeq":{}}}"#, self.seq)
    }
}
