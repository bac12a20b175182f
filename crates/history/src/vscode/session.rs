//! A session put together from its requests and what stands beside them.

use std::collections::HashSet;

use grove_core::{Extra, Timestamp};
use serde_json::Value;

use super::rendered;
use super::request::{Request, request_of};
use super::uri::place_of;
use super::workspace::workspace_of_cache_key;
use crate::damage::{BadPlace, Mark};
use crate::error::HistoryError;
use crate::json::Members;
use crate::normal::{ForeignMessage, ForeignPart, ForeignSession, ForeignTurn, Source, Workspace};
use crate::reader::Located;

/// The newest version of the format that is known.
const VERSION: u64 = 3;
/// What VS Code calls a session that has no title.
const UNTITLED: &str = "New Chat";
/// What VS Code calls a part that shows a pull request.
const PULL_REQUEST: &str = "pullRequest";
/// A title is a line that fits in a list.
const LONGEST_TITLE: usize = 200;

/// A session that is being put together.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub session: ForeignSession,
    /// The first line of the first message.
    first_line: Option<String>,
    first_started: Option<Timestamp>,
    cache_key: Option<String>,
    /// What the prompts say of the workspace.
    rendered: Workspace,
    /// The address of the newest pull request that was told of.
    pull_request: Option<String>,
    ids: HashSet<String>,
}

impl Assembly {
    pub(super) fn new(id: &str) -> Self {
        Self {
            session: ForeignSession::new(Source::VsCode, id),
            first_line: None,
            first_started: None,
            cache_key: None,
            rendered: Workspace::default(),
            pull_request: None,
            ids: HashSet::new(),
        }
    }

    /// The turn of a request.
    pub(super) fn turn(&mut self, value: Value) -> ForeignTurn {
        let mut turn = match request_of(value) {
            Ok(Request { turn, cache_key }) => {
                self.cache_key = self.cache_key.take().or(cache_key);
                turn
            }
            Err(odd) => ForeignTurn {
                message: ForeignMessage::default(),
                parts: vec![ForeignPart::Raw(odd)],
                ..ForeignTurn::default()
            },
        };
        if turn.id.is_empty() || !self.ids.insert(turn.id.clone()) {
            turn.id = format!("turn-{}", self.session.turns + 1);
            self.ids.insert(turn.id.clone());
        }
        if !turn.context.is_empty() {
            self.rendered.fill(rendered::workspace_of(&turn.context));
        }
        if self.first_line.is_none() {
            self.first_line = Some(turn.message.text.lines().next().unwrap_or_default().to_owned());
        }
        self.first_started = self.first_started.or(turn.started_at);
        self.pull_request = pull_request_of(&turn).or(self.pull_request.take());
        self.session.count(&turn);
        turn
    }

    pub(super) fn bad(&mut self, mark: Mark, offset: u64, what: impl ToString) {
        self.session.damage.add(mark, BadPlace { offset, line: None, what: what.to_string() });
    }

    /// What lies beside the session cannot be read.
    pub(super) fn beside(&mut self, problem: Option<HistoryError>) {
        if let Some(problem) = problem {
            self.bad(Mark::Damaged, 0, format!("its editing session: {problem}"));
        }
    }

    /// The session, once all of it was seen: `root` is what stands beside the requests, `located` what was known before.
    pub(super) fn finish(mut self, root: Extra, located: &Located) -> ForeignSession {
        let mut root = Members::of(Value::Object(root)).unwrap_or_default();
        let session = &mut self.session;
        if let Some(version) = root.unsigned("version") {
            session.version = Some(version.to_string());
            if version > VERSION {
                session.damage.mark(Mark::NewerVersion { version });
            }
        }
        if let Some(id) = root.string("sessionId").filter(|id| !id.is_empty() && *id != session.source_id) {
            // The file may have been renamed; whoever asks for it knows either name.
            session.aliases.insert(0, std::mem::replace(&mut session.source_id, id));
        }
        session.created_at = root.time("creationDate").or(located.headline.created_at).or(self.first_started);
        let last = root.time("lastMessageDate");
        session.modified_at = session.modified_at.max(last);
        if session.modified_at.is_none() {
            let written = Some(located.mark.modified_at).filter(|at| *at != Timestamp(0));
            session.modified_at = session.created_at.or(located.headline.modified_at).or(written);
        }
        let own = root.message("customTitle").or_else(|| root.message("computedTitle"));
        let listed = located.headline.title.clone().filter(|title| title != UNTITLED);
        let title = own.filter(|title| !title.is_empty()).or(listed).or(self.first_line);
        session.title =
            title.map(|title| title.chars().take(LONGEST_TITLE).collect()).filter(|title: &String| !title.is_empty());
        session.draft = draft_of(&mut root);
        if session.agent.is_none() {
            session.agent = root.string("responderUsername");
        }
        session.workspace = workspace_of(&mut root);
        session.workspace.fill(located.workspace.clone());
        session.workspace.fill(self.cache_key.as_deref().map(workspace_of_cache_key).unwrap_or_default());
        session.workspace.fill(self.rendered);
        session.workspace.pulled(self.pull_request);
        // What the person looks like, and where the panel stood.
        root.forget(&["requesterAvatarIconUri", "responderAvatarIconUri", "initialLocation", "hasPendingEdits"]);
        session.raw = root.rest();
        self.session
    }
}

fn draft_of(root: &mut Members) -> Option<String> {
    let mut input = root.object("inputState")?;
    let draft = input.string("inputText").filter(|text| !text.is_empty());
    root.keep("inputState", input);
    draft
}

/// The address of the pull request that a turn tells of, as a part of its answer or as what a call shows.
fn pull_request_of(turn: &ForeignTurn) -> Option<String> {
    let told = turn.parts.iter().rev().filter_map(|part| match part {
        ForeignPart::Notice(notice) if notice.kind == PULL_REQUEST => Some(&notice.raw),
        ForeignPart::ToolCall(call) => {
            let shown = call.raw.get("toolSpecificData")?.as_object()?;
            (shown.get("kind")?.as_str()? == PULL_REQUEST).then_some(shown)
        }
        _ => None,
    });
    let mut addresses = told.filter_map(|told| {
        // Older versions have it as it is, newer ones as what a command opens.
        let opened = || told.get("command")?.get("arguments")?.get(0);
        Some(place_of(told.get("uri").or_else(opened)?)?.uri).filter(|uri| !uri.is_empty())
    });
    addresses.next()
}

/// What the session itself says of where it worked.
fn workspace_of(root: &mut Members) -> Workspace {
    let mut workspace = Workspace::default();
    workspace.folders.extend(root.any("workingDirectory").and_then(|folder| place_of(&folder)));
    if let Some(mut repository) = root.object("repoData") {
        workspace.repository = repository.string("remoteUrl");
        workspace.branch = repository.string("localBranch");
        workspace.commit = repository.string("localHeadCommit");
        // It is told with the remote's name before it.
        let base = repository.string("remoteBaseBranch");
        workspace.base_branch = base.map(|base| match base.split_once('/') {
            Some((_, branch)) => branch.to_owned(),
            None => base,
        });
        root.keep("repoData", repository);
    }
    workspace
}
