//! Translation of an agent's reports into events of the session.
//!
//! | report of the agent | events of the session |
//! |---|---|
//! | text, reasoning | a part if none is open, or for another message, and a delta |
//! | a tool call starts | the call, its input still to come |
//! | a tool call is ready | ready and running; or ready, then gated by a permission request |
//! | a tool call completed | completed; a large output is stored first and named by a content part |
//! | an update of a tool call | each of these that is new: see `tool` |
//! | a body | a whole text part; a large or binary one is stored and named by a content part |
//! | a plan, a notice | a part |
//! | usage | the usage known so far |
//! | an activity | the same, until the next report |
//! | a title, commands, settings, its id of the chat | the same, if it has changed |
//! | a question | the same |
//! | the end | the turn completed, or failed |

mod intake;
mod tool;

use bytes::Bytes;
use grove_agents::{AgentEvent, PartContent, PermissionPrompt};
use grove_core::*;
use sha2::{Digest, Sha256};

use crate::config::Limits;

/// The commands of an agent that are shown; further ones are left out.
pub const MAX_COMMANDS: usize = 1_000;

/// An agent's report as events of the session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportTranslation {
    /// Bodies to be stored before anything names them.
    pub(crate) store: Vec<(ContentId, Bytes)>,
    pub(crate) commands: Vec<Command>,
}

/// The context of a report: the session with everything reported so far, and one of its chats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportContext<'a> {
    pub(crate) session: &'a Session,
    pub(crate) chat: &'a Chat,
    pub(crate) limits: &'a Limits,
}

/// Translates a report about the running turn.
pub(crate) fn in_turn(event: &mut AgentEvent, active: &ActiveTurn, place: ReportContext<'_>) -> ReportTranslation {
    let turn = active.id.clone();
    let limits = place.limits;
    let mut out = ReportTranslator::at(place);
    match event {
        AgentEvent::Text(content) => out.text(active, None, std::mem::take(content)),
        AgentEvent::Reasoning(content) => out.reasoning(active, None, std::mem::take(content)),
        AgentEvent::MessageText(chunk) => {
            out.text(active, Some(&chunk.message), std::mem::take(&mut chunk.content));
        }
        AgentEvent::MessageReasoning(chunk) => {
            out.reasoning(active, Some(&chunk.message), std::mem::take(&mut chunk.content));
        }
        AgentEvent::ToolStarted(call) => out.chat(ChatEvent::ToolCallStarted { turn, call: call.clone() }),
        AgentEvent::ToolReady { call, invocation_message, input, permission, .. } => {
            let Some(begun) = active.tool_call(call) else { return out.translated };
            out.chat(ChatEvent::ToolCallReady {
                turn: turn.clone(),
                call: begun.names(),
                invocation_message: invocation_message.clone(),
                input: input.clone().or_else(|| begun.input.clone()),
                gate: if permission.is_some() { Gate::Follows } else { Gate::None },
            });
            if let Some(PermissionPrompt { request, asks, .. }) = permission {
                let gated = ToolCallGate {
                    hook: asks.hook_gate(),
                    call: call.clone(),
                    request: request.clone(),
                    invocation_message: Some(invocation_message.clone()),
                    input: input.clone().or_else(|| begun.input.clone()),
                };
                out.chat(ChatEvent::ToolCallGated { turn, gated: Box::new(gated) });
            }
        }
        AgentEvent::ToolCompleted { call, result } => {
            let result = out.bounded(&turn, result.clone());
            out.chat(ChatEvent::ToolCallCompleted { turn, call: call.clone(), result, run: None });
        }
        AgentEvent::Tool(update) => tool::upsert(update, active, &mut out),
        AgentEvent::PartContent { mime_type, body } => match std::mem::replace(body, PartContent::Bytes(Vec::new())) {
            PartContent::Text(content) if content.len() <= limits.inline_bytes => {
                let text = TextPart { id: next_part_id(active), content, delivery: Delivery::Whole };
                out.part(&turn, Part::Text(text));
            }
            PartContent::Text(content) => out.content_part(&turn, Bytes::from(content), Some(mime_type.clone())),
            PartContent::Bytes(bytes) => out.content_part(&turn, Bytes::from(bytes), Some(mime_type.clone())),
        },
        AgentEvent::Plan(entries) => {
            let newest = active.parts().iter().rev().find_map(|part| match part {
                Part::Plan(entries) => Some(entries),
                _ => None,
            });
            if newest != Some(&*entries) {
                out.part(&turn, Part::Plan(std::mem::take(entries)));
            }
        }
        AgentEvent::Notice(notice) => out.part(&turn, Part::Notice(std::mem::take(notice))),
        AgentEvent::Usage(usage) => {
            let known = active.usage.clone().unwrap_or_default();
            let usage = known.updated(std::mem::take(usage));
            if active.usage.as_ref() != Some(&usage) {
                out.chat(ChatEvent::UsageReported { turn, usage });
            }
        }
        AgentEvent::CallUsage(call) => {
            let usage = active.usage.clone().unwrap_or_default().added(std::mem::take(call));
            out.chat(ChatEvent::UsageReported { turn, usage });
        }
        AgentEvent::Activity(activity) => {
            if place.chat.activity != *activity {
                out.chat(ChatEvent::ActivityChanged(std::mem::take(activity)));
            }
        }
        AgentEvent::InputNeeded { request, .. } => {
            out.chat(ChatEvent::InputRequested { turn, request: request.clone() })
        }
        AgentEvent::Ended(Ok(())) => out.chat(ChatEvent::TurnCompleted { turn, duration: None }),
        AgentEvent::Ended(Err(error)) => {
            out.chat(ChatEvent::TurnFailed { turn, duration: None, error: error.clone() });
        }
        AgentEvent::Title(_)
        | AgentEvent::Commands(_)
        | AgentEvent::AgentSettings { .. }
        | AgentEvent::AgentSessionId(_) => {
            return of_session(event, place);
        }
    }
    out.translated
}

