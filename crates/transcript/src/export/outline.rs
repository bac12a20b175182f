//! The displayed contents of a session, with texts and order: the same in documents, in a browser and in a terminal.
//!
//! Texts come from the session and may contain anything; each display escapes them.

use grove_core::Answerer;

use super::{Heading, labels};
use crate::normal::{Replacement, ToolInput, TranscriptEdit, TranscriptPart, TranscriptToolCall, TranscriptTurn};

/// The displayed data of a session before its turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOutline {
    pub title: String,
    /// Known facts: a name, and a value.
    pub facts: Vec<(&'static str, String)>,
}

/// The displayed data of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutline {
    /// The sender of the message.
    pub speaker: &'static str,
    pub message: String,
    pub attachments: Vec<String>,
    /// Time, model, duration and cost.
    pub facts: Vec<String>,
    pub pieces: Vec<OutlineItem>,
    /// The outcome, if it is not a success.
    pub state: Option<String>,
    /// Lists below the answer: a name, and the lines.
    pub lists: Vec<(&'static str, Vec<String>)>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineItem {
    pub kind: OutlineKind,
    /// One line; empty for the agent's text.
    pub head: String,
    /// Further short facts.
    pub facts: Vec<String>,
    pub bodies: Vec<OutlineBody>,
    /// The turns of a subagent.
    pub turns: Vec<TurnOutline>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineKind {
    /// The agent's text: its one body is Markdown.
    AgentText,
    AgentReasoning,
    Call,
    Edit,
    Question,
    Notice,
    /// Raw data.
    Raw,
}

/// A longer text, shown unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineBody {
    /// The label: input, output. Empty if it is obvious.
    pub label: &'static str,
    pub text: String,
}

impl SessionOutline {
    pub fn of(heading: Heading<'_>) -> Self {
        let session = heading.session;
        let workspace = &session.workspace;
        let joined = |names: &[String]| Some(names.join(", ")).filter(|names| !names.is_empty());
        let folders: Vec<&str> = workspace.folders.iter().map(crate::normal::FileLocation::shown).collect();
        let turns = match session.turns == session.turns_completed {
            true => session.turns.to_string(),
            false => format!("{}, {} of them not cancelled", session.turns, session.turns_completed),
        };
        let turns = match heading.abandoned {
            0 => turns,
            abandoned => format!("{turns}; {abandoned} on abandoned branches, which are left out"),
        };
        let damage = session.damage.is_recovered().then(|| match session.damage.count {
            0 => "yes: it was read as far as it goes".to_owned(),
            count => format!("yes, in {count} places: the rest was read"),
        });
        let facts = [
            ("Session", Some(session.source_id.clone())),
            ("Source", Some(heading.source.to_owned())),
            ("Agent", session.agent.clone()),
            ("Folder", Some(folders.join(", ")).filter(|folders| !folders.is_empty())),
            ("Repository", workspace.repository.clone()),
            ("Branch", workspace.branch.clone()),
            ("Created", session.created_at.map(labels::time)),
            ("Changed", session.modified_at.map(labels::time)),
            ("Turns", Some(turns)),
            ("State", Some(labels::state(session.state).to_owned())),
            ("Models", joined(&session.models)),
            ("Tools", joined(&session.tools)),
            ("Usage", labels::usage(&session.usage)),
            ("To do", Some(labels::todos(&session.todos)).filter(|todos| !todos.is_empty())),
            ("Damaged", damage),
            ("Allows", (heading.allow_all == Some(true)).then(|| "everything, without asking".to_owned())),
        ];
        let facts = facts.into_iter().filter_map(|(name, fact)| Some((name, labels::one_line(&fact?)))).collect();
        let title = session.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&session.first_message);
        Self { title: labels::one_line(title), facts }
    }
}

impl TurnOutline {
    pub fn of(turn: &TranscriptTurn) -> Self {
        let user_message = &turn.message;
        let message = match &user_message.command {
            Some(command) if !user_message.text.trim_start().starts_with('/') => {
                format!("/{command} {}", user_message.text)
            }
            _ => user_message.text.clone(),
        };
        let citations = turn.citations.iter().map(|cited| format!("{} ({})", cited.source, cited.licence));
        let lists = [
            ("References", turn.references.iter().map(|place| place.shown().to_owned()).collect::<Vec<_>>()),
            ("Resembles public code", citations.collect()),
            ("Suggested next", turn.followups.clone()),
        ];
        Self {
            speaker: labels::speaker(user_message.origin),
            message,
            attachments: user_message
                .attachments
                .iter()
                .map(labels::attachment)
                .map(|line| labels::one_line(&line))
                .collect(),
            facts: facts(turn),
            pieces: turn.parts.iter().filter_map(piece).collect(),
            state: labels::outcome(&turn.outcome),
            lists: lists
                .into_iter()
                .filter(|(_, lines)| !lines.is_empty())
                .map(|(name, lines)| (name, lines.iter().map(|line| labels::one_line(line)).collect()))
                .collect(),
        }
    }
}

fn facts(turn: &TranscriptTurn) -> Vec<String> {
    let took = turn.total_ms.or_else(|| Some(turn.ended_at?.0.saturating_sub(turn.started_at?.0)));
    let took = took.filter(|took| *took > 0).map(|took| match turn.first_response_ms {
        Some(first) => format!("{}, first word after {}", labels::duration(took), labels::duration(first)),
        None => labels::duration(took),
    });
    let facts = [
        turn.started_at.map(labels::time),
        turn.agent.as_ref().map(|agent| agent.name.clone()),
        turn.model.as_ref().map(labels::model),
        turn.mode.clone(),
        took,
        turn.usage.as_ref().and_then(labels::usage),
    ];
    facts.into_iter().flatten().map(|fact| labels::one_line(&fact)).filter(|fact| !fact.is_empty()).collect()
}

