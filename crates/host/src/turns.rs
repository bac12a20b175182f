//! Older turns, from the published state or from the chat's log.

use std::sync::Arc;

use grove_core::*;
use grove_storage::session_file::{self, LoadError};
use grove_tree::turns::TurnLimit;

use crate::history::{HistoryOpenError, HistoryUnavailable, HistoryWindow, OlderTurns};
use crate::host::Host;
use crate::sequencer::{HostStopped, PublishedState, ResolvedTarget, SubscriptionTarget};

/// A page of requested turns.
#[derive(Debug)]
pub struct TurnPage {
    pub session: SessionId,
    pub turns: Vec<Arc<Turn>>,
    /// Says whether there are older ones.
    pub older: bool,
}

/// The reason why turns could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TurnsError {
    #[error("there is no such chat")]
    NoChat,
    #[error("the session has no turn {0}")]
    NoTurn(TurnId),
    #[error(transparent)]
    Unreadable(#[from] LoadError),
    #[error(transparent)]
    History(#[from] HistoryUnavailable),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// The location of requested turns.
enum TurnLocation {
    Here(TurnPage),
    /// In the chat's log, before a turn; `here` are the turns that follow them.
    Stored {
        session: SessionId,
        chat: ChatId,
        origin: Option<Arc<ChatOrigin>>,
        before: Option<TurnId>,
        here: Vec<Arc<Turn>>,
    },
}

/// The `most` turns before a turn, or the last ones. The session is loaded already.
pub async fn find(
    host: &Host,
    wanted: SubscriptionTarget,
    before: Option<TurnId>,
    most: usize,
) -> Result<TurnPage, TurnsError> {
    let here = |published: &PublishedState| look(published, &wanted, before.as_ref(), most);
    let found = match host.sequencer().read(here) {
        Err(TurnsError::NoChat) => return find_history(host, &wanted, before, most).await,
        found => found?,
    };
    match found {
        TurnLocation::Here(found) => Ok(found),
        TurnLocation::Stored { session, chat, origin, before, here } => {
            // A log that is still being copied is incomplete.
            host.0.copies.none_into(&session).await;
            let limit = TurnLimit { turns: most - here.len(), bytes: host.config().limits.snapshot_bytes as u64 };
            let window = loop {
                let fs = host.store_of(&session).ok_or(TurnsError::NoChat)?;
                let read =
                    session_file::read_turns(fs.as_ref(), &session, &chat, origin.as_deref(), before.as_ref(), limit);
                let read = read.await;
                // A session that has moved to another store meanwhile is read there.
                let now = host.store_of(&session).ok_or(TurnsError::NoChat)?;
                if Arc::ptr_eq(&fs, &now) {
                    break read?;
                }
            };
            let turns = window.turns.into_iter().chain(here).collect();
            Ok(TurnPage { session, turns, older: window.older })
        }
    }
}

/// Turns of another tool's session.
async fn find_history(
    host: &Host,
    wanted: &SubscriptionTarget,
    before: Option<TurnId>,
    most: usize,
) -> Result<TurnPage, TurnsError> {
    let window = HistoryWindow { before, turns: most, bytes: host.config().limits.snapshot_bytes };
    let found = host.older_history(wanted, window).await.map_err(|error| match error {
        HistoryOpenError::HistoryUnavailable(error) => TurnsError::History(error),
        HistoryOpenError::NoTurn(turn) => TurnsError::NoTurn(turn),
    })?;
    let OlderTurns { session, turns, older } = found.ok_or(TurnsError::NoChat)?;
    Ok(TurnPage { session, turns, older })
}

fn look(
    published: &PublishedState,
    wanted: &SubscriptionTarget,
    before: Option<&TurnId>,
    most: usize,
) -> Result<TurnLocation, TurnsError> {
    let (session, chat) = match published.find(wanted).ok_or(TurnsError::NoChat)? {
        ResolvedTarget::Root => return Err(TurnsError::NoChat),
        ResolvedTarget::SessionWithMainChat(session) | ResolvedTarget::Session(session) => {
            (session, session.main_chat().ok_or(TurnsError::NoChat)?)
        }
        ResolvedTarget::Chat(session, chat) => (session, chat),
    };
    let (id, chat_id, origin) = (session.id.clone(), chat.id.clone(), chat.origin.clone());
    let end = match before {
        None => Some(chat.turns.len()),
        // The active turn comes after all the others.
        Some(before) if chat.active_turn(before).is_some() => Some(chat.turns.len()),
        Some(before) => chat.position(before),
    };
    match end {
        Some(end) if end >= most || !chat.has_older_turns => {
            let start = end.saturating_sub(most);
            let older = start > 0 || chat.has_older_turns;
            Ok(TurnLocation::Here(TurnPage { session: id, turns: chat.turns[start..end].to_vec(), older }))
        }
        // If older turns are stored, the first one here was read from there.
        Some(end) => {
            let before = chat.turns.first().map(|turn| turn.id.clone());
            Ok(TurnLocation::Stored { session: id, chat: chat_id, origin, before, here: chat.turns[..end].to_vec() })
        }
        None if chat.has_older_turns => {
            Ok(TurnLocation::Stored { session: id, chat: chat_id, origin, before: before.cloned(), here: Vec::new() })
        }
        None => Err(TurnsError::NoTurn(before.cloned().unwrap_or_else(|| "".into()))),
    }
}
