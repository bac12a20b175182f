//! Commands that mostly fit the state they meet.

use grove_core::*;

use super::events::*;
use super::session::*;
use super::turn::*;
use super::{Dice, any_extra, new_session};

/// A plausible command on `session` in its current state.
pub(crate) fn command(session: &Session, dice: &mut Dice) -> Command {
    let client = client(dice);
    // Half of the commands go to the main chat.
    let at = if dice.chance(50) { 0 } else { dice.below(session.chats.len()) };
    let chat = &session.chats[at];
    let id = if dice.chance(2) { ChatId::from("elsewhere") } else { chat.id.clone() };
    if dice.chance(8) {
        return of_the_host(id, chat, dice).into();
    }
    match &chat.active {
        Some(active) if dice.chance(70) => Command::Agent(report(id, active, dice)),
        Some(active) => {
            let command = request(session, id, chat, Some(active), dice);
            match is_denied_by_setting(&command) {
                true => Command::Host(command.into()),
                false => Command::Client(client, command),
            }
        }
        None if dice.chance(60) => {
            let turn = TurnId::from(format!("{}-turn-{}", chat.id, chat.turns.len()));
            let (message, started_at) = (message(dice), claimed(dice));
            Command::Client(client, ClientCommand::StartTurn { chat: id, turn, message, started_at })
        }
        None if dice.chance(30) => Command::Host(EventReport::Session(session_event(dice)).into()),
        None => Command::Client(client, request(session, id, chat, None, dice)),
    }
}

/// True for a denial by a rule: no dialect lets a client send it, only the host decides so.
pub(super) fn is_denied_by_setting(command: &ClientCommand) -> bool {
    match command {
        ClientCommand::ResolvePermission { verdict, .. } => {
            verdict.decision == Decision::Denied && verdict.by == ConfirmationReason::Setting
        }
        _ => false,
    }
}

pub(super) fn directory(dice: &mut Dice) -> String {
    dice.pick(&["/project", "/elsewhere", "/third"]).to_owned()
}

/// Commands that the host gives of its own accord.
pub(super) fn of_the_host(id: ChatId, of: &Chat, dice: &mut Dice) -> HostCommand {
    match dice.below(14) {
        13 if dice.chance(50) => ClientCommand::SetWorkingDirectory(directory(dice)).into(),
        12 | 13 => {
            // Some of the earlier turns, as on another branch.
            let turns = of.turns.iter().take(dice.below(3)).cloned().collect();
            let entries = (0..dice.below(2)).map(|_| LogEntry { line: dice.text().into(), after: None }).collect();
            HostCommand::MoveLeaf {
                chat: id,
                turns,
                older: dice.chance(30),
                entries,
                settings: RestoredSettings::default(),
            }
        }
        0 | 1 => {
            let chat = side_chat(dice);
            let uri = dice.pick(&["ahp-chat:/", "ahp-chat://"]);
            let uri = format!("{uri}{chat}{}", if uri.ends_with("//") { "/c2NyaXB0ZWQ6L3Mx" } else { "" });
            if dice.chance(70) {
                return HostCommand::AddChat { chat, uri };
            }
            let kind = match dice.chance(60) {
                true => OriginKind::Fork,
                false => OriginKind::Side {
                    selection: dice.maybe(|dice| Selection { text: dice.text(), part: dice.maybe(Dice::text) }),
                },
            };
            let turns: Vec<_> = of.turns.iter().take(dice.below(3)).cloned().collect();
            let turn = turns.last().map(|turn| turn.id.clone());
            let log = LogPart {
                boundary: 100,
                extent: LogScope::Branch,
                leaf: Some(dice.text()),
                until: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            };
            let origin = ChatOrigin {
                session: new_session().id,
                store: StoreName::default(),
                chat: id,
                uri: of.uri.clone(),
                turn,
                kind,
                log,
            };
            HostCommand::ForkChat { chat, uri, origin: origin.into(), turns, older: dice.chance(30) }
        }
        2 | 5 | 6 => HostCommand::RemoveChat(if dice.chance(80) { side_chat(dice) } else { id }),
        3 => HostCommand::TakeSteering { chat: id },
        4 => {
            let turn = of.active.as_ref().map_or_else(|| TurnId::from(dice.id("turn-")), |active| active.id.clone());
            HostCommand::StopTurn { chat: id, turn, error: error(dice) }
        }
        9..=11 => EventReport::Session(session_event(dice)).into(),
        _ => HostCommand::StartQueued { chat: id },
    }
}

