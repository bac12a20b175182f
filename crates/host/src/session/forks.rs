//! Chats that are forked from another one, and chats that are truncated to one of their own turns.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_fs::FsError;
use grove_fs::copy::PastePathRewriter;
use grove_tree::entries::Stamp;
use grove_tree::turns::{self, LoggedTurns, TurnSpan};
use grove_tree::{EntryNo, LogIndex};

use tokio::sync::oneshot;

use super::log::LogSnapshot;
use super::tree::{ForkedChat, TreeError};
use super::{CommandError, CommandOutcome, SessionTask};
use crate::sequencer::{ActionOrigin, HostStopped};
use crate::store::{content, info, pastes, session_file};

/// A request to create a chat as a fork of another one.
#[derive(Debug)]
pub(crate) struct ChatForkRequest {
    pub(crate) chat: ChatId,
    pub(crate) uri: String,
    /// The last turn of the fork.
    pub(crate) turn: TurnId,
    pub(crate) kind: OriginKind,
}

/// A session that was forked from this one, to be noted in its log.
#[derive(Debug)]
pub(crate) struct ForkNotice {
    pub(crate) session: SessionId,
    pub(crate) title: String,
    /// The chat that it comes from.
    pub(crate) chat: ChatId,
    /// The last entry of the fork, if it is not the whole chat.
    pub(crate) until: Option<String>,
}

/// The data of a forked chat that its events do not contain.
#[derive(Debug)]
pub(crate) struct ForkOrigin {
    pub(crate) chat: ChatId,
    /// The log that it is forked from, as of then.
    pub(crate) index: Option<Arc<LogIndex>>,
    /// The agent's id of its copy of the source's conversation.
    pub(crate) inherits: Option<oneshot::Receiver<Option<String>>>,
}

impl ForkedChat {
    /// The events with which a forked chat starts. `moved` rewrites the paths of its pasted files.
    pub(crate) fn begin(
        self,
        session: &SessionId,
        chat: ChatId,
        at: Timestamp,
        moved: &PastePathRewriter,
    ) -> (Vec<Change>, ForkOrigin) {
        let turns: Vec<_> = self.turns.iter().map(|turn| in_another_session(turn, moved)).collect();
        let origin = Arc::new(self.origin);
        let mut changes = Vec::new();
        if chat.as_str() != Session::MAIN_CHAT {
            let new = Chat {
                uri: Some(format!("ahp-chat:/{chat}")),
                title: self.title,
                origin: Some(origin.clone()),
                is_read: self.is_read,
                is_archived: self.is_archived,
                ..Chat::new(chat.clone(), at)
            };
            changes.push(Change::Session(session.clone(), SessionEvent::ChatAdded(new.row())));
        }
        let mut told = |event| changes.push(Change::Chat(session.clone(), chat.clone(), event));
        match origin.is_shown() {
            true => told(ChatEvent::TurnsInherited { origin, turns, older: self.older }),
            // A side chat does not show the turns that it is about.
            false => {
                told(ChatEvent::TurnsInherited { origin, turns: Vec::new(), older: false });
                if !turns.is_empty() {
                    told(ChatEvent::BranchTurnsLoaded { turns, older: self.older });
                }
            }
        }
        (changes, ForkOrigin { chat, index: self.index, inherits: self.inherits })
    }
}

impl SessionTask {
    /// Adopts the contents of other sessions' chats.
    pub(super) async fn inherit(&mut self, fork_origins: Vec<ForkOrigin>) {
        let mut indexes = HashMap::new();
        for ForkOrigin { chat, index, inherits } in fork_origins {
            if let Some(copy) = inherits {
                self.agents.inherit(&chat, copy);
            }
            indexes.extend(index.map(|index| (chat, index)));
        }
        self.begin_copies(indexes).await;
    }

