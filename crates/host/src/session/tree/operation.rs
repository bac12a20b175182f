//! Long operations on a tree: asking hooks, making a summary.
//!
//! The session continues meanwhile, and nothing of it has changed until the end.

use std::collections::{HashMap, HashSet};
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

/// The running operations on a session's trees, at most one in a chat.
#[derive(Default)]
pub(in crate::session) struct TreeOperations {
    running: HashMap<ChatId, TreeOperation>,
    /// Chats whose last turn filled the model's window: they are compacted before their next turn.
    full: HashSet<ChatId>,
    /// The number of the last operation.
    last_number: u64,
}

/// A running operation in a chat.
struct TreeOperation {
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

impl TreeOperations {
    /// Says whether an operation runs in a chat.
    pub(super) fn is_running(&self, chat: &ChatId) -> bool {
        self.running.contains_key(chat)
    }

    /// Says whether an operation runs in any chat.
    pub(in crate::session) fn is_any_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Says whether nothing runs, and nothing is due.
    pub(in crate::session) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.full.is_empty()
    }

    /// The chats in which an operation runs.
    pub(in crate::session) fn chats(&self) -> Vec<ChatId> {
        self.running.keys().cloned().collect()
    }

    /// Notes that a chat must be compacted before its next turn.
    pub(in crate::session) fn mark_full(&mut self, chat: &ChatId) {
        self.full.insert(chat.clone());
    }

    /// The chats that must be compacted.
    pub(in crate::session) fn full(&self) -> Vec<ChatId> {
        self.full.iter().cloned().collect()
    }

    /// Notes that the compaction of a chat starts, or cannot start.
    pub(super) fn unmark_full(&mut self, chat: &ChatId) {
        self.full.remove(chat);
    }

    /// A number for the next operation.
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn begin(&mut self, chat: &ChatId, operation: TreeOperation) {
        self.running.insert(chat.clone(), operation);
    }

    /// Ends the operation of this number. An earlier one may have been aborted when its outcome was on its way.
    fn finish(&mut self, chat: &ChatId, number: u64) -> Option<TreeOperation> {
        let is_this = self.running.get(chat).is_some_and(|operation| operation.number == number);
        if is_this { self.running.remove(chat) } else { None }
    }

    /// Aborts the operation in a chat, which is to be concluded.
    fn abort(&mut self, chat: &ChatId) -> Option<TreeOperation> {
        let operation = self.running.remove(chat)?;
        operation.abort.abort();
        Some(operation)
    }

    /// Says whether a turn may start now: the running operation is aborted for it, or makes it wait.
    pub(in crate::session) fn may_start_turn(&mut self, chat: &ChatId) -> bool {
        let gives_way = |operation: &TreeOperation| operation.new_turn_policy == NewTurnPolicy::AbortOperation;
        if self.running.get(chat).is_some_and(gives_way)
            && let Some(TreeOperation { done: Some(done), .. }) = self.abort(chat)
        {
            // The shown activity is replaced when the agent reports.
            done.send(Err(TreeError::TurnBegan)).ok();
        }
        !self.is_running(chat) && !self.full.contains(chat)
    }

    /// Drops everything of a removed chat without a report.
    pub(in crate::session) fn remove(&mut self, chat: &ChatId) {
        self.abort(chat);
        self.full.remove(chat);
    }

    /// Drops everything without a report: the session ends.
    pub(in crate::session) fn clear(&mut self) {
        self.running.drain().for_each(|(_, operation)| operation.abort.abort());
        self.full.clear();
    }
}

impl SessionTask {
    /// The hooks for this chat's tree.
    pub(super) fn hooks(&self, chat: &ChatId) -> ChatHooks {
        self.session_context.hooks.at(self.session_context.host.clone(), self.tip.uri.clone(), chat.clone())
    }