/// Translates a report about the session as a whole. Reports about a turn give nothing here.
pub(crate) fn of_session(event: &mut AgentEvent, place: ReportContext<'_>) -> ReportTranslation {
    let ReportContext { session, chat, .. } = place;
    let mut out = ReportTranslator::at(place);
    match event {
        // The main chat has its session's name; the others have only their own.
        AgentEvent::Title(title) if chat.id.as_str() == Session::MAIN_CHAT => {
            out.session(SessionEvent::TitleChanged(SessionTitle::new(title, TitleSource::Agent)));
        }
        AgentEvent::Commands(commands) => {
            commands.truncate(MAX_COMMANDS);
            if session.details.commands != *commands {
                let details = SessionDetails { commands: std::mem::take(commands), ..session.details.clone() };
                out.session(SessionEvent::DetailsChanged(Box::new(details)));
            }
        }
        AgentEvent::AgentSettings { schema, values } => {
            if session.details.settings.as_ref() != Some(&*schema) {
                let details = SessionDetails { settings: Some(std::mem::take(schema)), ..session.details.clone() };
                out.session(SessionEvent::DetailsChanged(Box::new(details)));
            }
            if session.config.as_ref().is_some_and(|config| config.values != *values) {
                out.session(SessionEvent::ConfigChanged { values: std::mem::take(values), replace: true });
            }
        }
        AgentEvent::AgentSessionId(name) if chat.agent_session.as_ref() != Some(&*name) => {
            out.chat(ChatEvent::AgentSessionChanged(Some(std::mem::take(name))));
        }
        _ => {}
    }
    out.translated
}

/// A translation in progress.
struct ReportTranslator<'a> {
    place: ReportContext<'a>,
    translated: ReportTranslation,
}

impl<'a> ReportTranslator<'a> {
    fn at(place: ReportContext<'a>) -> Self {
        Self { place, translated: ReportTranslation::default() }
    }

    fn command(&mut self, command: Command) {
        self.translated.commands.push(command);
    }

    fn chat(&mut self, event: ChatEvent) {
        self.command(Command::Agent(EventReport::Chat { chat: self.place.chat.id.clone(), event }));
    }

