//! Events that mostly do not fit the state they meet.

use grove_core::*;

use super::commands::*;
use super::session::*;
use super::turn::*;
use super::{Dice, agent, any_extra, new_session};

/// Any event at all: of the root, of sessions that may not exist, of chats that may not exist.
pub(crate) fn event(dice: &mut Dice) -> Event {
    let at = Timestamp(dice.below(1_000) as u64);
    let session = SessionId::from(dice.pick(&["s1", "s1", "s1", "s1", "s2", "", "nowhere"]));
    let change = match dice.below(20) {
        0 => Change::Root(RootEvent::AgentsChanged(if dice.chance(50) { vec![agent()] } else { vec![] })),
        1 => Change::Root(RootEvent::ActiveSessionsChanged(dice.below(9) as u32)),
        2 if dice.chance(20) => Change::Session(session, SessionEvent::Removed),
        2 | 3 => Change::Session(session.clone(), created(session, dice)),
        4..=6 => Change::Session(session, session_event(dice)),
        _ => {
            let chat = ChatId::from(dice.pick(&["main", "main", "main", "main", "side", ""]));
            Change::Chat(session, chat, chat_event(dice))
        }
    };
    Event { at, change }
}

pub(super) fn created(id: SessionId, dice: &mut Dice) -> SessionEvent {
    SessionEvent::Created(Box::new(NewSession { id, model: dice.maybe(model), ..new_session() }))
}

/// Any event of a session itself, except that it is added or removed.
pub(crate) fn session_event(dice: &mut Dice) -> SessionEvent {
    match dice.below(30) {
        29 => SessionEvent::CheckoutChanged(Box::new(checkout(dice))),
        28 if dice.chance(50) => SessionEvent::Moved(StoreName::from(dice.pick(&["local", "other"]))),
        28 => SessionEvent::WorkingDirectoryChanged { previous: dice.maybe(directory), directory: directory(dice) },
        0 | 27 => SessionEvent::CreationFailed(error(dice)),
        1 => SessionEvent::ChatRowChanged(chat_row(dice)),
        20 => match dice.chance(60) {
            true => SessionEvent::ChatAdded(chat_row(dice)),
            false => SessionEvent::ChatRemoved(ChatId::from(dice.pick(&["main", "side"]))),
        },
        21 => SessionEvent::ActiveClientSet(active_client(dice)),
        22 => SessionEvent::ActiveClientRemoved(client(dice)),
        23 => SessionEvent::ConfigChanged { values: any_extra(dice).unwrap_or_default(), replace: dice.chance(50) },
        24..=26 => SessionEvent::DetailsChanged(Box::new(details(dice))),
        2 => SessionEvent::InputNeededSet(InputNeeded {
            request: RequestId::from(dice.id("request-")),
            chat: ChatId::from("main"),
            turn: TurnId::from(dice.id("turn-")),
            about: match dice.below(3) {
                0 => InputSubject::ToolConfirmation(Box::new(any_call(dice))),
                1 => InputSubject::ClientExecution(Box::new(any_call(dice))),
                _ => InputSubject::Question(Box::new(any_input_request(dice))),
            },
        }),
        3 => SessionEvent::InputNeededRemoved {
            chat: ChatId::from("main"),
            request: RequestId::from(dice.id("request-")),
        },
        4 => SessionEvent::Listed,
        5..=9 => SessionEvent::Ready,
        10..=12 => SessionEvent::TitleChanged(dice.text().into()),
        13..=15 => SessionEvent::ModelChanged(model(dice)),
        16 | 17 => SessionEvent::ReadChanged(dice.chance(50)),
        _ => SessionEvent::ArchivedChanged(dice.chance(50)),
    }
}

