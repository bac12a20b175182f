//! The audit log: who asked for which change, and with which outcome.
//!
//! A record never contains a token, the text of a prompt, or a file's content. Of an approved request it has a short
//! excerpt of the command.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use grove_core::{
    ActiveTurn, ClientCommand, Decision, Part, PermissionRequest, PermissionTarget, Session, Timestamp, ToolCallStatus,
    is_unprintable,
};
use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The characters of a text in a record.
const MAX_TEXT_CHARS: usize = 300;

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
    pub outcome: AuditOutcome,
    /// The reason of a refusal or a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
                record.detail = turn.and_then(|turn| asked_for(turn, question)).map(|text| bounded(&text));
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
            pending.1.detail = subject(request).map(|text| bounded(text));
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

/// The command or the path that a permission request is about.
fn asked_for(turn: &ActiveTurn, question: &PermissionTarget) -> Option<String> {
    let mut calls = turn.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => Some((call, request)),
            _ => None,
        },
        _ => None,
    });
    let (_, request) = calls.find(|(call, request)| match question {
        PermissionTarget::Request(id) => request.id == *id,
        PermissionTarget::OfToolCall(id) => call.id == *id,
    })?;
    subject(request).cloned()
}

fn subject(request: &PermissionRequest) -> Option<&String> {
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
