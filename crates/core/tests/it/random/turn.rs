//! Values of a turn.

use grove_core::*;

use super::commands::*;
use super::{Dice, MODELS, any_extra};

/// Any part, in any state, reachable or not.
pub(super) fn any_part(dice: &mut Dice) -> Part {
    let id = PartId::from(dice.id("part-"));
    match dice.below(9) {
        0 => {
            let delivery = dice.pick(&[Delivery::Streamed, Delivery::Whole]);
            Part::Text(TextPart { id, content: dice.text(), delivery })
        }
        1 => Part::Reasoning { id, content: dice.text() },
        2 | 3 => Part::ToolCall(Box::new(any_call(dice))),
        4 => Part::Content(content(dice)),
        5 => Part::Error(error(dice)),
        6 => Part::Plan(plan(dice)),
        7 => Part::Notice(dice.text()),
        _ => Part::InputRequest(any_input_request(dice)),
    }
}

pub(super) fn any_call(dice: &mut Dice) -> ToolCall {
    let option = option("option-0".to_owned(), dice);
    ToolCall {
        id: ToolCallId::from(dice.id("call-")),
        name: "tool".into(),
        display_name: "Tool".into(),
        kind: dice.maybe(tool_kind),
        language: None,
        invocation_message: dice.text(),
        intention: dice.maybe(Dice::text),
        client: if dice.chance(25) { Some(client(dice)) } else { None },
        input: None,
        confirmed: dice.maybe(|dice| Confirmation {
            by: dice.pick(&[ConfirmationReason::NotNeeded, ConfirmationReason::Person, ConfirmationReason::Setting]),
            option: dice.maybe(|_| option.clone()),
        }),
        output: dice.maybe(output),
        status: match dice.below(9) {
            0 => ToolCallStatus::Streaming,
            1 => ToolCallStatus::Ready,
            2 | 7 | 8 => ToolCallStatus::PendingConfirmation(permission(RequestId::from(dice.id("request-")), dice)),
            3 => ToolCallStatus::Running,
            4 => ToolCallStatus::PendingResultConfirmation(result(dice)),
            5 => ToolCallStatus::Completed(result(dice)),
            _ => ToolCallStatus::Cancelled(Cancellation {
                reason: dice.pick(&[CancelReason::Denied, CancelReason::Skipped, CancelReason::ResultDenied]),
                option: dice.maybe(|_| option.clone()),
                extra: any_extra(dice),
            }),
        },
        ready_rank: dice.maybe(|dice| dice.below(3) as u32),
        announced: None,
        extra: any_extra(dice),
        running_since: None,
        ran_ms: dice.maybe(|dice| dice.below(100_000) as u64),
    }
}

pub(super) fn any_input_request(dice: &mut Dice) -> InputRequest {
    let request = input_request(RequestId::from(dice.id("request-")), dice);
    let outcome = dice.maybe(|dice| dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined]));
    InputRequest { answers: answers(dice), outcome, ..request }
}

pub(crate) fn message(dice: &mut Dice) -> Message {
    Message {
        text: dice.text(),
        attachments: (0..dice.below(3))
            .map(|_| Attachment {
                kind: dice.pick(&[AttachmentKind::File, AttachmentKind::Directory, AttachmentKind::Selection]),
                path: dice.text(),
                display_name: dice.maybe(Dice::text),
            })
            .collect(),
        origin: if dice.chance(95) { MessageOrigin::User } else { MessageOrigin::Automation },
        model: if dice.chance(10) { Some(model(dice)) } else { None },
        extra: any_extra(dice),
    }
}

pub(super) fn pending_message(id: PendingId, dice: &mut Dice) -> PendingMessage {
    PendingMessage { id, message: message(dice) }
}

pub(super) fn model(dice: &mut Dice) -> ModelId {
    ModelId::from(dice.pick(&[MODELS[0], MODELS[0], MODELS[1], MODELS[1], "unheard-of"]))
}

pub(super) fn new_call(id: ToolCallId, dice: &mut Dice) -> NewToolCall {
    NewToolCall {
        id,
        name: dice.text(),
        display_name: dice.text(),
        kind: dice.maybe(tool_kind),
        language: dice.maybe(Dice::text),
        client: if dice.chance(25) { Some(client(dice)) } else { None },
        extra: any_extra(dice),
    }
}

