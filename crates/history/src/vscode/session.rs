//! Assembles a session from its requests and the members beside them.

use std::collections::HashSet;

use grove_core::{Extra, Timestamp};
use grove_transcript::uri::location_from;
use grove_transcript::{
    DamageKind, DamageLocation, TranscriptMessage, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn,
    TranscriptWorkspace,
};
use serde_json::Value;

use super::prompt_blocks;
use super::request::{RequestTurn, request_of};
use super::workspace::workspace_of_cache_key;
use crate::error::HistoryError;
use crate::json::JsonMembers;
use crate::reader::SessionLocation;

/// The newest known version of the format.
const VERSION: u64 = 3;
/// VS Code's name for a session without a title.
const UNTITLED: &str = "New Chat";
/// VS Code's name for a part that shows a pull request.
const PULL_REQUEST: &str = "pullRequest";
/// The maximum length of a title: a line in a list.
const LONGEST_TITLE: usize = 200;

/// A session under construction.
#[derive(Debug)]
pub(crate) struct SessionBuilder {
    pub session: TranscriptSession,
    /// The first line of the first message.
    first_line: Option<String>,
    first_started: Option<Timestamp>,
    cache_key: Option<String>,
    /// The workspace that the prompts describe.
    prompt_blocks: TranscriptWorkspace,
    /// The address of the newest pull request.
    pull_request: Option<String>,
    ids: HashSet<String>,
}

impl SessionBuilder {
    pub(super) fn new(id: &str) -> Self {
        Self {
            session: TranscriptSession::new(TranscriptSource::VsCode, id),
            first_line: None,
            first_started: None,
            cache_key: None,
            prompt_blocks: TranscriptWorkspace::default(),
            pull_request: None,
            ids: HashSet::new(),
        }
    }

    /// The turn of a request.
    pub(super) fn turn(&mut self, value: Value) -> TranscriptTurn {
        let mut turn = match request_of(value) {
            Ok(RequestTurn { turn, cache_key }) => {
                self.cache_key = self.cache_key.take().or(cache_key);
                turn
            }
            Err(odd) => TranscriptTurn {
                message: TranscriptMessage::default(),
                parts: vec![TranscriptPart::Raw(odd)],
                ..TranscriptTurn::default()
            },
        };
        if turn.id.is_empty() || !self.ids.insert(turn.id.clone()) {
            turn.id = format!("turn-{}", self.session.turns + 1);
            self.ids.insert(turn.id.clone());
        }
        if !turn.context.is_empty() {
            self.prompt_blocks.fill(prompt_blocks::workspace_of(&turn.context));
        }
        if self.first_line.is_none() {
            self.first_line = Some(turn.message.text.lines().next().unwrap_or_default().to_owned());
        }
        self.first_started = self.first_started.or(turn.started_at);
        self.pull_request = pull_request_of(&turn).or(self.pull_request.take());
        self.session.count(&turn);
        turn
    }

    pub(super) fn bad(&mut self, mark: DamageKind, offset: u64, what: impl ToString) {
        self.session.damage.add(mark, DamageLocation { offset, line: None, what: what.to_string() });
    }

    /// Records that the editing session cannot be read.
    pub(super) fn beside(&mut self, problem: Option<HistoryError>) {
        if let Some(problem) = problem {
            self.bad(DamageKind::Damaged, 0, format!("its editing session: {problem}"));
        }
    }

    /// The complete session: `root` are the members beside the requests, `location` is the data from before the read.
    pub(super) fn finish(mut self, root: Extra, location: &SessionLocation) -> TranscriptSession {
        let mut root = JsonMembers::of(Value::Object(root)).unwrap_or_default();
        let session = &mut self.session;
        if let Some(version) = root.unsigned("version") {
            session.version = Some(version.to_string());
            if version > VERSION {
                session.damage.mark(DamageKind::NewerVersion { version });
            }
        }
        if let Some(id) = root.string("sessionId").filter(|id| !id.is_empty() && *id != session.source_id) {
            // The file may have been renamed; callers use either name.
            session.aliases.insert(0, std::mem::replace(&mut session.source_id, id));
        }
        session.created_at = root.time("creationDate").or(location.preview.created_at).or(self.first_started);
        let last = root.time("lastMessageDate");
        session.modified_at = session.modified_at.max(last);
        if session.modified_at.is_none() {
            let written = Some(location.mark.modified_at).filter(|at| *at != Timestamp(0));
            session.modified_at = session.created_at.or(location.preview.modified_at).or(written);
        }
        let own = root.message("customTitle").or_else(|| root.message("computedTitle"));
        let listed = location.preview.title.clone().filter(|title| title != UNTITLED);
        let title = own.filter(|title| !title.is_empty()).or(listed).or(self.first_line);
        session.title =
            title.map(|title| title.chars().take(LONGEST_TITLE).collect()).filter(|title: &String| !title.is_empty());
        session.draft = draft_of(&mut root);
        if session.agent.is_none() {
            session.agent = root.string("responderUsername");
        }
        session.workspace = workspace_of(&mut root);
        session.workspace.fill(location.workspace.clone());
        session.workspace.fill(self.cache_key.as_deref().map(workspace_of_cache_key).unwrap_or_default());
        session.workspace.fill(self.prompt_blocks);
        session.workspace.set_pull_request(self.pull_request);
        // The person's avatar, and the panel's state.
        root.forget(&["requesterAvatarIconUri", "responderAvatarIconUri", "initialLocation", "hasPendingEdits"]);
        session.raw = root.rest();
        self.session
    }
}

fn draft_of(root: &mut JsonMembers) -> Option<String> {
    let mut input = root.object("inputState")?;
    let draft = input.string("inputText").filter(|text| !text.is_empty());
    root.keep("inputState", input);
    draft
}

/// The address of the pull request in a turn, as a part of its answer or in a call's data.
fn pull_request_of(turn: &TranscriptTurn) -> Option<String> {
    let records = turn.parts.iter().rev().filter_map(|part| match part {
        TranscriptPart::Notice(notice) if notice.kind == PULL_REQUEST => Some(&notice.raw),
        TranscriptPart::ToolCall(call) => {
            let shown = call.raw.get("toolSpecificData")?.as_object()?;
            (shown.get("kind")?.as_str()? == PULL_REQUEST).then_some(shown)
        }
        _ => None,
    });
    let mut addresses = records.filter_map(|record| {
        // Older versions have it directly, newer ones as a command's argument.
        let opened = || record.get("command")?.get("arguments")?.get(0);
        Some(location_from(record.get("uri").or_else(opened)?)?.uri).filter(|uri| !uri.is_empty())
    });
    addresses.next()
}

/// The session's own data on its workspace.
fn workspace_of(root: &mut JsonMembers) -> TranscriptWorkspace {
    let mut workspace = TranscriptWorkspace::default();
    workspace.folders.extend(root.any("workingDirectory").and_then(|folder| location_from(&folder)));
    if let Some(mut repository) = root.object("repoData") {
        workspace.repository = repository.string("remoteUrl");
        workspace.branch = repository.string("localBranch");
        workspace.commit = repository.string("localHeadCommit");
        // It has the remote's name as a prefix.
        let base = repository.string("remoteBaseBranch");
        workspace.base_branch = base.map(|base| match base.split_once('/') {
            Some((_, branch)) => branch.to_owned(),
            None => base,
        });
        root.keep("repoData", repository);
    }
    workspace
}
