//! The turns of a chat in its log: finding one, choosing the shown ones, and moving back to one.

use grove_core::*;
use grove_storage::ActionOrigin;
use grove_storage::chat_log::LogSnapshot;
use grove_storage::session_file;
use grove_tree::turns::{self, LoggedTurns, TurnSpan};
use grove_tree::{EntryNo, LogIndex};

use super::TreeError;
use crate::sequencer::HostStopped;
use crate::session::{ActionRefusal, CommandError, CommandOutcome, SessionTask};

impl SessionTask {
    /// Moves back to the end of a turn, or before the first one, like a navigation in the tree.
    pub(in crate::session) async fn truncate(
        &mut self,
        chat: &ChatId,
        turn: Option<TurnId>,
        origin: ActionOrigin,
    ) -> Result<Result<CommandOutcome, ActionRefusal>, HostStopped> {
        let state = self.tip.chat(chat);
        if let Some(active) = state.and_then(|chat| chat.active.as_deref()) {
            return Ok(Err(CommandError::from(Rejection::TurnInProgress(active.id.clone())).into()));
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
            Err(error) => return Ok(Err(error.into())),
        };
        Ok(match self.move_leaf_behind(chat, &seen, behind, origin).await? {
            Ok(true) => Ok(CommandOutcome::Happened),
            Ok(false) => Ok(CommandOutcome::NoChange),
            Err(error) => Err(error.into()),
        })
    }

    /// The position of a finished turn in its chat's log.
    pub(in crate::session) async fn find_turn(
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
    pub(in crate::session) async fn turns_at(
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
    pub(in crate::session) fn shown_until(&self, chat: &ChatId, turn: &TurnId) -> Option<LoggedTurns> {
        let chat = self.shows_everything(chat)?;
        let turns = chat.turns[..=chat.position(turn)?].to_vec();
        Some(LoggedTurns { turns, older: chat.has_older_turns })
    }

    /// A chat, if it shows everything on the path to its leaf.
    fn shows_everything(&self, chat: &ChatId) -> Option<&Chat> {
        self.tip.chat(chat).filter(|chat| chat.origin.as_ref().is_none_or(|origin| origin.is_shown()))
    }

    /// The entry after which the shown part of a chat starts, if that is not the first one.
    pub(in crate::session) fn floor(&self, chat: &ChatId, index: &LogIndex) -> Option<EntryNo> {
        session_file::floor(self.tip.chat(chat)?.origin.as_deref(), index)
    }
}