    /// Notes in the log that a session was forked from this one. Nobody waits for that, and it fails nothing.
    pub(super) async fn fork_notice(&mut self, fork: ForkNotice) -> Result<(), HostStopped> {
        let planned = async {
            let Some(seen) = self.look(&fork.chat).await? else { return Ok(None) };
            let id = info::id_of("into", &fork.session);
            if seen.index.find(&id).is_some() {
                // A killed host has copied it before.
                return Ok(None);
            }
            let leaf = seen.index.leaf().map(|leaf| seen.index.id(leaf));
            let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.session_context.env.clock.now() };
            let line = info::fork_notice(stamp, &fork);
            let after = self.tip.chat(&fork.chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
            Ok::<_, TreeError>(Some(LogEntry { line: String::from_utf8_lossy(&line).into(), after }))
        };
        let noted = match planned.await {
            Ok(None) => return Ok(()),
            Ok(Some(entry)) => {
                let command =
                    Command::AddEntries { chat: fork.chat.clone(), entries: vec![entry], resets_agent: false };
                self.attempt(command, &Actor::Host, None).await?.map(|_| ()).map_err(|refusal| refusal.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match noted {
            Ok(()) => self.count_fork(),
            Err(error) => {
                tracing::warn!(session = %self.tip.id, fork = %fork.session, %error, "a fork is not noted at its source");
            }
        }
        Ok(())
    }

    pub(super) async fn fork_chat(
        &mut self,
        source: &ChatId,
        new: ChatForkRequest,
    ) -> Result<Result<(), TreeError>, HostStopped> {
        let ChatForkRequest { chat, uri, turn, kind } = new;
        let prepared = async {
            let seen = self.look(source).await?;
            let (seen, place) = self.find_turn(source, seen, &turn).await?;
            let window = match self.shown_until(source, &turn) {
                Some(window) => window,
                None => self.turns_at(source, Some(&seen), Some(place.last)).await?,
            };
            self.make_room_for(&chat).await?;
            Ok::<_, TreeError>((seen, place, window))
        };
        let (seen, place, window) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        let log = LogPart {
            boundary: seen.index.log_length(),
            extent: LogScope::Branch,
            leaf: Some(seen.index.id(place.last).into_owned()),
            until: None,
        };
        let origin = Arc::new(ChatOrigin {
            session: self.tip.id.clone(),
            store: self.tip.store.clone(),
            chat: source.clone(),
            uri: self.tip.chat(source).and_then(|chat| chat.uri.clone()),
            turn: Some(turn),
            kind,
            log,
        });
        let LoggedTurns { turns, older } = window;
        let command = Command::ForkChat { chat: chat.clone(), uri, origin, turns, older };
        Ok(match self.attempt(command, &Actor::Host, None).await? {
            Ok(_) => {
                self.begin_copy(&chat, Some(seen.index)).await;
                Ok(())
            }
            Err(refused) => Err(TreeError::Refused(refused)),
        })
    }

    /// Moves back to the end of a turn, or before the first one, like a navigation in the tree.
    pub(super) async fn truncate(
        &mut self,
        chat: &ChatId,
        turn: Option<TurnId>,
        origin: ActionOrigin,
    ) -> Result<Result<CommandOutcome, String>, HostStopped> {
        let state = self.tip.chat(chat);
        if let Some(active) = state.and_then(|chat| chat.active.as_deref()) {
            return Ok(Err(Rejection::TurnInProgress(active.id.clone()).to_string()));
        }
        let newest = state.and_then(|chat| chat.turns.last()).map(|turn| &turn.id);
        if newest == turn.as_ref() {
            return Ok(Ok(CommandOutcome::NoChange));
        }
        let seen = self.look(chat).await;
        let found = match (seen, turn) {
            (Err(error), _) => Err(error),
            // In a side chat, "before the first turn" means after the inherited entries.
            (Ok(Some(seen)), None) => {
                let floor = self.floor(chat, &seen.index);
                Ok((seen, floor))
            }
            (Ok(None), None) => return Ok(Ok(CommandOutcome::NoChange)),
            (Ok(seen), Some(turn)) => {
                let found = self.find_turn(chat, seen, &turn).await;
                found.map(|(seen, place)| (seen, Some(place.last)))
            }
        };
        let (seen, behind) = match found {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(match self.move_leaf_behind(chat, &seen, behind, origin).await? {
            Ok(true) => Ok(CommandOutcome::Happened),
            Ok(false) => Ok(CommandOutcome::NoChange),
            Err(error) => Err(error.to_string()),
        })
    }

    /// The position of a finished turn in its chat's log.
    pub(super) async fn find_turn(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        turn: &TurnId,
    ) -> Result<(LogSnapshot, TurnSpan), TreeError> {
        if self.tip.chat(chat).is_some_and(|chat| chat.active_turn(turn).is_some()) {
            return Err(CommandError::from(Rejection::TurnInProgress(turn.clone())).into());
        }
        let unknown = || TreeError::UnknownTurn(turn.clone());
        let seen = seen.ok_or_else(unknown)?;
        let place = turns::locate_turn(seen.fs.as_ref(), &seen.path, &seen.index, turn).await?;
        Ok((seen, place.ok_or_else(unknown)?))
    }

    /// The newest turns on the path to an entry: the shown ones if possible, since those are shared.
    pub(super) async fn turns_at(
        &mut self,
        chat: &ChatId,
        seen: Option<&LogSnapshot>,
        at: Option<EntryNo>,
    ) -> Result<LoggedTurns, TreeError> {
        let (Some(seen), Some(at)) = (seen, at) else { return Ok(LoggedTurns { turns: Vec::new(), older: false }) };
        if let Some(chat) = self.shows_everything(chat)
            && seen.index.leaf() == Some(at)
        {
            return Ok(LoggedTurns { turns: chat.turns.clone(), older: chat.has_older_turns });
        }
        Ok(turns::newest_turns_at(seen.fs.as_ref(), &seen.path, &seen.index, Some(at), self.window()).await?)
    }

    /// The shown turns of a chat up to one of them.
    fn shown_until(&self, chat: &ChatId, turn: &TurnId) -> Option<LoggedTurns> {
        let chat = self.shows_everything(chat)?;
        let turns = chat.turns[..=chat.position(turn)?].to_vec();
        Some(LoggedTurns { turns, older: chat.has_older_turns })
    }

    /// A chat, if it shows everything on the path to its leaf.
    fn shows_everything(&self, chat: &ChatId) -> Option<&Chat> {
        self.tip.chat(chat).filter(|chat| chat.origin.as_ref().is_none_or(|origin| origin.is_shown()))
    }

    /// The entry after which the shown part of a chat starts, if that is not the first one.
    pub(super) fn floor(&self, chat: &ChatId, index: &LogIndex) -> Option<EntryNo> {
        session_file::floor(self.tip.chat(chat)?.origin.as_deref(), index)
    }

    /// Removes the log of a deleted chat whose name is used again.
    pub(super) async fn make_room_for(&mut self, chat: &ChatId) -> Result<(), FsError> {
        if self.tip.chat(chat).is_some() || chat.as_str().is_empty() {
            return Ok(());
        }
        session_file::make_room_for_chat(self.logs.store().as_ref(), &self.tip.id, chat).await
    }
}

/// A turn as another session has it.
///
/// It is shared, unless its text or its attached bytes name files that are stored with the first.
fn in_another_session(turn: &Arc<Turn>, moved: &PastePathRewriter) -> Arc<Turn> {
    if let Some(turn) = pastes::in_turn(moved, turn) {
        return turn;
    }
    match turn.parts.iter().any(|part| !content::named_in(part).is_empty()) {
        true => Arc::new(Turn { derived: DerivedCache::default(), ..Turn::clone(turn) }),
        false => turn.clone(),
    }
}