pub(super) fn side_chat(dice: &mut Dice) -> ChatId {
    ChatId::from(dice.pick(&["side", "aside", ""]))
}

pub(super) fn client(dice: &mut Dice) -> ClientId {
    ClientId::from(dice.pick(&["client", "client", "other"]))
}

/// A start time that a client claims, by any clock.
pub(super) fn claimed(dice: &mut Dice) -> Option<Timestamp> {
    if dice.chance(20) { Some(Timestamp(dice.below(5_000) as u64)) } else { None }
}

/// A command of a person.
pub(super) fn request(
    session: &Session,
    id: ChatId,
    chat: &Chat,
    active: Option<&ActiveTurn>,
    dice: &mut Dice,
) -> ClientCommand {
    let turn = match active {
        Some(active) if dice.chance(90) => active.id.clone(),
        _ => TurnId::from(dice.id("turn-")),
    };
    let pending = match dice.one_of(chat.queued.iter().map(|queued| queued.id.clone()).collect()) {
        Some(queued) if dice.chance(80) => queued,
        _ => PendingId::from(dice.id("pending-")),
    };
    match dice.below(21) {
        0..=3 => {
            let asked = active.map_or_else(Vec::new, open_permissions);
            let (question, verdict) = match dice.one_of(asked) {
                Some((call, request)) if dice.chance(90) => {
                    let verdict = verdict(&request, dice);
                    let question = match dice.chance(50) {
                        true => PermissionTarget::Request(request.id),
                        false => PermissionTarget::OfToolCall(call),
                    };
                    (question, verdict)
                }
                _ => {
                    let request = permission(request_id(chat, active, dice), dice);
                    let verdict = verdict(&request, dice);
                    (PermissionTarget::Request(request.id), verdict)
                }
            };
            ClientCommand::ResolvePermission { chat: id, turn, question, verdict, answered_by: answerer(dice) }
        }
        4 => {
            let request = request_id(chat, active, dice);
            let outcome = dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined, InputOutcome::Cancelled]);
            ClientCommand::AnswerInput {
                chat: id,
                request,
                outcome,
                answers: answers(dice),
                answered_by: answerer(dice),
            }
        }
        14 | 15 => {
            let request = request_id(chat, active, dice);
            let question = question_id(dice);
            ClientCommand::DraftAnswer { chat: id, request, question, answer: dice.maybe(answer) }
        }
        16 => {
            let call = some_call(active, dice, |status| matches!(status, ToolCallStatus::PendingResultConfirmation(_)));
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            ClientCommand::ConfirmResult { chat: id, turn, call, decision, answered_by: answerer(dice) }
        }
        17 => {
            let call = some_call(active, dice, |status| *status == ToolCallStatus::Running);
            match dice.chance(50) {
                true => ClientCommand::ReportClientOutput { chat: id, turn, call, output: output(dice) },
                false => {
                    let ask = dice.chance(50);
                    ClientCommand::CompleteClientCall { chat: id, turn, call, result: result(dice), ask }
                }
            }
        }
        18 => match dice.below(5) {
            4 => ClientCommand::RenameChat { chat: id, title: dice.text() },
            3 => ClientCommand::ChangePermissions(permissions_change(dice)),
            0 => ClientCommand::SetChatRead { chat: id, read: dice.chance(80) },
            1 => ClientCommand::SetChatArchived { chat: id, archived: dice.chance(50) },
            _ => ClientCommand::ChangeConfig { values: any_extra(dice).unwrap_or_default(), replace: dice.chance(50) },
        },
        13 | 20 => match dice.chance(60) {
            true => ClientCommand::SetActiveClient(active_client(dice)),
            false => ClientCommand::RemoveActiveClient(client(dice)),
        },
        5 => ClientCommand::CancelTurn { chat: id, turn },
        6 => ClientCommand::ChangeModel(model(dice)),
        7 => match dice.below(3) {
            0 => ClientCommand::ChangeTitle(dice.text()),
            1 => ClientCommand::SetRead(!session.is_read),
            _ => ClientCommand::SetArchived(!session.is_archived),
        },
        8 => ClientCommand::SetSteering { chat: id, message: pending_message(pending, dice) },
        9 => ClientCommand::RemoveSteering { chat: id, id: pending },
        10 | 11 => {
            let fresh = PendingId::from(format!("pending-{}", dice.below(50)));
            ClientCommand::Enqueue { chat: id, message: pending_message(fresh, dice) }
        }
        12 => match dice.below(4) {
            0 => ClientCommand::Dequeue { chat: id, id: pending },
            1 | 2 => {
                let mut order: Vec<PendingId> = chat.queued.iter().map(|queued| queued.id.clone()).collect();
                order.reverse();
                order.truncate(1 + dice.below(order.len()));
                ClientCommand::ReorderQueue { chat: id, order }
            }
            _ => ClientCommand::SetDraft { chat: id, draft: dice.maybe(message) },
        },
        _ => ClientCommand::StartTurn { chat: id, turn, message: message(dice), started_at: claimed(dice) },
    }
}

