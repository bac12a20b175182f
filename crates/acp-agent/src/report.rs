//! The reported part of a chat, and the updates that are due.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{
    ActiveTurn, ChatState, ContentRef, ErrorInfo, Message, MessageAttachment, ResponsePart, Turn, TurnState, UsageInfo,
};
use serde_json::Value;

use crate::capabilities::EditorCapabilities;
use crate::tool_call::{self, CallDraft};

/// The turns whose ids are remembered, to find the new ones behind them.
const REMEMBERED_TURNS: usize = 512;
/// The longest text of one update.
const CHUNK_BYTES: usize = 64 << 10;

/// The reported part of a chat.
#[derive(Debug, Default)]
pub(crate) struct ReportedChat {
    ended: VecDeque<String>,
    /// The turn that is not told to its end.
    open: Option<ReportedTurn>,
    usage: Option<acp::UsageUpdate>,
}

#[derive(Debug, Default)]
struct ReportedTurn {
    id: String,
    parts: Vec<ReportedPart>,
}

#[derive(Debug)]
enum ReportedPart {
    /// The bytes that were told.
    Text(usize),
    Call(Box<CallDraft>),
    /// It does not change any more.
    Whole,
}

/// An update that is due. Some need contents first.
#[derive(Debug)]
pub(crate) enum DueUpdate {
    Ready(acp::SessionUpdate),
    NewCall(CallDraft),
    ChangedCall { told: Box<CallDraft>, now: CallDraft },
    Stored(ContentRef),
    Notice(String),
}

/// The updates that are due, and the turns that ended.
#[derive(Debug, Default)]
pub(crate) struct ChatReport {
    pub(crate) updates: Vec<DueUpdate>,
    pub(crate) ended: Vec<ReportedEnd>,
}

/// The end of a turn.
#[derive(Clone, Debug)]
pub(crate) struct ReportedEnd {
    pub(crate) turn: String,
    pub(crate) outcome: ReportedOutcome,
    pub(crate) usage: Option<UsageInfo>,
}

#[derive(Clone, Debug)]
pub(crate) enum ReportedOutcome {
    Complete,
    Cancelled,
    Failed(ErrorInfo),
}

/// A turn, finished or not.
struct TurnView<'a> {
    id: &'a str,
    message: &'a Message,
    parts: &'a [ResponsePart],
    usage: Option<&'a UsageInfo>,
}

impl<'a> From<&'a Turn> for TurnView<'a> {
    fn from(turn: &'a Turn) -> Self {
        Self { id: &turn.id, message: &turn.message, parts: &turn.response_parts, usage: turn.usage.as_ref() }
    }
}

impl<'a> From<&'a ActiveTurn> for TurnView<'a> {
    fn from(turn: &'a ActiveTurn) -> Self {
        Self { id: &turn.id, message: &turn.message, parts: &turn.response_parts, usage: turn.usage.as_ref() }
    }
}

impl ReportedChat {
    /// Counts everything in the chat as told.
    pub(crate) fn skip(&mut self, chat: &ChatState) {
        self.advance(chat, |_| false);
    }

    /// The updates since the last call. `is_own` says whether this editor sent the prompt of a turn, and shows it.
    pub(crate) fn advance(&mut self, chat: &ChatState, is_own: impl Fn(&str) -> bool) -> ChatReport {
        let mut report = ChatReport::default();
        if chat.turns.is_empty() {
            self.ended.clear();
        }
        let told = chat.turns.iter().rposition(|turn| self.ended.contains(&turn.id));
        // Without a known turn the chat is new, or went back to before everything that was told.
        let new = told.map_or(0, |told| told + 1);
        let is_rewound = told.is_none() && !self.ended.is_empty() && self.open.is_none();
        for turn in chat.turns.iter().skip(new) {
            if !is_rewound {
                self.turn(&TurnView::from(turn), is_own(&turn.id), &mut report);
                let end = ReportedEnd::of(turn);
                if let ReportedOutcome::Failed(error) = &end.outcome
                    && !is_own(&turn.id)
                {
                    report.updates.push(DueUpdate::Ready(text(&turn.id, &format!("Error: {}", error.message))));
                }
                report.ended.push(end);
            }
            self.end(&turn.id);
        }
        if let Some(active) = &chat.active_turn {
            self.turn(&TurnView::from(active), is_own(&active.id), &mut report);
        }
        report
    }