    fn session(&mut self, event: SessionEvent) {
        self.command(Command::Agent(EventReport::Session(event)));
    }

    fn part(&mut self, turn: &TurnId, part: Part) {
        self.chat(ChatEvent::PartAdded { turn: turn.clone(), part });
    }

    /// Adds a body to be stored, and returns its reference.
    fn content(&mut self, bytes: Bytes, mime_type: Option<String>) -> ContentRef {
        let id = ContentId::from(hex::encode(Sha256::digest(&bytes)));
        let content = ContentRef { id: id.clone(), size: bytes.len() as u64, mime_type };
        self.translated.store.push((id, bytes));
        content
    }

    /// Adds text to the open part, or to a new one: after something else, and for another message.
    fn text(&mut self, active: &ActiveTurn, message: Option<&str>, content: String) {
        let open = active.parts().last().and_then(|part| match part {
            Part::Text(text) if text.delivery == Delivery::Streamed => Some(&text.id),
            _ => None,
        });
        let part = open.filter(|open| is_of_message(open, message)).cloned().unwrap_or_else(|| {
            let id = next_part_id_of(active, message);
            let text = TextPart { id: id.clone(), content: String::new(), delivery: Delivery::Streamed };
            self.part(&active.id, Part::Text(text));
            id
        });
        self.chat(ChatEvent::TextDelta { turn: active.id.clone(), part, content });
    }

    fn reasoning(&mut self, active: &ActiveTurn, message: Option<&str>, content: String) {
        let open = active.parts().last().and_then(|part| match part {
            Part::Reasoning { id, .. } => Some(id),
            _ => None,
        });
        let part = open.filter(|open| is_of_message(open, message)).cloned().unwrap_or_else(|| {
            let id = next_part_id_of(active, message);
            self.part(&active.id, Part::Reasoning { id: id.clone(), content: String::new() });
            id
        });
        self.chat(ChatEvent::ReasoningDelta { turn: active.id.clone(), part, content });
    }

    fn content_part(&mut self, turn: &TurnId, bytes: Bytes, mime_type: Option<String>) {
        let content = self.content(bytes, mime_type);
        self.part(turn, Part::Content(content));
    }

    /// Bounds a result's output to what the state may hold: the whole is stored.
    fn bounded(&mut self, turn: &TurnId, mut result: ToolResult) -> ToolResult {
        let limits = self.place.limits;
        if let Some(output) = result.output.take_if(|output| output.len() > limits.inline_bytes) {
            result.output = Some(beginning(&output, limits.preview_bytes).to_owned());
            self.content_part(turn, Bytes::from(output), Some("text/plain".to_owned()));
        }
        result
    }
}

/// Parts are numbered by their position in the turn.
fn next_part_id(active: &ActiveTurn) -> PartId {
    format!("part-{}", active.parts().len()).into()
}

/// The id of a part that streams a message. It ends with a hash of the message's id, so that a host that comes back knows
/// to which message an open part belongs.
fn next_part_id_of(active: &ActiveTurn, message: Option<&str>) -> PartId {
    match message {
        Some(message) => format!("{}.{}", next_part_id(active), message_tag(message)).into(),
        None => next_part_id(active),
    }
}

/// Returns whether an open part takes more of a message. Text without a message continues any part.
fn is_of_message(part: &PartId, message: Option<&str>) -> bool {
    let tag = part.as_str().split_once('.').map(|(_, tag)| tag);
    message.is_none_or(|message| tag == Some(message_tag(message).as_str()))
}

fn message_tag(message: &str) -> String {
    hex::encode(&Sha256::digest(message)[..4])
}

/// At most `bytes` of the text, cut between characters.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
pub(super) mod tests {
    use grove_agents::MessageChunk;

    use super::*;

    pub(in crate::session) const TURN: &str = "t";

