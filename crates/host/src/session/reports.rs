//! What an agent reports, as events of the session: the one place where the two vocabularies meet.
//!
//! | the agent says | the session sees |
//! |---|---|
//! | text, reasoning | a part where none is open, and a delta |
//! | a tool call starts | the call, its input still to come |
//! | a tool call is ready | ready and running; or ready, then gated by a question |
//! | a tool call completed | completed; a large output is stored first and named by a content part |
//! | a body | a whole text part; a large or binary one is stored and named by a content part |
//! | usage, a title, a question | the same |
//! | it has ended | the turn completed, or failed |

use bytes::Bytes;
use grove_agents::{AgentEvent, Body, PermissionAsked};
use grove_core::*;
use sha2::{Digest, Sha256};

use crate::config::Limits;

/// An agent's report in the session's words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Bodies to be stored before anything names them.
    pub(crate) store: Vec<(ContentId, Bytes)>,
    pub(crate) events: Vec<Reported>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    Chat(ChatEvent),
    Session(SessionEvent),
}

/// Translates a report. `active` is the running turn with everything reported so far.
pub(crate) fn translate(event: &mut AgentEvent, active: &ActiveTurn, limits: &Limits) -> Report {
    let turn = active.id.clone();
    let mut report = Report::default();
    match event {
        AgentEvent::Text { content, .. } => {
            let content = std::mem::take(content);
            let open = active.parts().last().and_then(|part| match part {
                Part::Text(text) if text.delivery == Delivery::Streamed => Some(text.id.clone()),
                _ => None,
            });
            let part = open.unwrap_or_else(|| {
                let id = next_part_id(active);
                let text = TextPart { id: id.clone(), content: String::new(), delivery: Delivery::Streamed };
                report.chat(ChatEvent::PartAdded { turn: turn.clone(), part: Part::Text(text) });
                id
            });
            report.chat(ChatEvent::TextDelta { turn, part, content });
        }
        AgentEvent::Reasoning { content, .. } => {
            let content = std::mem::take(content);
            let open = active.parts().last().and_then(|part| match part {
                Part::Reasoning { id, .. } => Some(id.clone()),
                _ => None,
            });
            let part = open.unwrap_or_else(|| {
                let id = next_part_id(active);
                let part = Part::Reasoning { id: id.clone(), content: String::new() };
                report.chat(ChatEvent::PartAdded { turn: turn.clone(), part });
                id
            });
            report.chat(ChatEvent::ReasoningDelta { turn, part, content });
        }
        AgentEvent::ToolStarted { call, .. } => report.chat(ChatEvent::ToolCallStarted { turn, call: call.clone() }),
        AgentEvent::ToolReady { call, invocation_message, input, permission, .. } => {
            let Some(begun) = active.tool_call(call) else { return report };
            report.chat(ChatEvent::ToolCallReady {
                turn: turn.clone(),
                call: NewToolCall {
                    id: begun.id.clone(),
                    name: begun.name.clone(),
                    display_name: begun.display_name.clone(),
                    kind: begun.kind,
                    language: begun.language.clone(),
                    client: begun.client.clone(),
                },
                invocation_message: invocation_message.clone(),
                input: input.clone().or_else(|| begun.input.clone()),
                gate: if permission.is_some() { Gate::Follows } else { Gate::None },
            });
            if let Some(PermissionAsked { request, .. }) = permission {
                let gated = Gated {
                    call: call.clone(),
                    request: request.clone(),
                    invocation_message: Some(invocation_message.clone()),
                    input: input.clone().or_else(|| begun.input.clone()),
                };
                report.chat(ChatEvent::ToolCallGated { turn, gated: Box::new(gated) });
            }
        }
        AgentEvent::ToolCompleted { call, result, .. } => {
            let mut result = result.clone();
            if let Some(output) = result.output.take_if(|output| output.len() > limits.inline_bytes) {
                result.output = Some(beginning(&output, limits.preview_bytes).to_owned());
                report.content(&turn, Bytes::from(output), Some("text/plain".to_owned()));
            }
            report.chat(ChatEvent::ToolCallCompleted { turn, call: call.clone(), result });
        }
        AgentEvent::Body { mime_type, body, .. } => match std::mem::replace(body, Body::Bytes(Vec::new())) {
            Body::Text(content) if content.len() <= limits.inline_bytes => {
                let text = TextPart { id: next_part_id(active), content, delivery: Delivery::Whole };
                report.chat(ChatEvent::PartAdded { turn, part: Part::Text(text) });
            }
            Body::Text(content) => report.content(&turn, Bytes::from(content), Some(mime_type.clone())),
            Body::Bytes(bytes) => report.content(&turn, Bytes::from(bytes), Some(mime_type.clone())),
        },
        AgentEvent::Usage { usage, .. } => report.chat(ChatEvent::UsageReported { turn, usage: usage.clone() }),
        AgentEvent::Title { title, .. } => {
            report.events.push(Reported::Session(SessionEvent::TitleChanged(std::mem::take(title))));
        }
        AgentEvent::Asked { request, .. } => {
            report.chat(ChatEvent::InputRequested { turn, request: request.clone() });
        }
        AgentEvent::Ended { result: Ok(()), .. } => report.chat(ChatEvent::TurnCompleted { turn, duration: None }),
        AgentEvent::Ended { result: Err(error), .. } => {
            report.chat(ChatEvent::TurnFailed { turn, duration: None, error: error.clone() });
        }
    }
    report
}

impl Report {
    fn chat(&mut self, event: ChatEvent) {
        self.events.push(Reported::Chat(event));
    }