    fn turn(&mut self, turn: &TurnView<'_>, is_own: bool, report: &mut ChatReport) {
        let mut open = match self.open.take() {
            Some(open) if open.id == turn.id => open,
            Some(_) | None => {
                if !is_own {
                    report.updates.extend(user_message(turn.id, turn.message));
                }
                ReportedTurn { id: turn.id.to_owned(), parts: Vec::new() }
            }
        };
        for (at, part) in turn.parts.iter().enumerate() {
            let now = due(turn.id, part, open.parts.get(at), &mut report.updates);
            match (open.parts.get_mut(at), now) {
                (Some(told), Some(now)) => *told = now,
                (Some(_), None) => {}
                // Each part has its place, also one that nothing is told of.
                (None, now) => open.parts.push(now.unwrap_or(ReportedPart::Whole)),
            }
        }
        if let Some(usage) = turn.usage.and_then(usage_update)
            && self.usage.as_ref() != Some(&usage)
        {
            self.usage = Some(usage.clone());
            report.updates.push(DueUpdate::Ready(acp::SessionUpdate::UsageUpdate(usage)));
        }
        self.open = Some(open);
    }

    fn end(&mut self, turn: &str) {
        self.open = None;
        if self.ended.len() >= REMEMBERED_TURNS {
            self.ended.pop_front();
        }
        self.ended.push_back(turn.to_owned());
    }
}

impl ReportedEnd {
    fn of(turn: &Turn) -> Self {
        let outcome = match turn.state {
            TurnState::Complete => ReportedOutcome::Complete,
            TurnState::Cancelled => ReportedOutcome::Cancelled,
            TurnState::Error => {
                let error = turn.response_parts.iter().rev().find_map(|part| match part {
                    ResponsePart::Error(error) => Some(error.error.clone()),
                    _ => None,
                });
                ReportedOutcome::Failed(error.unwrap_or_default())
            }
        };
        Self { turn: turn.id.clone(), outcome, usage: turn.usage.clone() }
    }
}

/// The updates of a part since it was told. Returns what is told now, if that changed.
fn due(
    turn: &str,
    part: &ResponsePart,
    told: Option<&ReportedPart>,
    updates: &mut Vec<DueUpdate>,
) -> Option<ReportedPart> {
    // The id of a part is unique in its turn only.
    let message = |part: &str| format!("{turn}/{part}");
    let told_bytes = match told {
        Some(ReportedPart::Text(bytes)) => *bytes,
        Some(_) | None => 0,
    };
    match (part, told) {
        (ResponsePart::Markdown(markdown), _) => {
            let id = message(&markdown.id);
            let new = markdown.content.get(told_bytes..).filter(|new| !new.is_empty());
            updates.extend(new.into_iter().flat_map(pieces).map(|new| DueUpdate::Ready(text(&id, new))));
            Some(ReportedPart::Text(markdown.content.len()))
        }
        (ResponsePart::Reasoning(reasoning), _) => {
            let new = reasoning.content.get(told_bytes..).filter(|new| !new.is_empty());
            let id = message(&reasoning.id);
            let chunk = |new| acp::SessionUpdate::AgentThoughtChunk(chunk(&id, new));
            updates.extend(new.into_iter().flat_map(pieces).map(|new| DueUpdate::Ready(chunk(new))));
            Some(ReportedPart::Text(reasoning.content.len()))
        }
        (_, Some(ReportedPart::Whole)) => None,
        (ResponsePart::ToolCall(call), told) => {
            let mut now = tool_call::draft(&call.tool_call)?;
            if let Some(ReportedPart::Call(told)) = told {
                now.is_command = told.is_command;
            }
            match told {
                Some(ReportedPart::Call(told)) if **told == now => {}
                Some(ReportedPart::Call(told)) => {
                    updates.push(DueUpdate::ChangedCall { told: told.clone(), now: now.clone() });
                }
                Some(_) | None => updates.push(DueUpdate::NewCall(now.clone())),
            }
            Some(match tool_call::is_final(&call.tool_call) {
                true => ReportedPart::Whole,
                false => ReportedPart::Call(Box::new(now)),
            })
        }
        (ResponsePart::ContentRef(stored), _) => {
            updates.push(DueUpdate::Stored(stored.clone()));
            Some(ReportedPart::Whole)
        }
        (ResponsePart::SystemNotification(notice), _) => {
            let plan = notice.meta.as_ref().and_then(|meta| plan(meta.get("plan")?));
            updates.push(match plan {
                Some(plan) => DueUpdate::Ready(acp::SessionUpdate::Plan(plan)),
                None => DueUpdate::Notice(notice.content.text().to_owned()),
            });
            Some(ReportedPart::Whole)
        }
        // A question is asked, and an error ends the turn.
        (ResponsePart::InputRequest(_) | ResponsePart::Error(_) | ResponsePart::Unknown(_), _) => {
            Some(ReportedPart::Whole)
        }
    }
}