    /// A session with these events in its turn.
    pub(in crate::session) fn session_with(events: Vec<ChatEvent>) -> Session {
        let new = NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            agent: "scripted".into(),
            model: None,
            working_directories: vec![],
            config: None,
            store: StoreName::default(),
        };
        let mut session = Session::new(&new, Timestamp(0));
        let started =
            ChatEvent::TurnStarted { turn: TURN.into(), message: Message::user(""), started_at: None, queued: None };
        for event in std::iter::once(started).chain(events) {
            let change = Change::Chat("s".into(), Session::MAIN_CHAT.into(), event);
            session.apply(&Event { at: Timestamp(0), change });
        }
        session
    }

    /// The translation of a report, in short.
    pub(super) fn names(event: AgentEvent, session: &Session) -> String {
        let report = translated(event, session);
        let events = report.commands.iter().map(|command| match command {
            Command::Agent(EventReport::Chat { event, .. }) => format!("{event:?}"),
            Command::Agent(EventReport::Session(event)) => format!("{event:?}"),
            Command::Host(HostCommand::AsClient(command)) => format!("{command:?}"),
            command => format!("{command:?}"),
        });
        let stored = report.store.iter().map(|(_, bytes)| format!("Stored({})", bytes.len()));
        let short = |text: String| text.split([' ', '(']).next().unwrap_or_default().to_owned();
        stored.chain(events.map(short)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn translated(mut event: AgentEvent, session: &Session) -> ReportTranslation {
        let chat = &session.chats[0];
        let place = ReportContext { session, chat, limits: &Limits::default() };
        in_turn(&mut event, chat.active.as_ref().unwrap(), place)
    }

    fn call(id: &str) -> NewToolCall {
        NewToolCall {
            id: id.into(),
            name: "n".into(),
            display_name: "n".into(),
            kind: None,
            language: None,
            client: None,
            extra: None,
        }
    }

    fn result(output: Option<String>) -> ToolResult {
        ToolResult { success: true, past_tense_message: String::new(), output, attached: vec![], extra: None }
    }

    #[test]
    fn every_report_has_its_events() {
        let turn = || TurnId::from(TURN);
        let empty = session_with(vec![]);
        let text = || AgentEvent::Text("a".into());
        let reasoning = || AgentEvent::Reasoning("a".into());
        assert_eq!(names(text(), &empty), "PartAdded, TextDelta");
        assert_eq!(names(reasoning(), &empty), "PartAdded, ReasoningDelta");
        let streaming = TextPart { id: "p".into(), content: String::new(), delivery: Delivery::Streamed };
        let speaking = session_with(vec![ChatEvent::PartAdded { turn: turn(), part: Part::Text(streaming) }]);
        assert_eq!(names(text(), &speaking), "TextDelta", "an open part goes on");
        assert_eq!(names(reasoning(), &speaking), "PartAdded, ReasoningDelta");

        assert_eq!(names(AgentEvent::ToolStarted(call("c")), &empty), "ToolCallStarted");
        let calling = session_with(vec![ChatEvent::ToolCallStarted { turn: turn(), call: call("c") }]);
        let ready = |permission| AgentEvent::ToolReady {
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
            edits: vec![],
            editable: false,
        };
        let asked = PermissionPrompt::new(request, tokio::sync::oneshot::channel().0);
        assert_eq!(names(ready(Some(asked)), &calling), "ToolCallReady, ToolCallGated");
        assert_eq!(names(ready(None), &empty), "", "a call that never started");

        let done = |output| AgentEvent::ToolCompleted { call: "c".into(), result: result(output) };
        assert_eq!(names(done(Some("x".into())), &calling), "ToolCallCompleted");
        let large = "x".repeat(65_537);
        assert_eq!(names(done(Some(large.clone())), &calling), "Stored(65537), PartAdded, ToolCallCompleted");

        let body = |body| AgentEvent::PartContent { mime_type: "text/plain".into(), body };
        assert_eq!(names(body(PartContent::Text("x".into())), &empty), "PartAdded");
        assert_eq!(names(body(PartContent::Text(large)), &empty), "Stored(65537), PartAdded");
        assert_eq!(names(body(PartContent::Bytes(vec![0])), &empty), "Stored(1), PartAdded");

        let usage = Usage { input_tokens: Some(1), ..Usage::default() };
        assert_eq!(names(AgentEvent::Usage(usage.clone()), &empty), "UsageReported");
        assert_eq!(names(AgentEvent::CallUsage(usage), &empty), "UsageReported");
        assert_eq!(names(AgentEvent::Activity(Some("waits".into())), &empty), "ActivityChanged");
        assert_eq!(names(AgentEvent::Activity(None), &empty), "", "nothing new");
        assert_eq!(names(AgentEvent::Plan(vec![]), &empty), "PartAdded");
        assert_eq!(names(AgentEvent::Notice("x".into()), &empty), "PartAdded");
        assert_eq!(names(AgentEvent::Title("x".into()), &empty), "TitleChanged");
        let command = AgentCommand { name: "x".into(), description: String::new(), hint: None };
        assert_eq!(names(AgentEvent::Commands(vec![command]), &empty), "DetailsChanged");
        assert_eq!(names(AgentEvent::Commands(vec![]), &empty), "", "nothing new");
        assert_eq!(names(AgentEvent::AgentSessionId("x".into()), &empty), "AgentSessionChanged");
        let answer = tokio::sync::oneshot::channel().0;
        let asked = AgentEvent::InputNeeded { request: Box::new(InputRequest::ask("r".into(), "?")), answer };
        assert_eq!(names(asked, &empty), "InputRequested");
        assert_eq!(names(AgentEvent::Ended(Ok(())), &empty), "TurnCompleted");
        let failed = Err(ErrorInfo::new("a", "b"));
        assert_eq!(names(AgentEvent::Ended(failed), &empty), "TurnFailed");
    }

    #[test]
    fn messages_of_one_turn_are_parts_of_their_own() {
        let chunk = |message: &str| MessageChunk { message: message.into(), content: "a".into() };
        for event in [AgentEvent::MessageText as fn(MessageChunk) -> AgentEvent, AgentEvent::MessageReasoning] {
            let mut session = session_with(vec![]);
            let mut report = |event: AgentEvent| {
                for command in translated(event, &session.clone()).commands {
                    let Command::Agent(EventReport::Chat { event, .. }) = command else { panic!("{command:?}") };
                    let change = Change::Chat("s".into(), Session::MAIN_CHAT.into(), event);
                    session.apply(&Event { at: Timestamp(0), change });
                }
                session.chats[0].active.as_ref().unwrap().parts().len()
            };
            assert_eq!(report(event(chunk("m1"))), 1);
            assert_eq!(report(event(chunk("m1"))), 1, "the same message goes on");
            assert_eq!(report(event(chunk("m2"))), 2, "another message");
            assert_eq!(report(event(chunk("m1"))), 3, "what came between stays between");
        }
        let mut session = session_with(vec![]);
        for event in [AgentEvent::MessageText(chunk("m1")), AgentEvent::Text("b".into())] {
            for command in translated(event, &session.clone()).commands {
                let Command::Agent(EventReport::Chat { event, .. }) = command else { panic!("{command:?}") };
                let change = Change::Chat("s".into(), Session::MAIN_CHAT.into(), event);
                session.apply(&Event { at: Timestamp(0), change });
            }
        }
        let parts = session.chats[0].active.as_ref().unwrap().parts();
        assert!(
            matches!(parts, [Part::Text(text)] if text.content == "ab"),
            "no message is no other message: {parts:?}"
        );
    }

    #[test]
    fn usage_of_model_calls_adds_up_in_a_turn() {
        let usage = |input| Usage { input_tokens: Some(input), ..Usage::default() };
        let known = ChatEvent::UsageReported { turn: TURN.into(), usage: usage(3) };
        let commands = translated(AgentEvent::CallUsage(usage(4)), &session_with(vec![known])).commands;
        let [Command::Agent(EventReport::Chat { event: ChatEvent::UsageReported { usage: sum, .. }, .. })] =
            &commands[..]
        else {
            panic!("{commands:?}")
        };
        assert_eq!(*sum, usage(7));
    }

    #[test]
    fn a_preview_is_cut_between_characters() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", 3), "aé");
        assert_eq!(beginning("a", 9), "a");
    }
}