pub(super) fn tool_kind(dice: &mut Dice) -> ToolKind {
    dice.pick(&[
        ToolKind::Terminal,
        ToolKind::Terminal,
        ToolKind::Terminal,
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Move,
        ToolKind::Search,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::SwitchMode,
    ])
}

/// The start of a call, repeated; its agent may add or change data.
pub(super) fn as_it_began(call: &ToolCall, dice: &mut Dice) -> NewToolCall {
    NewToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        display_name: call.display_name.clone(),
        kind: call.kind,
        language: call.language.clone(),
        client: call.client.clone(),
        extra: any_extra(dice),
    }
}

/// A call with a new description.
pub(super) fn restated(call: NewToolCall, dice: &mut Dice) -> Box<InvocationUpdate> {
    Box::new(InvocationUpdate {
        call,
        invocation_message: dice.text(),
        input: dice.maybe(Dice::text),
        confirmed: dice.pick(&[ConfirmationReason::NotNeeded, ConfirmationReason::Person, ConfirmationReason::Setting]),
    })
}

pub(super) fn plan(dice: &mut Dice) -> Vec<PlanEntry> {
    let entry = |dice: &mut Dice| PlanEntry {
        content: dice.text(),
        priority: dice.pick(&[PlanPriority::High, PlanPriority::Medium, PlanPriority::Low]),
        status: dice.pick(&[PlanStatus::Pending, PlanStatus::InProgress, PlanStatus::Completed]),
    };
    (0..dice.below(4)).map(|_| entry(dice)).collect()
}

pub(super) fn permission_kind(dice: &mut Dice) -> PermissionKind {
    dice.pick(&[
        PermissionKind::Shell,
        PermissionKind::Write,
        PermissionKind::Mcp,
        PermissionKind::Read,
        PermissionKind::Url,
    ])
}

pub(super) fn option(id: String, dice: &mut Dice) -> PermissionOption {
    PermissionOption { id, label: dice.text(), allows: dice.chance(60), lasting: dice.chance(40) }
}

pub(super) fn permission(id: RequestId, dice: &mut Dice) -> PermissionRequest {
    PermissionRequest {
        id,
        kind: permission_kind(dice),
        path: dice.maybe(Dice::text),
        full_command_text: dice.maybe(Dice::text),
        intention: dice.maybe(Dice::text),
        title: dice.maybe(Dice::text),
        options: (0..dice.below(4)).map(|number| option(format!("option-{number}"), dice)).collect(),
        edits: edits(dice),
        editable: dice.chance(40),
    }
}

/// A question about a call, which sometimes describes the call differently than before.
pub(super) fn gated(call: ToolCallId, request: RequestId, dice: &mut Dice) -> Box<ToolCallGate> {
    Box::new(ToolCallGate {
        call,
        request: permission(request, dice),
        invocation_message: if dice.chance(30) { Some(dice.text()) } else { None },
        input: if dice.chance(30) { Some(dice.text()) } else { None },
        hook: dice.pick(&[None, Some(HookGate::Resolved), Some(HookGate::Asks)]),
    })
}

pub(super) fn result(dice: &mut Dice) -> ToolResult {
    ToolResult {
        success: dice.chance(70),
        past_tense_message: dice.text(),
        output: dice.maybe(Dice::text),
        attached: attached(dice),
        extra: any_extra(dice),
    }
}

pub(super) fn edits(dice: &mut Dice) -> Vec<FileChange> {
    let edit = |attached| match attached {
        ToolAttachment::Edit(change) => Some(change),
        ToolAttachment::Content(_) => None,
    };
    attached(dice).into_iter().filter_map(edit).collect()
}

pub(super) fn attached(dice: &mut Dice) -> Vec<ToolAttachment> {
    let one = |dice: &mut Dice| match dice.chance(50) {
        true => ToolAttachment::Content(content(dice)),
        false => ToolAttachment::Edit(FileChange {
            path: dice.pick(&["/project/a file.rs", "b.rs", "", "file:///c"]).to_owned(),
            before: dice.maybe(content),
            after: dice.maybe(content),
            added: dice.below(9) as u64,
            removed: dice.below(9) as u64,
        }),
    };
    if dice.chance(50) { Vec::new() } else { (0..=dice.below(2)).map(|_| one(dice)).collect() }
}