/// The user's message of another client.
fn user_message<'a>(turn: &'a str, message: &'a Message) -> impl Iterator<Item = DueUpdate> + 'a {
    let block = move |block| {
        let id = acp::MessageId::new(turn);
        DueUpdate::Ready(acp::SessionUpdate::UserMessageChunk(acp::ContentChunk::new(block).message_id(Some(id))))
    };
    let attached = message.attachments.iter().flatten().filter_map(|attachment| match attachment {
        MessageAttachment::Resource(resource) => {
            Some(acp::ContentBlock::ResourceLink(acp::ResourceLink::new(resource.label.clone(), resource.uri.clone())))
        }
        MessageAttachment::EmbeddedResource(embedded) if embedded.content_type.starts_with("image/") => {
            let image = acp::ImageContent::new(embedded.data.clone(), embedded.content_type.clone());
            Some(acp::ContentBlock::Image(image))
        }
        _ => None,
    });
    let texts = pieces(&message.text).map(acp::ContentBlock::from);
    texts.chain(attached).map(block)
}

fn chunk(message: &str, text: &str) -> acp::ContentChunk {
    acp::ContentChunk::new(acp::ContentBlock::from(text)).message_id(Some(acp::MessageId::new(message)))
}

/// A notice of Grove, for an editor with notices or without.
pub(crate) fn notice(editor: EditorCapabilities, text: String) -> acp::SessionUpdate {
    if editor.notices {
        return acp::SessionUpdate::Notice(acp::Notice::new(acp::NoticeSeverity::Info, text));
    }
    let block = acp::ContentBlock::from(format!("\n\n{text}\n\n"));
    acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(block))
}

/// Text of the agent.
fn text(message: &str, text: &str) -> acp::SessionUpdate {
    acp::SessionUpdate::AgentMessageChunk(chunk(message, text))
}

/// A text in pieces of bounded length.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        rest = tail;
        Some(piece)
    })
}

fn plan(entries: &Value) -> Option<acp::Plan> {
    let entry = |entry: &Value| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let priority = match text("priority") {
            Some("high") => acp::PlanEntryPriority::High,
            Some("low") => acp::PlanEntryPriority::Low,
            Some(_) | None => acp::PlanEntryPriority::Medium,
        };
        let status = match text("status") {
            Some("completed") => acp::PlanEntryStatus::Completed,
            Some("inProgress") => acp::PlanEntryStatus::InProgress,
            Some(_) | None => acp::PlanEntryStatus::Pending,
        };
        Some(acp::PlanEntry::new(text("content")?, priority, status))
    };
    Some(acp::Plan::new(entries.as_array()?.iter().filter_map(entry).collect()))
}

/// The used part of the context window, if the agent told it.
fn usage_update(usage: &UsageInfo) -> Option<acp::UsageUpdate> {
    let meta = usage.meta.as_ref()?;
    let context = meta.get("context")?;
    let cost = meta
        .get("cost")
        .and_then(|cost| Some(acp::Cost::new(cost.get("amount")?.as_f64()?, cost.get("currency")?.as_str()?)));
    Some(acp::UsageUpdate::new(context.get("used")?.as_u64()?, context.get("size")?.as_u64()?).cost(cost))
}

#[cfg(test)]
mod tests;
