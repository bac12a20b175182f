//! The answers that agents wait for.

use std::collections::HashMap;

use grove_core::*;
use tokio::sync::oneshot;

use crate::env::Spawn;
use crate::session::spills::SessionSpills;

/// The receivers of pending answers, by chat and request.
#[derive(Default)]
pub(super) struct PendingAnswers {
    slots: HashMap<(ChatId, RequestId), AnswerSlot>,
}

struct AnswerSlot {
    turn: TurnId,
    sender: AnswerSender,
}

/// The sender of the answer that an agent waits for.
pub(in crate::session) enum AnswerSender {
    Permission(oneshot::Sender<Verdict>),
    Question(oneshot::Sender<InputResponse>),
    /// The result of a call that a client runs.
    Result(oneshot::Sender<ToolResult>),
}

/// An answer to a pending request.
pub(in crate::session) enum RequestAnswer {
    Permission(Verdict),
    Question(InputResponse),
    Result(ToolResult),
}

impl PendingAnswers {
    pub(super) fn insert(&mut self, chat: &ChatId, turn: &TurnId, request: RequestId, sender: AnswerSender) {
        self.slots.insert((chat.clone(), request), AnswerSlot { turn: turn.clone(), sender });
    }

    /// Sends an answer. Returns whether an agent waited for it.
    ///
    /// A large result is stored in a file first, outside the session's task.
    pub(super) fn deliver(
        &mut self,
        request: &(ChatId, RequestId),
        answer: RequestAnswer,
        spills: &SessionSpills,
        spawn: &dyn Spawn,
    ) -> bool {
        let Some(slot) = self.slots.remove(request) else { return false };
        // The agent may have stopped waiting.
        match (slot.sender, answer) {
            (AnswerSender::Permission(waiting), RequestAnswer::Permission(verdict)) => drop(waiting.send(verdict)),
            (AnswerSender::Question(waiting), RequestAnswer::Question(response)) => drop(waiting.send(response)),
            (AnswerSender::Result(waiting), RequestAnswer::Result(result)) => {
                let result = spills.clone().fitting(result);
                spawn.spawn(Box::pin(async move { drop(waiting.send(result.await)) }));
            }
            (AnswerSender::Permission(_) | AnswerSender::Question(_) | AnswerSender::Result(_), _) => {}
        }
        true
    }

    /// Drops the requests of a turn that is over. Their agent notices it.
    pub(super) fn drop_turn(&mut self, turn: &TurnId) {
        self.slots.retain(|_, slot| slot.turn != *turn);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grove_fs::MemoryFs;
    use grove_fs::temp_files::TempFilePolicy;

    use super::*;
    use crate::config::Config;
    use crate::env::TokioSpawn;
    use crate::session::spills::LeftoverSpills;

    fn spills() -> SessionSpills {
        let store = Arc::new(MemoryFs::default());
        SessionSpills::new("s".into(), store, LeftoverSpills::None, TempFilePolicy::Removed, &Config::default())
    }

    fn permission(answers: &mut PendingAnswers, chat: &str, turn: &str) -> oneshot::Receiver<Verdict> {
        let (sender, verdict) = oneshot::channel();
        answers.insert(&chat.into(), &turn.into(), "r".into(), AnswerSender::Permission(sender));
        verdict
    }

    fn approved() -> RequestAnswer {
        RequestAnswer::Permission(Decision::Approved.into())
    }

    #[test]
    fn an_answer_goes_to_the_request_of_its_chat_and_once() {
        let mut answers = PendingAnswers::default();
        let mut here = permission(&mut answers, "a", "t");
        let mut there = permission(&mut answers, "b", "u");
        let request = ("a".into(), "r".into());
        assert!(answers.deliver(&request, approved(), &spills(), &TokioSpawn));
        assert_eq!(here.try_recv().map(|verdict| verdict.decision), Ok(Decision::Approved));
        assert!(there.try_recv().is_err());
        assert!(!answers.deliver(&request, approved(), &spills(), &TokioSpawn));
        assert!(!answers.is_empty());
    }

    #[test]
    fn an_answer_of_another_kind_ends_the_request_unanswered() {
        let mut answers = PendingAnswers::default();
        let mut asked = permission(&mut answers, "a", "t");
        let answer =
            RequestAnswer::Question(InputResponse { outcome: InputOutcome::Cancelled, answers: Answers::default() });
        assert!(answers.deliver(&("a".into(), "r".into()), answer, &spills(), &TokioSpawn));
        assert_eq!(asked.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn the_end_of_a_turn_drops_its_requests_alone() {
        let mut answers = PendingAnswers::default();
        let mut ended = permission(&mut answers, "a", "t");
        let mut other = permission(&mut answers, "b", "u");
        answers.drop_turn(&"t".into());
        assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }
}