pub(super) fn open_permissions(active: &ActiveTurn) -> Vec<(ToolCallId, PermissionRequest)> {
    let asked = |part: &Part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => Some((call.id.clone(), request.clone())),
            _ => None,
        },
        _ => None,
    };
    active.parts().iter().filter_map(asked).collect()
}

/// An answer to `request`: mostly a valid one.
pub(super) fn verdict(request: &PermissionRequest, dice: &mut Dice) -> Verdict {
    let decision = dice.pick(&[Decision::Approved, Decision::Approved, Decision::Denied]);
    let fits = |option: &&PermissionOption| option.allows == (decision == Decision::Approved);
    let option = request.options.iter().find(fits).map(|option| option.id.clone());
    Verdict {
        option: if dice.chance(90) { option } else { Some(dice.id("option-")) },
        edited_input: if request.editable || dice.chance(5) { dice.maybe(Dice::text) } else { None },
        skipped: decision == Decision::Denied && dice.chance(50),
        by: dice.pick(&[ConfirmationReason::Person, ConfirmationReason::Setting]),
        extra: any_extra(dice),
        ..decision.into()
    }
}

/// The party behind an answer, mostly known.
fn answerer(dice: &mut Dice) -> Option<Box<Answerer>> {
    let party = match dice.below(5) {
        0 => return None,
        1 => Answerer::rule(&dice.text()),
        2 => Answerer::client(&dice.id("token-"), None),
        3 => Answerer::client(&dice.id("token-"), Some(&dice.text())).hook("preToolUse"),
        _ => Answerer::client(&dice.id("token-"), Some(&dice.text())),
    };
    Some(Box::new(party))
}

/// An agent's report on a running turn: mostly one that fits.
pub(super) fn report(chat: ChatId, active: &ActiveTurn, dice: &mut Dice) -> EventReport {
    let turn = if dice.chance(98) { active.id.clone() } else { TurnId::from(dice.id("turn-")) };
    let event = match dice.below(47) {
        0 => ChatEvent::TurnCompleted { turn, duration: None },
        1 => ChatEvent::TurnFailed { turn, duration: dice.maybe(|_| 5), error: error(dice) },
        2 => chat_event(dice),
        3..=6 => ChatEvent::PartAdded { turn, part: whole_or_new_part(active, dice) },
        7..=12 => {
            let part = part_id(active, dice, |part| matches!(part, Part::Text(_)));
            ChatEvent::TextDelta { turn, part, content: dice.text() }
        }
        13..=15 => {
            let part = part_id(active, dice, |part| matches!(part, Part::Reasoning { .. }));
            ChatEvent::ReasoningDelta { turn, part, content: dice.text() }
        }
        16..=18 => {
            let id = ToolCallId::from(format!("call-{}", active.parts().len()));
            ChatEvent::ToolCallStarted { turn, call: new_call(id, dice) }
        }
        19 | 20 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Streaming);
            ChatEvent::ToolCallInputDelta { turn, call, content: dice.text() }
        }
        21..=24 => {
            let id = call_id(active, dice, |status| *status == ToolCallStatus::Streaming);
            ChatEvent::ToolCallReady {
                turn,
                call: match active.tool_call(&id) {
                    Some(begun) if dice.chance(95) => as_it_began(begun, dice),
                    _ => new_call(id, dice),
                },
                invocation_message: dice.text(),
                input: dice.maybe(Dice::text),
                gate: dice.pick(&[Gate::None, Gate::Follows]),
            }
        }
        25..=28 => {
            let fits = |status: &ToolCallStatus| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running);
            let call = call_id(active, dice, fits);
            let id = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::ToolCallGated { turn, gated: gated(call, id, dice) }
        }
        29 | 45 | 46 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallOutput { turn, call, output: output(dice) }
        }
        30 | 31 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallCompleted { turn, call, result: result(dice), run: None }
        }
        32 | 33 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallResultGated { turn, call, result: result(dice), run: None }
        }
        34 | 35 => {
            let fits = |status: &ToolCallStatus| matches!(status, ToolCallStatus::PendingResultConfirmation(_));
            ChatEvent::ToolCallResultConfirmed {
                turn,
                call: call_id(active, dice, fits),
                result: result(dice),
                decision: dice.pick(&[Decision::Approved, Decision::Denied]),
                answer: None,
            }
        }
        36 | 37 => ChatEvent::UsageReported { turn, usage: usage(dice) },
        38..=40 => {
            let id = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            let call = match active.tool_call(&id) {
                Some(begun) if dice.chance(95) => as_it_began(begun, dice),
                _ => new_call(id, dice),
            };
            ChatEvent::ToolCallRestated { turn, restated: restated(call, dice) }
        }
        41 | 42 => ChatEvent::ActivityChanged(dice.maybe(Dice::text)),
        43 => ChatEvent::AgentSessionChanged(dice.maybe(Dice::text)),
        _ => {
            let id = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::InputRequested { turn, request: Box::new(input_request(id, dice)) }
        }
    };
    EventReport::Chat { chat, event }
}