pub(super) fn output(dice: &mut Dice) -> ToolOutput {
    let piece = |dice: &mut Dice| match dice.chance(50) {
        true => dice.text().into(),
        false => serde_json::json!({"type": "text", "text": dice.text()}),
    };
    ToolOutput {
        text: dice.text(),
        pieces: dice.maybe(|dice| vec![piece(dice), piece(dice)]),
        attached: attached(dice),
    }
}

pub(super) fn usage(dice: &mut Dice) -> Usage {
    Usage {
        input_tokens: dice.maybe(|dice| dice.below(500) as u64),
        output_tokens: dice.maybe(|dice| dice.below(500) as u64),
        model: dice.maybe(model),
        cache_read_tokens: dice.maybe(|dice| dice.below(500) as u64),
        cache_write_tokens: dice.maybe(|dice| dice.below(500) as u64),
        reasoning_tokens: dice.maybe(|dice| dice.below(500) as u64),
        context: dice.maybe(|dice| ContextUsage { used: dice.below(500) as u64, size: 1_000 }),
        cost: dice.maybe(cost),
    }
}

pub(super) fn cost(dice: &mut Dice) -> Cost {
    let amounts = [Number::from(0), Number::from(7), Number::from(u64::MAX)];
    let fraction = Number::from_f64(dice.below(9_999) as f64 / 10_000.0);
    let amount = fraction.filter(|_| dice.chance(60)).unwrap_or_else(|| dice.pick(&amounts));
    Cost { amount, currency: dice.pick(&["USD", "USD", "EUR", ""]).to_owned() }
}

pub(super) fn content(dice: &mut Dice) -> ContentRef {
    ContentRef {
        id: ContentId::from(format!("sha-{}", dice.below(9))),
        size: dice.below(1 << 20) as u64,
        mime_type: dice.maybe(|_| "text/plain".to_owned()),
    }
}

pub(super) fn error(dice: &mut Dice) -> ErrorInfo {
    ErrorInfo { kind: "agent".into(), message: dice.text(), stack: dice.maybe(Dice::text) }
}

pub(super) fn question_id(dice: &mut Dice) -> QuestionId {
    QuestionId::from(dice.pick(&["question-0", "question-0", "question-1", "nonsense"]))
}

pub(super) fn input_request(id: RequestId, dice: &mut Dice) -> InputRequest {
    let questions = (0..dice.below(3)).map(|number| question(number, dice)).collect();
    InputRequest {
        message: dice.maybe(Dice::text),
        url: dice.maybe(Dice::text),
        questions,
        ..InputRequest::ask(id, "")
    }
}

pub(super) fn question(number: usize, dice: &mut Dice) -> Question {
    let options = || {
        let recommended = [true, false].into_iter();
        let choice = |recommended| Choice {
            id: format!("choice-{recommended}"),
            label: "This".into(),
            description: None,
            recommended,
        };
        recommended.map(choice).collect()
    };
    Question {
        id: QuestionId::from(format!("question-{number}")),
        title: dice.maybe(Dice::text),
        message: dice.text(),
        required: dice.chance(50),
        kind: match dice.below(5) {
            0 => QuestionKind::Text { format: None, min: None, max: Some(9), default: dice.maybe(Dice::text) },
            1 => QuestionKind::Number { whole: dice.chance(50), min: None, max: Some(9.into()), default: None },
            2 => QuestionKind::YesOrNo { default: dice.maybe(|dice| dice.chance(50)) },
            3 => QuestionKind::One { options: options(), freeform: dice.chance(50) },
            _ => QuestionKind::Several { options: options(), freeform: dice.chance(50), min: Some(1), max: None },
        },
    }
}

pub(super) fn answers(dice: &mut Dice) -> Answers {
    (0..dice.below(3)).map(|_| (question_id(dice), answer(dice))).collect()
}

pub(super) fn answer(dice: &mut Dice) -> Answer {
    let freeform = (0..dice.below(2)).map(|_| dice.text()).collect();
    let value = match dice.below(5) {
        0 => AnswerValue::Text(dice.text()),
        1 => AnswerValue::Number(Number::from(dice.below(9))),
        2 => AnswerValue::YesOrNo(dice.chance(50)),
        3 => AnswerValue::One { id: "choice-true".into(), freeform },
        _ => AnswerValue::Several { ids: vec!["choice-true".into(), "choice-false".into()], freeform },
    };
    match dice.below(4) {
        0 => Answer::Draft(value),
        1 => Answer::Skipped { freeform: vec![dice.text()] },
        _ => Answer::Submitted(value),
    }
}
