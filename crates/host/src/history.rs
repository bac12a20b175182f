//! What other tools left on this machine, as far as a host is told of it.
//!
//! The host knows no other tool: whoever serves gives it a [`History`]. Such sessions are listed where a client asks for
//! them, never announced, and can be looked at. Nothing of them is in the host's state, its journal or its numbers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::{ChatId, Session, SessionId, Timestamp, TurnId};
use grove_wire::x_grove::history::{About, ScanResult};

/// Why a turn on such a session is refused.
pub(crate) const CONTINUE_FIRST: &str =
    "this session belongs to another tool: continue it first, `grove import` makes it a session of this host";

/// What knows the sessions that other tools left.
#[async_trait]
pub trait History: fmt::Debug + Send + Sync {
    /// Sessions, the one that changed last first; those of the same time by their ids, backwards.
    async fn list(&self, query: Query) -> Result<Vec<Row>, Unavailable>;

    /// One of them.
    async fn find(&self, id: &SessionId) -> Result<Option<Row>, Unavailable>;

    /// Turns of one of them, in its main chat.
    async fn open(&self, id: &SessionId, window: Window) -> Result<Option<Session>, Unavailable>;

    /// How far looking at the stores is; with [`Scan::Start`] it begins, where nobody is at it.
    fn scan(&self, scan: Scan) -> ScanResult;
}

/// Which sessions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub source: Option<String>,
    pub repository: Option<String>,
    pub since: Option<Timestamp>,
    pub text: Option<String>,
    /// Those behind this one.
    pub after: Option<(Timestamp, SessionId)>,
    /// How many at most.
    pub limit: usize,
}

/// Which turns are wanted: at most so many, before one, or the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub before: Option<TurnId>,
    pub turns: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    Start,
    Look,
}

/// A session without its turns.
#[derive(Clone, Debug)]
pub struct Row {
    pub session: Session,
    pub about: About,
}

/// Why nothing can be said.
#[derive(Clone, Debug, thiserror::Error)]
#[error("what other tools left cannot be looked at: {0}")]
pub struct Unavailable(pub String);

impl crate::Host {
    /// The session that a name leads to, if it is not the host's own, with its newest turns; and at which number it is
    /// looked at.
    pub(crate) async fn open_history(&self, id: &SessionId) -> Result<Option<(Session, u64)>, Unavailable> {
        let Some(history) = self.history() else { return Ok(None) };
        let wanted = id.clone();
        let seq = self.0.sequencer.read(move |published, _| (!published.is_known(&wanted)).then_some(published.seq));
        // A host that is stopping shows nothing more.
        let Some(seq) = seq.await.ok().flatten() else { return Ok(None) };
        let window = Window { before: None, turns: self.0.config.limits.snapshot_turns };
        Ok(history.open(id, window).await?.map(|session| (session, seq)))
    }

    /// Whether a name leads to a session that another tool left, and to none of the host's own.
    pub(crate) async fn is_history(&self, id: &SessionId) -> bool {
        let Some(history) = self.history() else { return false };
        let wanted = id.clone();
        let is_own = self.0.sequencer.read(move |published, _| published.is_known(&wanted)).await;
        !is_own.unwrap_or(true) && history.find(id).await.is_ok_and(|found| found.is_some())
    }

    /// Turns of such a session before one, and whether there are older ones.
    pub(crate) async fn older_history(
        &self,
        id: &SessionId,
        before: Option<TurnId>,
        most: usize,
    ) -> Result<Option<(Vec<Arc<grove_core::Turn>>, bool)>, Unavailable> {
        let Some(history) = self.history() else { return Ok(None) };
        let window = Window { before, turns: most };
        let session = history.open(id, window).await?;
        Ok(session.and_then(|session| {
            let chat = session.chats.into_iter().find(|chat| chat.id == ChatId::from(Session::MAIN_CHAT))?;
            Some((chat.turns, chat.has_older_turns))
        }))
    }
}
