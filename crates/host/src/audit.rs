//! The audit log: who asked for which change, and with which outcome.
//!
//! A record never contains a token, the text of a prompt, or a file's content. Of an approved request it has a short
//! excerpt of the command.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use grove_agents::call_subject;
use grove_core::{
    ActiveTurn, ClientCommand, ConfirmationReason, Decision, Part, PermissionRequest, PermissionTarget, Session,
    Timestamp, ToolCall, ToolCallStatus, is_unprintable,
};
use grove_policy::{Kind, RequestAction};
use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The characters of a text in a record.
pub const MAX_TEXT_CHARS: usize = 300;
/// The bytes of the subject of a recorded request. A longer subject is left out.
pub const MAX_SUBJECT_BYTES: usize = 2_000;

/// Stores audit records. It never blocks the caller and never fails it.
pub trait AuditLog: Send + Sync {
    fn record(&self, record: AuditRecord);
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    pub time: Timestamp,
    /// The name of the token.
    pub token: String,
    /// The id that the client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub address: String,
    pub action: AuditAction,
    /// The method or the action, as its dialect names it.
    pub operation: String,
    /// The session, as the client named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The subject of the operation: the excerpt of a command, the name of a rule or of a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The permission request that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<AuditedRequest>,
    pub outcome: AuditOutcome,
    /// The reason of a refusal or a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A permission request that a person answered, as rules see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditedRequest {
    pub agent: String,
    /// The agent's id of the tool call.
    pub call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The command, the paths, the address or the tool. It is empty if it is not known or too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subject: Vec<String>,
}

impl AuditedRequest {
    fn of(tip: &Session, call: &ToolCall, request: &PermissionRequest) -> Self {
        let folder = tip.working_directories.first().and_then(|folder| grove_work::local_path(folder).ok());
        let directory = folder.map(|folder| folder.to_string_lossy().into_owned());
        let action = call_subject(tip.agent.as_str(), call, Some(request), directory.as_deref());
        let kind = action.kind();
        let subject = match action {
            RequestAction::Read { paths } | RequestAction::Edit { paths } => paths,
            RequestAction::Shell { command: one }
            | RequestAction::Fetch { url: one }
            | RequestAction::Mcp { tool: one } => {
                vec![one]
            }
            RequestAction::Unknown { .. } => Vec::new(),
        };
        let is_short = subject.iter().map(String::len).sum::<usize>() <= MAX_SUBJECT_BYTES;
        let subject = if is_short { subject } else { Vec::new() };
        Self { agent: bounded(tip.agent.as_str()), call: bounded(call.id.as_str()), directory, kind, subject }
    }

    /// The effect that was asked for.
    pub fn action(&self) -> RequestAction {
        match (self.kind, &self.subject[..]) {
            (Some(Kind::Read), [_, ..]) => RequestAction::Read { paths: self.subject.clone() },
            (Some(Kind::Edit), [_, ..]) => RequestAction::Edit { paths: self.subject.clone() },
            (Some(Kind::Shell), [command]) => RequestAction::Shell { command: command.clone() },
            (Some(Kind::Fetch), [url]) => RequestAction::Fetch { url: url.clone() },
            (Some(Kind::Mcp), [tool]) => RequestAction::Mcp { tool: tool.clone() },
            (kind, _) => RequestAction::Unknown { kind },
        }
    }
}

/// Defines a set of words that records contain.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$its:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$its])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in records and commands.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|known| known.as_str() == text);
                let known = Self::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>().join(", ");
                found.ok_or_else(|| format!("{text:?} is not {}: use one of {known}", $what))
            }
        }
    };
}

words! {
    /// The kind of an operation.
    AuditAction, "an action" {
        /// A client connected and named itself, or failed to give a token.
        LogIn = "log-in",
        Prompt = "prompt",
        Approve = "approve",
        Deny = "deny",
        /// An answer to a question of an agent.
        Answer = "answer",
        Create = "create",
        Change = "change",
        Delete = "delete",
        /// The host answered a permission request by a rule.
        Policy = "policy",
        /// A token was made, changed or revoked.
        Token = "token",
        /// Another operation of the host's owner.
        Manage = "manage",
        /// An agent's process asked for something that persons alone may do.
        AgentAttempt = "agent-attempt",
    }
}

words! {
    /// The outcome of an operation.
    AuditOutcome, "an outcome" {
        Done = "done",
        /// It was permitted, and changed nothing.
        Unchanged = "unchanged",
        Refused = "refused",
        /// The client left before the answer.
        Unanswered = "unanswered",
    }
}

impl AuditRecord {
    /// A record without a client, a session and details.
    pub fn new(time: Timestamp, token: &str, address: String, action: AuditAction, operation: &str) -> Self {
        Self {
            time,
            token: bounded(token),
            client: None,
            address,
            action,
            operation: bounded(operation),
            session: None,
            detail: None,
            request: None,
            outcome: AuditOutcome::Unanswered,
            reason: None,
        }
    }

