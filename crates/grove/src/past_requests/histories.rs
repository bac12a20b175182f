//! Answered requests in the histories of other tools.
//!
//! | tool | records |
//! |---|---|
//! | VS Code, Copilot CLI | approvals and denials of a person |
//! | Claude Code, Codex, OpenCode | denials; an approved call looks like one that needed no approval |
//! | Gemini CLI, pi | neither |

use grove_agents::call_subject;
use grove_core::{Part, Timestamp};
use grove_history::{Hints, SessionLocation, StoreRoot, reader_of};
use grove_policy::RequestAction;
use grove_policy::replay::Answer;
use grove_transcript::{
    Approval, FileLocation, ToolInput, TranscriptPart, TranscriptSource, TranscriptToolCall, TranscriptToolKind,
    TranscriptTurn, core_turn,
};

use super::{FoundRequest, PastRequests, RequestRecord, SameBy};

/// The maximum nesting of subagents that is followed.
const MAX_NESTING: usize = 8;

/// Collects the requests of a tool's sessions below a root, the newest session first.
pub(super) fn collect(root: &StoreRoot, since: Timestamp, past: &mut PastRequests<'_>) {
    if !records_answers(root.source) || !root.folder.exists() {
        return;
    }
    let reader = reader_of(root.source);
    let mut sessions = reader.find(root, Hints::Skip).sessions;
    sessions.retain(|location| location.mark.modified_at >= since);
    sessions.sort_by_key(|location| std::cmp::Reverse(location.mark.modified_at));
    for location in sessions {
        if past.is_full() {
            return;
        }
        let mut found: Vec<(Box<TranscriptToolCall>, Option<Timestamp>)> = Vec::new();
        let read = reader.read(&location, None, &mut |turn| answered_calls(turn, None, 0, &mut found));
        // The folder of a session may only be known after reading it.
        let workspace = read.map(|outcome| outcome.session.workspace).unwrap_or_default();
        let folders = location.workspace.folders.iter().chain(&workspace.folders);
        let directory = folders.filter(|folder| folder.host.is_none()).find_map(|folder| folder.path.clone());
        for (call, at) in found {
            let at = call.started_at.or(at).unwrap_or(location.mark.modified_at);
            if at >= since {
                past.add(found_request(&location, call, at, directory.clone()), SameBy::Subject);
            }
        }
    }
}

const fn records_answers(source: TranscriptSource) -> bool {
    match source {
        TranscriptSource::VsCode
        | TranscriptSource::CopilotCli
        | TranscriptSource::Claude
        | TranscriptSource::Codex
        | TranscriptSource::OpenCode => true,
        TranscriptSource::Gemini | TranscriptSource::Pi => false,
    }
}

/// The name that rules have for a tool's agent.
const fn agent_of(source: TranscriptSource) -> &'static str {
    match source {
        TranscriptSource::VsCode => "vs-code",
        TranscriptSource::CopilotCli => "copilot",
        TranscriptSource::Claude => "claude",
        TranscriptSource::Codex => "codex",
        TranscriptSource::Pi => "pi",
        TranscriptSource::Gemini => "gemini",
        TranscriptSource::OpenCode => "opencode",
    }
}

fn person_answer(approval: &Approval) -> Option<Answer> {
    match approval {
        Approval::Person { .. } => Some(Answer::Approved),
        Approval::Denied => Some(Answer::Denied),
        Approval::Unknown
        | Approval::NotNeeded { .. }
        | Approval::Setting { .. }
        | Approval::Remembered { .. }
        | Approval::Skipped
        | Approval::Waiting => None,
    }
}

/// Takes the calls that a person answered out of a turn and its subagents.
fn answered_calls(
    turn: TranscriptTurn,
    parent: Option<Timestamp>,
    nesting: usize,
    found: &mut Vec<(Box<TranscriptToolCall>, Option<Timestamp>)>,
) {
    let at = turn.started_at.or(parent);
    for part in turn.parts {
        let TranscriptPart::ToolCall(mut call) = part else { continue };
        let subagent = call.subagent.take().filter(|_| nesting < MAX_NESTING);
        for turn in subagent.into_iter().flat_map(|chat| chat.turns) {
            answered_calls(turn, at, nesting + 1, found);
        }
        if person_answer(&call.approval).is_some() {
            found.push((call, at));
        }
    }
}

fn found_request(
    location: &SessionLocation,
    call: Box<TranscriptToolCall>,
    at: Timestamp,
    directory: Option<String>,
) -> FoundRequest {
    let agent = agent_of(location.source);
    let answer = person_answer(&call.approval).unwrap_or(Answer::Denied);
    FoundRequest {
        agent: agent.to_owned(),
        call: call.id.clone(),
        action: subject(agent, call, directory.as_deref()),
        directory,
        answer,
        record: RequestRecord { source: location.source.name(), session: location.id.clone(), at },
    }
}

/// The subject of a call: by the table of its agent, else by its tool's input in the normal form.
fn subject(agent: &str, call: Box<TranscriptToolCall>, directory: Option<&str>) -> RequestAction {
    let normal = (call.kind, call.input.clone());
    let turn = TranscriptTurn { parts: vec![TranscriptPart::ToolCall(call)], ..TranscriptTurn::default() };
    let by_table = core_turn(&turn, Timestamp::default()).turn.parts.into_iter().find_map(|part| match part {
        Part::ToolCall(call) => Some(call_subject(agent, &call, None, directory)),
        _ => None,
    });
    match by_table {
        Some(RequestAction::Unknown { kind }) => {
            by_input(&normal.0, normal.1).unwrap_or(RequestAction::Unknown { kind })
        }
        Some(action) => action,
        None => RequestAction::Unknown { kind: None },
    }
}

fn by_input(kind: &TranscriptToolKind, input: ToolInput) -> Option<RequestAction> {
    let local = |place: FileLocation| place.path.filter(|_| place.host.is_none());
    match (kind, input) {
        (TranscriptToolKind::Shell, ToolInput::Command { command, folder: None, .. }) => {
            Some(RequestAction::Shell { command })
        }
        (_, ToolInput::File { place } | ToolInput::Folder { place }) => {
            Some(RequestAction::Read { paths: vec![local(place)?] })
        }
        (_, ToolInput::Edits(edits)) if !edits.is_empty() => {
            let paths = edits.into_iter().flat_map(|edit| std::iter::once(edit.path).chain(edit.from));
            let paths: Vec<String> = paths.collect();
            paths.iter().all(|path| !path.is_empty()).then_some(RequestAction::Edit { paths })
        }
        _ => None,
    }
}
