//! Long operations on a tree: asking hooks, making a summary.
//!
//! The session continues meanwhile, and nothing of it has changed until the end.

use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use grove_core::*;

use super::navigation::PreparedNavigation;
use super::summarize::{PreparedCompaction, PreparedMerge};
use super::{TreeAnswer, TreeError, TreeReply};
use crate::hooks::ChatHooks;
use crate::sequencer::HostStopped;
use crate::session::{Outbox, SessionTask, ToSession};

/// A running operation in a chat.
pub(in crate::session) struct TreeOperation {
    /// Distinguishes it from an earlier one whose outcome is still on its way.
    number: u64,
    abort: AbortHandle,
    new_turn_policy: NewTurnPolicy,
    /// Says whether clients see the activity.
    is_shown: bool,
    /// None for operations of the host itself.
    done: Option<TreeReply>,
}

/// The handling of a turn that starts meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewTurnPolicy {
    /// It waits.
    WaitForOperation,
    /// It goes first, and the operation is aborted.
    AbortOperation,
}

/// The start of an operation.
pub(super) struct OperationStart {
    pub(super) new_turn_policy: NewTurnPolicy,
    /// The activity that clients see, if it may take long.
    pub(super) shown: Option<&'static str>,
    pub(super) done: Option<TreeReply>,
}

/// The end of an operation.
pub(crate) struct TreeOutcome {
    number: u64,
    result: Result<PreparedOperation, TreeError>,
}

/// The result of the asynchronous part, to be applied now.
pub(super) enum PreparedOperation {
    Navigate(Box<PreparedNavigation>),
    Merge(Box<PreparedMerge>),
    Compact(Box<PreparedCompaction>),
}

impl TreeOperation {
    /// Ends it without a report.
    pub(in crate::session) fn cancel_silently(&self) {
        self.abort.abort();
    }
}

impl SessionTask {
    /// The hooks for this chat's tree.
    pub(super) fn hooks(&self, chat: &ChatId) -> ChatHooks {
        self.session_context.hooks.at(self.session_context.host.clone(), self.tip.uri.clone(), chat.clone())
    }

    /// Checks that an operation can start.
    pub(super) fn require_no_operation(&self, chat: &ChatId) -> Result<(), TreeError> {
        if self.chat_agents.get(chat).is_some_and(|chat_agent| chat_agent.operation.is_some()) {
            return Err(TreeError::Busy);
        }
        match self.tip.chat(chat).is_some_and(|chat| chat.active.is_some()) {
            true => Err(TreeError::TurnRuns),
            false => Ok(()),
        }
    }

    pub(super) async fn start_operation(
        &mut self,
        chat: &ChatId,
        beginning: OperationStart,
        work: impl Future<Output = Result<PreparedOperation, TreeError>> + Send + 'static,
    ) -> Result<(), HostStopped> {
        let OperationStart { new_turn_policy, shown, done } = beginning;
        self.last_operation += 1;
        let number = self.last_operation;
        let (inbox, at) = (self.inbox_sender.clone(), chat.clone());
        let (work, abort) = abortable(async move {
            let result = work.await;
            // A session that is gone does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::TreeOutcome(at, TreeOutcome { number, result })).await.ok();
            }
        });
        let operation = TreeOperation { number, abort, new_turn_policy, is_shown: shown.is_some(), done };
        self.chat_agent(chat).operation = Some(operation);
        self.session_context.env.spawn.spawn(Box::pin(work.map(|_| ())));
        match shown {
            Some(words) => self.show(chat, Some(words)).await,
            None => Ok(()),
        }
    }

    /// Applies the outcome of an operation.
    pub(in crate::session) async fn finish_operation(
        &mut self,
        chat: &ChatId,
        end: TreeOutcome,
    ) -> Result<(), HostStopped> {
        let is_this = |operation: &mut TreeOperation| operation.number == end.number;
        let Some(operation) = self.chat_agent(chat).operation.take_if(is_this) else { return Ok(()) };
        let answer = match end.result {
            Ok(PreparedOperation::Navigate(prepared_navigation)) => {
                self.leave(chat, *prepared_navigation).await?.map(TreeAnswer::NavigateOutcome)
            }
            Ok(PreparedOperation::Merge(merging)) => {
                self.finish_merge(chat, *merging).await?.map(TreeAnswer::MergeOutcome)
            }
            Ok(PreparedOperation::Compact(compacting)) => {
                self.finish_compaction(chat, *compacting).await?.map(TreeAnswer::CompactionOutcome)
            }
            Err(error) => Err(error),
        };
        self.conclude(chat, operation, answer).await
    }

    /// Aborts the running operation, if there is one.
    pub(in crate::session) async fn give_up(&mut self, chat: &ChatId, why: TreeError) -> Result<bool, HostStopped> {
        let Some(operation) = self.chat_agents.get_mut(chat).and_then(|chat_agent| chat_agent.operation.take()) else {
            return Ok(false);
        };
        operation.abort.abort();
        self.conclude(chat, operation, Err(why)).await?;
        Ok(true)
    }

    /// Says whether a turn may start now: the running operation is aborted for it, or makes it wait.
    pub(in crate::session) fn may_start_turn(&mut self, chat: &ChatId) -> bool {
        let chat_agent = self.chat_agent(chat);
        let gives_way = |operation: &mut TreeOperation| operation.new_turn_policy == NewTurnPolicy::AbortOperation;
        if let Some(operation) = chat_agent.operation.take_if(gives_way) {
            operation.abort.abort();
            // The shown activity is replaced when the agent reports.
            if let Some(done) = operation.done {
                done.send(Err(TreeError::TurnBegan)).ok();
            }
        }
        chat_agent.operation.is_none() && !chat_agent.is_full
    }

    async fn conclude(
        &mut self,
        chat: &ChatId,
        operation: TreeOperation,
        answer: Result<TreeAnswer, TreeError>,
    ) -> Result<(), HostStopped> {
        match (operation.done, answer) {
            // The caller may have stopped waiting.
            (Some(done), answer) => {
                done.send(answer).ok();
            }
            (None, Err(error)) => tracing::warn!(session = %self.tip.id, %error, "a conversation was not compacted"),
            (None, Ok(_)) => {}
        }
        if operation.is_shown {
            self.show(chat, None).await?;
        }
        // A turn may have waited for it.
        if operation.new_turn_policy == NewTurnPolicy::WaitForOperation {
            self.prompt_waiting(chat);
        }
        Ok(())
    }

    /// Prompts the agent with the turn that waited for an operation.
    pub(super) fn prompt_waiting(&mut self, chat: &ChatId) {
        if let Some(turn) = self.tip.chat(chat).and_then(|chat| chat.active.as_ref()).map(|turn| turn.id.clone()) {
            self.prompt(chat, &turn);
        }
    }

    /// Publishes the current activity.
    async fn show(&mut self, chat: &ChatId, words: Option<&str>) -> Result<(), HostStopped> {
        let event = ChatEvent::ActivityChanged(words.map(str::to_owned));
        let mut out = Outbox::default();
        // A removed chat has nothing to show.
        self.accept(Command::Report { chat: chat.clone(), event }, &Actor::Host, &mut out).ok();
        self.send(out).await
    }
}
