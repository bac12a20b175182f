//! Sessions of other tools on this machine.
//!
//! The host knows no other tool: the program that runs it passes a [`History`]. Such sessions are listed if a client
//! asks for them, never announced, and can be read. They are not part of the host's state, its journal or its sequence
//! numbers.
//!
//! None stays open. Each request reads the session as it is stored at that moment, with no more turns than are shown,
//! and frees it once it is encoded: another request sees a file that has grown.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::{ChatId, Session, SessionId, SessionUri, Timestamp, Turn, TurnId};
use grove_wire::ahp::project::SpawningCalls;
use grove_wire::ahp::uri::{self, ChatName};
use grove_wire::x_grove::history::{HistoryMetadata, ScanResult};

use crate::import::ImportRequest;
use crate::sequencer::{PublishedState, SubscriptionTarget};

/// The reason why a turn on such a session is refused.
pub const CONTINUE_FIRST: &str =
    "this session belongs to another tool: continue it first with `grove import`, as a session of this host";

/// A source of other tools' sessions.
#[async_trait]
pub trait History: fmt::Debug + Send + Sync {
    /// Lists sessions, last changed first; those of the same time by id, descending.
    async fn list(&self, query: HistoryQuery) -> Result<Vec<HistoryRow>, HistoryUnavailable>;

    /// Finds a session.
    async fn find(&self, id: &SessionId) -> Result<Option<HistoryRow>, HistoryUnavailable>;

    /// Reads the selected part of a session.
    async fn open(&self, id: &SessionId, look: HistorySelection)
    -> Result<Option<HistoryTranscript>, HistoryOpenError>;

    /// Makes a copy of a session that can be imported, under its own id or another one.
    async fn prepare_import(
        &self,
        id: &SessionId,
        new_id: Option<SessionId>,
    ) -> Result<Option<PreparedHistory>, HistoryUnavailable>;

    /// Reports the progress of scanning the stores; [`Scan::Start`] starts a scan if none runs.
    fn scan(&self, scan: Scan) -> ScanResult;
}

/// A selection of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    pub source: Option<String>,
    pub repository: Option<String>,
    pub since: Option<Timestamp>,
    pub text: Option<String>,
    /// Those after this one.
    pub after: Option<(Timestamp, SessionId)>,
    /// The largest number of sessions.
    pub limit: usize,
}

/// The part of a session to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistorySelection {
    /// Its chats, without turns.
    Chats,
    /// Turns of one chat.
    Turns(ChatId, HistoryWindow),
}

/// A selection of turns: at most so many, before one, or the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryWindow {
    pub before: Option<TurnId>,
    pub turns: usize,
    /// The approximate size of all turns together. The newest is included whatever its size.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    Start,
    Poll,
}

/// A session without its turns.
#[derive(Clone, Debug)]
pub struct HistoryRow {
    pub session: Session,
    pub about: HistoryMetadata,
}

/// A session that was read.
#[derive(Clone, Debug)]
pub struct HistoryTranscript {
    /// The session with the chat whose turns are requested.
    /// Its catalogue has all chats if these are requested, or one beside the main chat is.
    pub session: Session,
    /// The tool calls that started subagents' chats.
    pub started: SpawningCalls,
}

/// A session that is ready to be imported.
pub struct PreparedHistory {
    pub request: ImportRequest,
    /// Its files: the log, and those beside it.
    pub files: Vec<PreparedFile>,
    /// Missing and damaged parts, in words.
    pub warnings: Vec<String>,
}

/// A file of a session that is ready to be imported.
pub struct PreparedFile {
    /// Its path in the session's folder.
    pub name: String,
    /// Reading it blocks.
    pub content: Box<dyn Read + Send>,
}

impl fmt::Debug for PreparedHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedHistory").field("request", &self.request).finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The reason why the history cannot answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the sessions of other tools cannot be read: {0}")]
pub struct HistoryUnavailable(pub String);

/// The reason why a session cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HistoryOpenError {
    #[error(transparent)]
    HistoryUnavailable(#[from] HistoryUnavailable),
    /// The requested turns are older than a turn that is missing.
    #[error("the session has no turn {0}")]
    NoTurn(TurnId),
}

/// Separates a session's id from its subagent's in a chat's id, so that the chat's plain name gives the session.
const SUBAGENT: &str = ".sub.";

/// The id of a subagent's chat. Invalid characters are replaced; `None` if it would be too long.
pub fn subagent_chat(session: &SessionId, subagent: &str) -> Option<ChatId> {
    let plain = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
    let name = format!("{session}{SUBAGENT}{}", subagent.chars().map(plain).collect::<String>());
    (name.len() <= SessionUri::MAX_ID_BYTES).then(|| name.into())
}

/// The session and the chat that a name would refer to, if it is another tool's.
pub fn place(wanted: &SubscriptionTarget) -> Option<(SessionId, ChatId)> {
    let main = || ChatId::from(Session::MAIN_CHAT);
    match wanted {
        SubscriptionTarget::Root => None,
        SubscriptionTarget::SessionWithMainChat(uri) => Some((uri.id()?, main())),
        SubscriptionTarget::Session(name) | SubscriptionTarget::Chat(ChatName::Main(name)) => {
            Some((name.id.clone(), main()))
        }
        SubscriptionTarget::Chat(ChatName::Of(name, chat)) => Some((name.id.clone(), chat.clone())),
        SubscriptionTarget::Chat(ChatName::ById(chat)) => Some(match chat.as_str().rsplit_once(SUBAGENT) {
            Some((session, _)) => (session.into(), chat.clone()),
            None => (chat.as_str().into(), main()),
        }),
    }
}

