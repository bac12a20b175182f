//! Input requests: answers and drafts of answers.

use super::Rejection;
use super::batch::BatchBuilder;
use crate::answerer::Answerer;
use crate::event::*;
use crate::ids::*;
use crate::input::*;

impl<'a> BatchBuilder<'a> {
    pub(super) fn answer_input(
        &mut self,
        chat: &ChatId,
        request: RequestId,
        outcome: InputOutcome,
        answers: Answers,
        answered_by: Option<Box<Answerer>>,
    ) -> Result<(), Rejection> {
        let (turn, input) = self.open_input(chat, &request)?;
        if let Some(unknown) = answers.keys().find(|id| !input.questions.iter().any(|known| known.id == **id)) {
            return Err(Rejection::UnknownQuestion(unknown.clone()));
        }
        if outcome == InputOutcome::Accepted
            && let Some(question) = input.unanswered(&answers)
        {
            return Err(Rejection::Unanswered(question.id.clone()));
        }
        if outcome == InputOutcome::Accepted
            && let Some((question, why)) = input.answer_error(&answers)
        {
            return Err(Rejection::InvalidAnswer { question: question.id.clone(), why });
        }
        let turn = turn.clone();
        self.chat_event(chat, ChatEvent::InputAnswered { turn, request, outcome, answers, answered_by });
        Ok(())
    }

    pub(super) fn draft_answer(
        &mut self,
        chat: &ChatId,
        request: RequestId,
        question: QuestionId,
        answer: Option<Answer>,
    ) -> Result<(), Rejection> {
        let (turn, input) = self.open_input(chat, &request)?;
        let Some(known_question) = input.questions.iter().find(|known| known.id == question) else {
            return Err(Rejection::UnknownQuestion(question));
        };
        // A draft may be any text on the way to an answer.
        if let Some(Answer::Submitted(value)) = &answer
            && let Some(why) = known_question.answer_error(value)
        {
            return Err(Rejection::InvalidAnswer { question, why });
        }
        if input.answers.get(&question) != answer.as_ref() {
            let turn = turn.clone();
            self.chat_event(chat, ChatEvent::InputAnswerChanged { turn, request, question, answer });
        }
        Ok(())
    }

    /// The open request of this id, and its turn.
    fn open_input(&self, chat: &ChatId, request: &RequestId) -> Result<(&'a TurnId, &'a InputRequest), Rejection> {
        let active = self.chat(chat)?.active.as_deref();
        match active.and_then(|active| Some((&active.id, active.input_request(request)?))) {
            Some((_, input)) if input.outcome.is_some() => Err(Rejection::AlreadyAnswered(request.clone())),
            Some(found) => Ok(found),
            None => Err(Rejection::UnknownRequest(request.clone())),
        }
    }
}