    fn content(&mut self, turn: &TurnId, bytes: Bytes, mime_type: Option<String>) {
        let id = ContentId::from(hex::encode(Sha256::digest(&bytes)));
        let content = ContentRef { id: id.clone(), size: bytes.len() as u64, mime_type };
        self.chat(ChatEvent::PartAdded { turn: turn.clone(), part: Part::Content(content) });
        self.store.push((id, bytes));
    }
}

/// Parts are numbered by their place in the turn.
fn next_part_id(active: &ActiveTurn) -> PartId {
    format!("part-{}", active.parts().len()).into()
}

/// At most `bytes` of the text, cut between characters.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = "t";

    /// A turn in which these parts have been.
    fn turn_with(events: Vec<ChatEvent>) -> ActiveTurn {
        let new = NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            provider: "scripted".into(),
            model: None,
            working_directories: vec![],
            config: None,
        };
        let mut session = Session::new(&new, Timestamp(0));
        let started =
            ChatEvent::TurnStarted { turn: TURN.into(), message: Message::user(""), started_at: None, queued: None };
        for event in std::iter::once(started).chain(events) {
            let change = Change::Chat("s".into(), Session::MAIN_CHAT.into(), event);
            session.apply(&Event { at: Timestamp(0), change });
        }
        *session.chats.remove(0).active.unwrap()
    }

    /// What a report comes to, in short.
    fn names(mut event: AgentEvent, active: &ActiveTurn) -> String {
        let report = translate(&mut event, active, &Limits::default());
        let events = report.events.iter().map(|event| match event {
            Reported::Chat(event) => format!("{event:?}"),
            Reported::Session(event) => format!("{event:?}"),
        });
        let stored = report.store.iter().map(|(_, bytes)| format!("Stored({})", bytes.len()));
        let short = |text: String| text.split([' ', '(']).next().unwrap_or_default().to_owned();
        stored.chain(events.map(short)).collect::<Vec<_>>().join(", ")
    }

    fn call(id: &str) -> NewToolCall {
        NewToolCall {
            id: id.into(),
            name: "n".into(),
            display_name: "n".into(),
            kind: None,
            language: None,
            client: None,
        }
    }

    fn result(output: Option<String>) -> ToolResult {
        ToolResult { success: true, past_tense_message: String::new(), output, extra: None }
    }

    #[test]
    fn every_report_has_its_events() {
        let turn = || TurnId::from(TURN);
        let empty = turn_with(vec![]);
        let text = || AgentEvent::Text { turn: turn(), content: "a".into() };
        let reasoning = || AgentEvent::Reasoning { turn: turn(), content: "a".into() };
        assert_eq!(names(text(), &empty), "PartAdded, TextDelta");
        assert_eq!(names(reasoning(), &empty), "PartAdded, ReasoningDelta");
        let streaming = TextPart { id: "p".into(), content: String::new(), delivery: Delivery::Streamed };
        let speaking = turn_with(vec![ChatEvent::PartAdded { turn: turn(), part: Part::Text(streaming) }]);
        assert_eq!(names(text(), &speaking), "TextDelta", "an open part goes on");
        assert_eq!(names(reasoning(), &speaking), "PartAdded, ReasoningDelta");

        assert_eq!(names(AgentEvent::ToolStarted { turn: turn(), call: call("c") }, &empty), "ToolCallStarted");
        let calling = turn_with(vec![ChatEvent::ToolCallStarted { turn: turn(), call: call("c") }]);
        let ready = |permission| AgentEvent::ToolReady {
            turn: turn(),
            call: "c".into(),
            invocation_message: String::new(),
            input: None,
            permission,
            result: None,
        };
        assert_eq!(names(ready(None), &calling), "ToolCallReady");
        let request = PermissionRequest {
            id: "r".into(),
            kind: PermissionKind::Shell,
            path: None,
            full_command_text: None,
            intention: None,
            title: None,
            options: vec![],
            editable: false,
        };
        let asked = PermissionAsked { request, answer: tokio::sync::oneshot::channel().0 };
        assert_eq!(names(ready(Some(asked)), &calling), "ToolCallReady, ToolCallGated");
        assert_eq!(names(ready(None), &empty), "", "a call that never started");

        let done = |output| AgentEvent::ToolCompleted { turn: turn(), call: "c".into(), result: result(output) };
        assert_eq!(names(done(Some("x".into())), &calling), "ToolCallCompleted");
        let large = "x".repeat(65_537);
        assert_eq!(names(done(Some(large.clone())), &calling), "Stored(65537), PartAdded, ToolCallCompleted");

        let body = |body| AgentEvent::Body { turn: turn(), mime_type: "text/plain".into(), body };
        assert_eq!(names(body(Body::Text("x".into())), &empty), "PartAdded");
        assert_eq!(names(body(Body::Text(large)), &empty), "Stored(65537), PartAdded");
        assert_eq!(names(body(Body::Bytes(vec![0])), &empty), "Stored(1), PartAdded");

        assert_eq!(names(AgentEvent::Usage { turn: turn(), usage: Usage::default() }, &empty), "UsageReported");
        assert_eq!(names(AgentEvent::Title { turn: turn(), title: "x".into() }, &empty), "TitleChanged");
        let answer = tokio::sync::oneshot::channel().0;
        let asked = AgentEvent::Asked { turn: turn(), request: Box::new(InputRequest::ask("r".into(), "?")), answer };
        assert_eq!(names(asked, &empty), "InputRequested");
        assert_eq!(names(AgentEvent::Ended { turn: turn(), result: Ok(()) }, &empty), "TurnCompleted");
        let failed = Err(ErrorInfo::new("a", "b"));
        assert_eq!(names(AgentEvent::Ended { turn: turn(), result: failed }, &empty), "TurnFailed");
    }

    #[test]
    fn a_preview_is_cut_between_characters() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", 3), "aé");
        assert_eq!(beginning("a", 9), "a");
    }
}
