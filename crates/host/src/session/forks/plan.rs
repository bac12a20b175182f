//! The plan of a forked session.

use std::sync::Arc;

use grove_core::*;
use grove_storage::chat_log::LogSnapshot;
use grove_storage::settings::restored_at;
use grove_tree::EntryNo;
use grove_tree::navigate;
use grove_tree::tree_edit::TreeEditError;
use grove_tree::turns;

use super::{ForkPlan, ForkedChat};
use crate::session::SessionTask;
use crate::session::tree::TreeError;

impl SessionTask {
    /// Plans a fork of a chat: everything, or the part before a user message. One before the very first message starts
    /// empty.
    pub(in crate::session) async fn plan_fork(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        before: Option<String>,
    ) -> Result<ForkPlan, TreeError> {
        let tip = &self.tip;
        let mut like = NewSession {
            id: tip.id.clone(),
            uri: tip.uri.clone(),
            agent: tip.agent.clone(),
            model: tip.model.clone(),
            working_directories: tip.working_directories.clone(),
            config: tip.config.clone(),
            store: tip.store.clone(),
        };
        let (leaf, log, prefill) = match (&seen, before) {
            (seen, None) => {
                let (leaf, log) = whole(seen.as_ref());
                (leaf, log, None)
            }
            (None, Some(id)) => return Err(TreeEditError::UnknownEntry { id }.into()),
            (Some(seen), Some(target)) => {
                let until = begun_at(seen, &target).await?;
                let point = seen.with(move |index, source| navigate::branch_point(index, source, &target)).await??;
                let settings = restored_at(&self.tip, seen.fs.as_ref(), &seen.path, &seen.index, point.leaf).await?;
                let RestoredSettings { model, values } = settings;
                if let Some(model) = model {
                    like.model = model.for_session();
                }
                if let Some(config) = &mut like.config {
                    config.values.extend(values);
                }
                let log = LogPart { until, ..part(Some(seen), point.leaf, LogScope::Branch) };
                (point.leaf, log, Some(point.prefill))
            }
        };
        let is_session = log.extent == LogScope::All && chat.as_str() == Session::MAIN_CHAT;
        let title = tip.session_title();
        let main = self.plan_chat(chat, seen, leaf, log).await?;
        let mut chats = vec![ForkedChat { chat: Session::MAIN_CHAT.into(), ..main }];
        if is_session {
            let others: Vec<ChatId> = self.tip.chats.iter().skip(1).map(|chat| chat.id.clone()).collect();
            for other in others {
                let seen = self.look(&other).await?;
                let (leaf, log) = whole(seen.as_ref());
                let forked = self.plan_chat(&other, seen, leaf, log).await?;
                chats.push(self.kept_aside(&other, forked));
            }
        }
        let setup = self.setup.get().await?;
        let _hold = self.session_context.copies.hold(&like.id, None);
        Ok(ForkPlan { title, _hold, like, chats, prefill, setup })
    }

    /// Plans the fork of a part of a chat. Its id is still that of its source.
    async fn plan_chat(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        leaf: Option<EntryNo>,
        log: LogPart,
    ) -> Result<ForkedChat, TreeError> {
        let turns = self.turns_at(chat, seen.as_ref(), leaf).await?;
        let copies_agent = log.extent == LogScope::All && self.persistence.features().forks_agent;
        let agent_copy = copies_agent.then(|| self.fork_agent(chat));
        let last = turns.turns.last().map(|turn| turn.id.clone());
        let origin = Arc::new(self.origin_in(chat, last, OriginKind::Fork, log));
        let state = self.tip.chat(chat);
        Ok(ForkedChat {
            chat: chat.clone(),
            title: state.map(|chat| chat.title.clone()).unwrap_or_default(),
            is_read: state.is_none_or(|chat| chat.is_read),
            is_archived: state.is_some_and(|chat| chat.is_archived),
            origin,
            index: seen.map(|seen| seen.index),
            turns,
            agent_copy,
        })
    }

    /// Keeps a side chat a side chat in a copy of its session: it shows no more than it did.
    fn kept_aside(&self, chat: &ChatId, mut forked: ForkedChat) -> ForkedChat {
        if let Some(state) = self.tip.chat(chat)
            && let Some(about) = state.origin.as_deref().filter(|origin| !origin.is_shown())
        {
            (forked.turns.turns, forked.turns.older) = (state.turns.clone(), state.has_older_turns);
            let origin = Arc::make_mut(&mut forked.origin);
            (origin.kind, origin.turn) = (about.kind.clone(), about.turn.clone());
            // The shown part starts after it. Copies keep the ids of entries.
            origin.log.leaf.clone_from(&about.log.leaf);
        }
        forked
    }
}

/// A log as it is, or the part of it up to an entry.
fn part(seen: Option<&LogSnapshot>, leaf: Option<EntryNo>, extent: LogScope) -> LogPart {
    LogPart {
        boundary: seen.map_or(0, |seen| seen.index.log_length()),
        extent,
        leaf: seen.zip(leaf).map(|(seen, leaf)| seen.index.id(leaf).into_owned()),
        until: None,
    }
}

/// All of a log as it is, and its leaf.
fn whole(seen: Option<&LogSnapshot>) -> (Option<EntryNo>, LogPart) {
    let leaf = seen.and_then(|seen| seen.index.leaf());
    (leaf, part(seen, leaf, LogScope::All))
}

/// The time of a message: by the host's clock, or if that is unknown, by its own time.
async fn begun_at(seen: &LogSnapshot, message: &str) -> Result<Option<Timestamp>, TreeError> {
    let Some(entry) = seen.index.find(message) else { return Ok(None) };
    let begun = turns::turn_started_at(seen.fs.as_ref(), &seen.path, &seen.index, entry).await?;
    let own_time = || u64::try_from(seen.index.time(entry)?).ok().map(Timestamp);
    Ok(begun.or_else(own_time))
}