fn piece(part: &TranscriptPart) -> Option<OutlineItem> {
    let plain = |kind, head: &str, text: &str| OutlineItem {
        kind,
        head: labels::one_line(head),
        facts: Vec::new(),
        bodies: OutlineBody::list([("", text)]),
        turns: Vec::new(),
    };
    let piece = match part {
        TranscriptPart::Text(text) => plain(OutlineKind::AgentText, "", text),
        TranscriptPart::Reasoning { text, title, duration_ms } => {
            let title = title.as_deref().filter(|title| !title.is_empty()).unwrap_or("Thought");
            OutlineItem {
                facts: duration_ms.map(labels::duration).into_iter().collect(),
                ..plain(OutlineKind::AgentReasoning, title, text)
            }
        }
        TranscriptPart::ToolCall(call) => self::call(call),
        TranscriptPart::Edit(edit) => plain(OutlineKind::Edit, &labels::edit(edit), &changes(edit)),
        TranscriptPart::Question(question) => {
            let head = if question.title.is_empty() { "Question" } else { &question.title };
            let answer = question.answer.as_deref().unwrap_or_default();
            let bodies = OutlineBody::list([("", question.message.as_str()), ("answer", answer)]);
            let party = Answerer::in_extra(&question.raw);
            let facts = party.map(|party| labels::one_line(&format!("answered by {party}"))).into_iter().collect();
            OutlineItem { bodies, facts, ..plain(OutlineKind::Question, head, "") }
        }
        // They control a view, and have no text for people.
        TranscriptPart::Notice(notice) if notice.text.is_empty() => return None,
        TranscriptPart::Notice(notice) => plain(OutlineKind::Notice, &notice.kind, &notice.text),
        TranscriptPart::Raw(value) => plain(OutlineKind::Raw, "Not understood", &pretty(value)),
    };
    Some(piece)
}

fn call(call: &TranscriptToolCall) -> OutlineItem {
    let labels = call.summary.as_deref().or(call.intention.as_deref()).map(labels::one_line);
    let head = match labels.filter(|labels| !labels.is_empty() && *labels != call.name) {
        Some(labels) => format!("{}: {labels}", call.name),
        None => call.name.clone(),
    };
    let facts = [
        labels::kind(call.kind).map(str::to_owned),
        call.provider.clone(),
        labels::approval(&call.approval, Answerer::in_extra(&call.raw).as_ref()),
        labels::call_state(call.state).map(str::to_owned),
        call.exit_code.map(|code| format!("exit code {code}")),
        call.ran_for_ms().filter(|ran| *ran > 0).map(labels::duration),
    ];
    let output = call.output.as_ref().map_or("", |output| output.text.as_str());
    let places: Vec<&str> = call.places.iter().map(crate::normal::FileLocation::shown).collect();
    let input = input(call);
    OutlineItem {
        kind: OutlineKind::Call,
        head: labels::one_line(&head),
        facts: facts.into_iter().flatten().map(|fact| labels::one_line(&fact)).collect(),
        bodies: OutlineBody::list([("input", input.as_str()), ("output", output), ("files", &places.join("\n"))]),
        turns: call.subagent.iter().flat_map(|chat| &chat.turns).map(TurnOutline::of).collect(),
    }
}

/// A call's input: as it is understood, else raw.
fn input(call: &TranscriptToolCall) -> String {
    match &call.input {
        ToolInput::Command { command, folder, background, .. } => {
            let folder = folder.as_ref().map(|folder| format!("(in {folder})\n")).unwrap_or_default();
            let background = if *background { "\n(in the background)" } else { "" };
            format!("{folder}{command}{background}")
        }
        ToolInput::ShellOutput { terminal } => terminal.clone(),
        ToolInput::File { place } => match &place.range {
            Some(range) => {
                format!("{}, lines {} to {}", place.shown(), range.start.line, range.end.line.saturating_sub(1))
            }
            None => place.shown().to_owned(),
        },
        ToolInput::Folder { place } => place.shown().to_owned(),
        ToolInput::Todos(items) => labels::todos(items),
        ToolInput::Subagent { agent, description, prompt } => {
            let head: Vec<&str> = [agent, description].into_iter().flatten().map(String::as_str).collect();
            match head.is_empty() {
                true => prompt.clone(),
                false => format!("{}\n\n{prompt}", head.join(": ")),
            }
        }
        ToolInput::Edits(replacements) => {
            replacements.iter().map(replacement).collect::<Vec<_>>().join("\n").trim_end().to_owned()
        }
        ToolInput::Generic => call.raw_input.as_ref().map(pretty).unwrap_or_default(),
    }
}

fn replacement(replacement: &Replacement) -> String {
    let lines = |mark: char, text: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let before = replacement.before.as_deref().map(|text| lines('-', text)).unwrap_or_default();
    format!("{}\n{before}{}", replacement.path, lines('+', &replacement.after))
}

fn changes(edit: &TranscriptEdit) -> String {
    let change = |change: &crate::normal::TextChange| {
        let (start, end) = (change.range.start, change.range.end);
        format!("{}:{} to {}:{}\n{}", start.line, start.column, end.line, end.column, change.text)
    };
    edit.changes.iter().map(change).collect::<Vec<_>>().join("\n")
}

fn pretty(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    }
}

impl OutlineBody {
    /// The bodies that are not empty.
    fn list<const N: usize>(bodies: [(&'static str, &str); N]) -> Vec<Self> {
        let bodies = bodies.into_iter().filter(|(_, text)| !text.trim().is_empty());
        bodies.map(|(label, text)| Self { label, text: text.to_owned() }).collect()
    }
}
