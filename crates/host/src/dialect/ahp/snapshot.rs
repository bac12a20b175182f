//! Snapshots: cut in one step with their subscription, encoded later.

use grove_core::{Chat, Session, SessionId};
use grove_wire::ahp::uri::{Channel, ChatName, Names};
use grove_wire::ahp::{self, project};

use super::wanted;
use crate::config::Limits;
use crate::dialect::turns::newest;
use crate::sequencer::{Found, Published, Wanted, Welcome};

/// How many snapshots of the full size one answer may hold; beyond, snapshots hold fewer turns.
const FULL_SNAPSHOTS: usize = 8;

/// How much of a chat a client wants to see at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) turns: usize,
    pub(super) bytes: usize,
}

impl View {
    /// All that is held, where one answer holds so many snapshots.
    pub(super) fn all(limits: &Limits, snapshots: usize) -> Self {
        let share = limits.snapshot_bytes.min(FULL_SNAPSHOTS * limits.snapshot_bytes / snapshots.max(1));
        Self { turns: usize::MAX, bytes: share }
    }
}

/// A channel's state, taken at a number and not yet encoded.
pub(super) struct Cut {
    /// The channel as the client spelled it.
    uri: String,
    seq: u64,
    state: CutState,
}

enum CutState {
    Root(Box<ahp::RootState>),
    Session(Box<ahp::SessionState>),
    Chat { session: SessionId, chat: Box<Chat>, names: Box<Names>, spelling: ahp::uri::Spelling, bytes: usize },
}

/// The states of what a connection is subscribed to now; the rest of what it asked for is left out.
pub(super) fn cut_all(uris: &[String], attached: &Welcome<'_>, limits: &Limits) -> Vec<Cut> {
    let view = View::all(limits, uris.len());
    let subscribed = uris.iter().zip(&attached.subscribed).filter(|(_, subscribed)| **subscribed);
    subscribed.filter_map(|(uri, _)| cut(uri, attached.published, limits, view)).collect()
}

pub(super) fn cut(uri: &str, published: &Published, limits: &Limits, view: View) -> Option<Cut> {
    let wanted = wanted(Channel::parse(uri)?)?;
    let spelling = wanted.spelling();
    let state = match published.find(&wanted)? {
        Found::Root => CutState::Root(Box::new(project::root(&published.state.root))),
        found => of_session(found, spelling, limits, view)?,
    };
    Some(Cut { uri: uri.to_owned(), seq: published.seq, state })
}

/// The state of a session that is not the host's own, or of its chat.
pub(super) fn cut_foreign(uri: &str, session: &Session, seq: u64, limits: &Limits, view: View) -> Option<Cut> {
    let wanted = wanted(Channel::parse(uri)?)?;
    let found = match &wanted {
        Wanted::Root | Wanted::Whole(_) | Wanted::Chat(ChatName::Of(..)) => return None,
        Wanted::Session(name) => Some(Found::Session(session)).filter(|_| name.fits(session))?,
        Wanted::Chat(ChatName::Main(name)) => {
            session.main_chat().filter(|_| name.fits(session)).map(|chat| Found::Chat(session, chat))?
        }
        Wanted::Chat(ChatName::ById(_)) => Found::Chat(session, session.main_chat()?),
    };
    let state = of_session(found, wanted.spelling(), limits, view)?;
    Some(Cut { uri: uri.to_owned(), seq, state })
}

fn of_session(found: Found<'_>, spelling: ahp::uri::Spelling, limits: &Limits, view: View) -> Option<CutState> {
    Some(match found {
        Found::Root => return None,
        Found::Whole(session) | Found::Session(session) => {
            CutState::Session(Box::new(project::session(session, &Names::of(session), spelling)))
        }
        Found::Chat(session, chat) => CutState::Chat {
            session: session.id.clone(),
            chat: Box::new(chat.with_newest_turns(limits.snapshot_turns.min(view.turns))),
            names: Box::new(Names::of(session)),
            spelling,
            bytes: view.bytes,
        },
    })
}

impl Cut {
    pub(super) fn json(&self) -> String {
        let state = match &self.state {
            CutState::Root(root) => serde_json::to_string(root),
            CutState::Session(session) => serde_json::to_string(session),
            CutState::Chat { session, chat, names, spelling, bytes } => {
                let turns = newest(&chat.turns, |turn| project::turn_json(session, turn), *bytes);
                let first = chat.turns.get(chat.turns.len() - turns.len());
                let older = chat.has_older_turns || turns.len() < chat.turns.len();
                // A client that wants no turns asks for those before none.
                let cursor = older.then(|| first.map(|turn| turn.id.to_string()).unwrap_or_default());
                project::chat_json(session, chat, &turns, cursor, names, *spelling)
            }
        };
        // Plain data with string keys always serializes; `null` is what a client would see if that ever changed.
        let state = state.unwrap_or_else(|_| "null".to_owned());
        let uri = serde_json::to_string(&self.uri).unwrap_or_else(|_| "\"\"".to_owned());
        format!(r#"{{"resource":{uri},"state":{state},"fromSeq":{}}}"#, self.seq)
    }
}