/// The turns of another tool's session that are sent at first.
///
/// Their positions are known, and the rest of a large file stays unread until a client requests older ones.
const NEWEST_TURNS: usize = 100;

/// Says whether a name refers to a session.
fn fits(wanted: &SubscriptionTarget, session: &Session) -> bool {
    match wanted {
        SubscriptionTarget::Root => false,
        SubscriptionTarget::SessionWithMainChat(uri) => *uri == session.uri,
        SubscriptionTarget::Session(name) | SubscriptionTarget::Chat(ChatName::Main(name) | ChatName::Of(name, _)) => {
            name.fits(session)
        }
        SubscriptionTarget::Chat(ChatName::ById(_)) => true,
    }
}

impl crate::Host {
    /// Another tool's session that a name refers to, with the requested number of its newest turns.
    ///
    /// It comes with the sequence number at which it was read.
    pub async fn open_history(
        &self,
        wanted: &SubscriptionTarget,
        turns: usize,
        bytes: usize,
    ) -> Result<Option<(HistoryTranscript, u64)>, HistoryOpenError> {
        let Some((history, seq)) = self.history_of(wanted) else { return Ok(None) };
        let Some((id, chat)) = place(wanted) else { return Ok(None) };
        let look = match wanted {
            SubscriptionTarget::Session(_) => HistorySelection::Chats,
            SubscriptionTarget::Root | SubscriptionTarget::SessionWithMainChat(_) | SubscriptionTarget::Chat(_) => {
                let turns = turns.min(self.0.config.limits.snapshot_turns).min(NEWEST_TURNS);
                HistorySelection::Turns(chat, HistoryWindow { before: None, turns, bytes })
            }
        };
        let opened = history.open(&id, look).await?.filter(|opened| fits(wanted, &opened.session));
        Ok(opened.map(|opened| (named(opened), seq)))
    }

    /// Says whether a name refers to another tool's session, and to none of the host's own.
    pub async fn is_history(&self, wanted: &SubscriptionTarget) -> bool {
        let Some((history, _)) = self.history_of(wanted) else { return false };
        let Some((id, _)) = place(wanted) else { return false };
        history.find(&id).await.is_ok_and(|found| found.is_some())
    }

    /// Turns of such a session's chat before one, and whether there are older ones.
    pub(crate) async fn older_history(
        &self,
        wanted: &SubscriptionTarget,
        window: HistoryWindow,
    ) -> Result<Option<OlderTurns>, HistoryOpenError> {
        let Some((history, _)) = self.history_of(wanted) else { return Ok(None) };
        let Some((id, chat)) = place(wanted) else { return Ok(None) };
        let opened = history.open(&id, HistorySelection::Turns(chat.clone(), window)).await?;
        let session = opened.map(|opened| opened.session).filter(|session| fits(wanted, session));
        Ok(session.and_then(|session| {
            let chat = session.chats.into_iter().find(|mine| mine.id == chat)?;
            Some(OlderTurns { session: session.id, turns: chat.turns, older: chat.has_older_turns })
        }))
    }

    /// The history to ask about a name that is none of the host's own, and the sequence number of that check.
    fn history_of(&self, wanted: &SubscriptionTarget) -> Option<(Arc<dyn History>, u64)> {
        let history = self.history()?;
        let look = |published: &PublishedState| {
            let is_own = wanted.session(published).is_some_and(|id| published.is_known(&id));
            (!is_own).then_some(published.seq)
        };
        let seq = self.0.sequencer.read(look)?;
        Some((history.clone(), seq))
    }
}

/// Requested turns.
#[derive(Debug)]
pub struct OlderTurns {
    pub session: SessionId,
    pub turns: Vec<Arc<Turn>>,
    pub older: bool,
}

/// Names chats of subagents as clients compute the names.
fn named(mut opened: HistoryTranscript) -> HistoryTranscript {
    let session = &mut opened.session;
    for row in session.catalogue.iter_mut().filter(|row| row.chat.as_str() != Session::MAIN_CHAT) {
        row.uri = Some(uri::computed(row.chat.as_str(), session.uri.as_str()));
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use grove_wire::ahp::uri::ChannelName;

    fn place_of(uri: &str) -> Option<(String, String)> {
        let wanted = match ChannelName::parse(uri)? {
            ChannelName::Session(name) => SubscriptionTarget::Session(name),
            ChannelName::Chat(name) => SubscriptionTarget::Chat(name),
            ChannelName::Root | ChannelName::ResourceWatch(_) | ChannelName::Terminal(_) => return None,
        };
        place(&wanted).map(|(session, chat)| (session.to_string(), chat.to_string()))
    }

    #[test]
    fn every_name_of_a_subagents_chat_tells_its_session() {
        let chat = subagent_chat(&"claude.s.1".into(), "a/b.c").unwrap();
        assert_eq!(chat.as_str(), "claude.s.1.sub.a_b_c");
        let expected = Some(("claude.s.1".to_owned(), chat.to_string()));
        assert_eq!(place_of(&format!("ahp-chat:/{chat}")), expected);
        for session in ["claude:/claude.s.1", "ahp-session:/claude.s.1"] {
            assert_eq!(place_of(&uri::computed(chat.as_str(), session)), expected);
        }
        let main = Some(("claude.s.1".to_owned(), Session::MAIN_CHAT.to_owned()));
        assert_eq!(place_of("ahp-chat:/claude.s.1"), main);
        assert_eq!(place_of("ahp-session:/claude.s.1"), main);
        assert_eq!(subagent_chat(&"x".repeat(120).as_str().into(), "too long"), None);
    }
}