pub(super) fn whole_or_new_part(active: &ActiveTurn, dice: &mut Dice) -> Part {
    let id = PartId::from(format!("part-{}", active.parts().len()));
    match dice.below(16) {
        0..=3 => {
            let content = if dice.chance(80) { String::new() } else { dice.text() };
            Part::Text(TextPart { id, content, delivery: Delivery::Streamed })
        }
        4 | 5 => Part::Text(TextPart { id, content: dice.text(), delivery: Delivery::Whole }),
        6..=8 => Part::Reasoning { id, content: if dice.chance(80) { String::new() } else { dice.text() } },
        9 | 10 => Part::Content(content(dice)),
        11 | 12 => Part::Plan(plan(dice)),
        13 => Part::Notice(dice.text()),
        14 => Part::Error(error(dice)),
        _ => any_part(dice),
    }
}

/// Mostly the newest part of the wanted kind.
pub(super) fn part_id(active: &ActiveTurn, dice: &mut Dice, fits: fn(&Part) -> bool) -> PartId {
    let id = |part: &Part| match part {
        Part::Text(text) => Some(text.id.clone()),
        Part::Reasoning { id, .. } => Some(id.clone()),
        _ => None,
    };
    let newest = active.parts().iter().rev().find(|part| fits(part)).and_then(id);
    match newest {
        Some(newest) if dice.chance(80) => newest,
        _ => dice
            .one_of(active.parts().iter().filter_map(id).collect())
            .unwrap_or_else(|| PartId::from(dice.id("part-"))),
    }
}

pub(super) fn call_id(active: &ActiveTurn, dice: &mut Dice, fits: impl Fn(&ToolCallStatus) -> bool) -> ToolCallId {
    let call = |part: &Part| match part {
        Part::ToolCall(call) if fits(&call.status) => Some(call.id.clone()),
        _ => None,
    };
    match dice.one_of(active.parts().iter().filter_map(call).collect()) {
        Some(call) if dice.chance(95) => call,
        _ => ToolCallId::from(dice.id("call-")),
    }
}

pub(super) fn some_call(active: Option<&ActiveTurn>, dice: &mut Dice, fits: fn(&ToolCallStatus) -> bool) -> ToolCallId {
    match active {
        Some(active) => call_id(active, dice, fits),
        None => ToolCallId::from(dice.id("call-")),
    }
}

pub(super) fn request_id(chat: &Chat, active: Option<&ActiveTurn>, dice: &mut Dice) -> RequestId {
    let asked = |part: &Part| match part {
        Part::InputRequest(input) => Some(input.id.clone()),
        _ => None,
    };
    let known = active.map_or_else(Vec::new, |active| active.parts().iter().filter_map(asked).collect());
    match dice.one_of(known) {
        Some(request) if dice.chance(90) => request,
        _ => RequestId::from(format!("{}-request-{}", chat.id, dice.below(60))),
    }
}
