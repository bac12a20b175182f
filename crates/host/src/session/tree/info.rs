//! Entries of a log outside turns that tell of the session.

use grove_core::*;
use grove_storage::chat_log::{InfoEntry, LogSnapshot};
use grove_tree::entries::{self, Stamp};
use grove_tree::{EntryNo, LogIndex, Owner, Role};
use serde_json::Value;

use super::{BranchInfo, InfoEntries, TreeError, leaf_of};
use crate::sequencer::HostStopped;
use crate::session::SessionTask;

impl SessionTask {
    /// Notes an event of the session in the log of its main chat. A failure is logged: the event itself has happened.
    pub(in crate::session) async fn note_event(&mut self, data: Value) -> Result<(), HostStopped> {
        let chat = ChatId::from(Session::MAIN_CHAT);
        let noted = match self.look(&chat).await {
            Ok(seen) => self.add_info_to(&chat, seen, &data).await?,
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(session = %self.tip.id, %error, "an event of the session is not in its log");
        }
        Ok(())
    }

    /// Adds an entry to a log, which may be empty.
    pub(super) async fn add_info_to(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        data: &Value,
    ) -> Result<Result<LogEntry, TreeError>, HostStopped> {
        let (id, parent) = match &seen {
            Some(seen) => (self.new_entry_id(&seen.index), leaf_of(&seen.index)),
            None => (self.random_entry_id(0), None),
        };
        let stamp = Stamp { id: &id, parent: parent.as_deref(), at: self.session_context.env.clock.now() };
        let line = entries::info(stamp, data);
        if let Some(seen) = seen
            && let Err(error) = LogIndex::clone(&seen.index).append(&line)
        {
            return Ok(Err(error.into()));
        }
        let after = self.tip.chat(chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        let entry = LogEntry { line: String::from_utf8_lossy(&line).into(), after };
        let entries = vec![entry.clone()];
        let command = HostCommand::AddEntries { chat: chat.clone(), entries, resets_agent: false };
        Ok(self.attempt(command, None).await?.map(|_| entry).map_err(TreeError::Refused))
    }

    /// The entries outside turns on the branch of the leaf.
    pub(super) async fn info_entries(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
    ) -> Result<InfoEntries, TreeError> {
        let newest = self.tip.chat(chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        let Some(seen) = seen else { return Ok(InfoEntries { entries: Vec::new(), newest }) };
        let infos = self.logs.log(chat).info_entries(&self.tip).await?;
        let branch = BranchPositions::new(&seen.index);
        let mut placed: Vec<(usize, BranchInfo)> =
            infos.iter().filter_map(|info| branch.place(&seen.index, info)).collect();
        placed.sort_by_key(|(position, _)| *position);
        Ok(InfoEntries { entries: placed.into_iter().map(|(_, info)| info).collect(), newest })
    }

    /// Eight digits for an entry: random, or a number if there is no randomness.
    pub(super) fn random_entry_id(&self, number: usize) -> String {
        let mut bytes = [0; 4];
        // Without randomness the ids are consecutive, which is as good: they must only differ.
        if self.session_context.env.random.fill(&mut bytes).is_err() {
            bytes = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
        }
        hex::encode(bytes)
    }
}

/// The positions of the entries on a branch.
struct BranchPositions {
    /// The position of each entry of the log; `None` for one on another branch.
    positions: Vec<Option<usize>>,
    /// For each position the number of turns that begin behind it.
    turns_behind: Vec<usize>,
    turns: usize,
}

impl BranchPositions {
    fn new(index: &LogIndex) -> Self {
        let branch = index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default();
        let mut positions = vec![None; index.len()];
        let mut turns_behind = vec![0; branch.len()];
        let mut turns = 0;
        for (position, entry) in branch.iter().enumerate().rev() {
            positions[entry.as_usize()] = Some(position);
            turns_behind[position] = turns;
            turns += usize::from(index.role(*entry) == Some(Role::User));
        }
        Self { positions, turns_behind, turns }
    }

    /// An entry's position, if it is on the branch. One of Grove's own is on the branch of its parent, right behind it.
    fn place(&self, index: &LogIndex, info: &InfoEntry) -> Option<(usize, BranchInfo)> {
        // The index may be older than the list of entries.
        let known = |entry: EntryNo| self.positions.get(entry.as_usize()).copied().flatten();
        if info.entry.as_usize() >= index.len() {
            return None;
        }
        let parent = index.parent(info.entry);
        let at = match index.owner(info.entry) {
            Owner::Tree => known(info.entry),
            Owner::Grove => match parent {
                Some(parent) => Some(known(parent)?),
                None if index.parent_id(info.entry).is_some() => return None,
                None => None,
            },
        };
        let turns_behind = at.map_or(self.turns, |at| self.turns_behind[at]);
        let parent = parent.map(|parent| index.id(parent).into_owned());
        Some((at.map_or(0, |at| at + 1), BranchInfo { line: info.line.clone(), parent, turns_behind }))
    }
}