/// Any event of a chat, with ids from a small pool: some of them hit.
pub(crate) fn chat_event(dice: &mut Dice) -> ChatEvent {
    let turn = TurnId::from(dice.pick(&["turn-0", "turn-0", "turn-0", "turn-1", ""]));
    let part = PartId::from(dice.id("part-"));
    let call = ToolCallId::from(dice.id("call-"));
    let request = RequestId::from(dice.id("request-"));
    let pending = PendingId::from(dice.id("pending-"));
    match dice.below(32) {
        0..=2 => {
            let (started_at, queued) = (claimed(dice), dice.maybe(|_| pending));
            ChatEvent::TurnStarted { turn, message: message(dice), started_at, queued }
        }
        3..=5 => ChatEvent::PartAdded { turn, part: any_part(dice) },
        6 => ChatEvent::TextDelta { turn, part, content: dice.text() },
        7 => ChatEvent::ReasoningDelta { turn, part, content: dice.text() },
        8 => ChatEvent::ToolCallStarted { turn, call: new_call(call, dice) },
        9 => ChatEvent::ToolCallInputDelta { turn, call, content: dice.text() },
        10 => ChatEvent::ToolCallReady {
            turn,
            call: new_call(call, dice),
            invocation_message: dice.text(),
            input: dice.maybe(Dice::text),
            gate: dice.pick(&[Gate::None, Gate::Follows]),
        },
        11 => ChatEvent::ToolCallGated { turn, gated: gated(call, request, dice) },
        12 | 13 => {
            let verdict = verdict(&permission(request.clone(), dice), dice);
            ChatEvent::ToolCallConfirmed { turn, call, request, verdict, answer: None }
        }
        14 => ChatEvent::ToolCallCompleted { turn, call, result: result(dice), run: None },
        15 => ChatEvent::ToolCallResultGated { turn, call, result: result(dice), run: None },
        16 => {
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            ChatEvent::ToolCallResultConfirmed { turn, call, result: result(dice), decision, answer: None }
        }
        17 => ChatEvent::UsageReported { turn, usage: usage(dice) },
        18 => ChatEvent::InputRequested { turn, request: Box::new(input_request(request, dice)) },
        19 => {
            let outcome = dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined, InputOutcome::Cancelled]);
            ChatEvent::InputAnswered { turn, request, outcome, answers: answers(dice), answered_by: None }
        }
        20 => {
            let duration = dice.maybe(|dice| dice.below(1_000) as u64);
            match dice.below(3) {
                0 => ChatEvent::TurnCompleted { turn, duration },
                1 => ChatEvent::TurnCancelled { turn, duration },
                _ => ChatEvent::TurnFailed { turn, duration, error: error(dice) },
            }
        }
        25 => ChatEvent::ToolCallOutput { turn, call, output: output(dice) },
        26 => ChatEvent::InputAnswerChanged { turn, request, question: question_id(dice), answer: dice.maybe(answer) },
        27 => match dice.below(3) {
            0 => ChatEvent::ChatReadChanged(dice.chance(50)),
            1 => ChatEvent::ChatArchivedChanged(dice.chance(50)),
            _ => ChatEvent::ChatTitleChanged(normalized_title(&dice.text()).unwrap_or_default()),
        },
        21 => ChatEvent::SteeringSet(pending_message(pending, dice)),
        22 => ChatEvent::SteeringRemoved(pending),
        23 => ChatEvent::QueuedSet(pending_message(pending, dice)),
        24 => match dice.below(2) {
            0 => ChatEvent::QueuedRemoved(pending),
            _ => ChatEvent::QueueReordered((0..dice.below(4)).map(|_| PendingId::from(dice.id("pending-"))).collect()),
        },
        28 => ChatEvent::ToolCallRestated { turn, restated: restated(new_call(call, dice), dice) },
        29 => ChatEvent::ActivityChanged(dice.maybe(Dice::text)),
        30 => ChatEvent::AgentSessionChanged(dice.maybe(Dice::text)),
        _ => ChatEvent::DraftChanged(dice.maybe(message)),
    }
}