    /// Checks that an operation can start.
    pub(super) fn require_no_operation(&self, chat: &ChatId) -> Result<(), TreeError> {
        if self.operations.is_running(chat) {
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
        let number = self.operations.next_number();
        let (inbox, at) = (self.inbox_sender.clone(), chat.clone());
        let (work, abort) = abortable(async move {
            let result = work.await;
            // A session that is gone does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::TreeOutcome(at, TreeOutcome { number, result })).await.ok();
            }
        });
        let operation = TreeOperation { number, abort, new_turn_policy, is_shown: shown.is_some(), done };
        self.operations.begin(chat, operation);
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
        let Some(operation) = self.operations.finish(chat, end.number) else { return Ok(()) };
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
        let Some(operation) = self.operations.abort(chat) else { return Ok(false) };
        self.conclude(chat, operation, Err(why)).await?;
        Ok(true)
    }

    async fn conclude(
        &mut self,
        chat: &ChatId,
        operation: TreeOperation,
        answer: Result<TreeAnswer, TreeError>,
    ) -> Result<(), HostStopped> {
        // Before the answer: a client that has it does not see the operation running any more.
        if operation.is_shown {
            self.show(chat, None).await?;
            self.session_context.sequencer.read_in_order(|_| ()).await?;
        }
        match (operation.done, answer) {
            // The caller may have stopped waiting.
            (Some(done), answer) => {
                done.send(answer).ok();
            }
            (None, Err(error)) => tracing::warn!(session = %self.tip.id, %error, "a conversation was not compacted"),
            (None, Ok(_)) => {}
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
        self.accept(EventReport::Chat { chat: chat.clone(), event }, &mut out).ok();
        self.send(out).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::AbortHandle;
    use tokio::sync::oneshot;

    use super::*;

    type Answer = oneshot::Receiver<Result<TreeAnswer, TreeError>>;

    fn begun(
        operations: &mut TreeOperations,
        chat: &str,
        new_turn_policy: NewTurnPolicy,
    ) -> (u64, AbortHandle, Answer) {
        let (abort, _) = AbortHandle::new_pair();
        let (done, answer) = oneshot::channel();
        let number = operations.next_number();
        let operation =
            TreeOperation { number, abort: abort.clone(), new_turn_policy, is_shown: false, done: Some(done) };
        operations.begin(&chat.into(), operation);
        (number, abort, answer)
    }

    #[test]
    fn a_turn_goes_first_or_waits_as_the_operation_says() {
        let mut operations = TreeOperations::default();
        let (_, summary, mut answer) = begun(&mut operations, "a", NewTurnPolicy::AbortOperation);
        let (_, compaction, _kept) = begun(&mut operations, "b", NewTurnPolicy::WaitForOperation);
        assert!(operations.may_start_turn(&"a".into()));
        assert!(summary.is_aborted());
        assert!(matches!(answer.try_recv(), Ok(Err(TreeError::TurnBegan))));
        assert!(!operations.may_start_turn(&"b".into()));
        assert!(!compaction.is_aborted());
        assert!(operations.may_start_turn(&"c".into()), "another chat's operation concerns nobody else");
    }

    #[test]
    fn a_full_chat_starts_no_turn_before_it_is_compacted() {
        let mut operations = TreeOperations::default();
        operations.mark_full(&"a".into());
        assert!(!operations.may_start_turn(&"a".into()));
        assert_eq!(operations.full(), [ChatId::from("a")]);
        assert!(!operations.is_idle() && !operations.is_any_running());
        operations.unmark_full(&"a".into());
        assert!(operations.may_start_turn(&"a".into()));
        assert!(operations.is_idle());
    }

    #[test]
    fn the_outcome_of_an_aborted_operation_does_not_end_the_next_one() {
        let mut operations = TreeOperations::default();
        let (first, ..) = begun(&mut operations, "a", NewTurnPolicy::AbortOperation);
        operations.abort(&"a".into());
        let (second, ..) = begun(&mut operations, "a", NewTurnPolicy::AbortOperation);
        assert!(operations.finish(&"a".into(), first).is_none());
        assert!(operations.is_running(&"a".into()));
        assert!(operations.finish(&"a".into(), second).is_some());
        assert!(!operations.is_any_running());
    }

    #[test]
    fn nothing_is_left_of_a_removed_chat() {
        let mut operations = TreeOperations::default();
        let (_, abort, mut answer) = begun(&mut operations, "a", NewTurnPolicy::WaitForOperation);
        operations.mark_full(&"a".into());
        operations.remove(&"a".into());
        assert!(abort.is_aborted() && operations.is_idle());
        assert!(matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "it is not answered");
    }
}