    #[must_use]
    pub fn with_client(self, client: Option<&str>) -> Self {
        Self { client: client.map(bounded), ..self }
    }

    #[must_use]
    pub fn with_session(self, session: Option<&str>) -> Self {
        Self { session: session.map(bounded), ..self }
    }

    #[must_use]
    pub fn with_detail(self, detail: Option<&str>) -> Self {
        Self { detail: detail.map(bounded), ..self }
    }

    #[must_use]
    pub fn with_outcome(self, outcome: AuditOutcome, reason: Option<&str>) -> Self {
        Self { outcome, reason: reason.map(bounded), ..self }
    }
}

/// A text for a record: its beginning, without control characters.
fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).map(|one| if is_unprintable(one) { ' ' } else { one }).collect()
}

/// A record whose outcome is not known yet. Dropping it records that nobody was told the outcome.
pub struct PendingRecord(Option<Box<(Arc<dyn AuditLog>, AuditRecord)>>);

impl fmt::Debug for PendingRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingRecord").field(&self.0.as_ref().map(|pending| &pending.1)).finish()
    }
}

impl PendingRecord {
    /// Records nothing.
    pub const NONE: PendingRecord = PendingRecord(None);

    /// Returns true if nothing will be recorded.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Adds what a command is about: an approval and a denial, and the command that was asked for.
    pub(crate) fn describe(&mut self, command: &ClientCommand, tip: &Session) {
        let Some(pending) = &mut self.0 else { return };
        let record = &mut pending.1;
        match command {
            ClientCommand::StartTurn { .. } | ClientCommand::SetSteering { .. } | ClientCommand::Enqueue { .. } => {
                record.action = AuditAction::Prompt;
            }
            ClientCommand::ResolvePermission { chat, question, verdict, .. } => {
                record.action = by_decision(verdict.decision);
                let turn = tip.chat(chat).and_then(|chat| chat.active.as_deref());
                let Some((call, request)) = turn.and_then(|turn| pending_request(turn, question)) else { return };
                record.detail = asked_for(request).map(|text| bounded(text));
                // A client may answer by a setting of its own, which is nobody's word on this request.
                let is_by_person = verdict.by == ConfirmationReason::Person;
                record.request = is_by_person.then(|| AuditedRequest::of(tip, call, request));
            }
            ClientCommand::ConfirmResult { decision, .. } => record.action = by_decision(*decision),
            ClientCommand::AnswerInput { .. } => record.action = AuditAction::Answer,
            _ => {}
        }
    }

    /// Adds a decision on a permission request, and the command that was asked for.
    pub fn describe_decision(&mut self, decision: Decision, request: &PermissionRequest) {
        if let Some(pending) = &mut self.0 {
            pending.1.action = by_decision(decision);
            pending.1.detail = asked_for(request).map(|text| bounded(text));
        }
    }

    /// Adds the subject of the operation.
    #[must_use]
    pub fn with_detail(mut self, detail: Option<&str>) -> Self {
        if let Some(pending) = &mut self.0 {
            pending.1.detail = detail.map(bounded);
        }
        self
    }

    /// Records the outcome.
    pub fn finish(mut self, outcome: AuditOutcome, reason: Option<&str>) {
        if let Some(pending) = self.0.take() {
            let (log, record) = *pending;
            log.record(record.with_outcome(outcome, reason));
        }
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if let Some(pending) = self.0.take() {
            let (log, record) = *pending;
            log.record(record);
        }
    }
}

fn by_decision(decision: Decision) -> AuditAction {
    match decision {
        Decision::Approved => AuditAction::Approve,
        Decision::Denied => AuditAction::Deny,
    }
}

/// The permission request that an answer is about, and its call.
fn pending_request<'t>(
    turn: &'t ActiveTurn,
    question: &PermissionTarget,
) -> Option<(&'t ToolCall, &'t PermissionRequest)> {
    let mut calls = turn.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => Some((&**call, request)),
            _ => None,
        },
        _ => None,
    });
    calls.find(|(call, request)| match question {
        PermissionTarget::Request(id) => request.id == *id,
        PermissionTarget::OfToolCall(id) => call.id == *id,
    })
}

/// The command or the path that a permission request is about.
fn asked_for(request: &PermissionRequest) -> Option<&String> {
    let texts = [&request.full_command_text, &request.path, &request.title, &request.intention];
    texts.into_iter().flatten().next()
}

impl Host {
    /// Sets the audit log. Only the first call has an effect.
    pub fn set_audit_log(&self, log: Arc<dyn AuditLog>) {
        if self.0.audit_log.set(log).is_err() {
            tracing::warn!("a host has one audit log: the second one is not used");
        }
    }

    /// Begins a record, whose outcome follows.
    pub fn begin_audit(&self, record: AuditRecord) -> PendingRecord {
        PendingRecord(self.0.audit_log.get().map(|log| Box::new((log.clone(), record))))
    }

    /// Adds a record to the audit log, if there is one.
    pub fn audit(&self, record: AuditRecord) {
        if let Some(log) = self.0.audit_log.get() {
            log.record(record);
        }
    }
}
