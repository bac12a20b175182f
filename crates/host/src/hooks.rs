//! Hooks: programs that are called for changes of sessions' trees, and may influence them.
//!
//! A [`Hook`] is asked before the leaf moves, before a session branches off and before a conversation is compacted, and
//! notified afterwards. Before, it may forbid the change or supply the summary. It is called outside of the session's
//! task: the session continues meanwhile, and nothing of it has changed.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use grove_core::{ChatId, SessionUri};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::branch::SessionRequestError;
use crate::host::{Host, HostInner};
use crate::leases::Lease;
use crate::session::{NavigateOptions, TreeAnswer, TreeError, TreeRequest};

/// The kinds of events that hooks are called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookKind {
    BeforeTree,
    Tree,
    BeforeBranch,
    Branch,
    BeforeCompact,
    BeforeSummary,
    Compact,
}

impl HookKind {
    pub const ALL: [Self; 7] = [
        Self::BeforeTree,
        Self::Tree,
        Self::BeforeBranch,
        Self::Branch,
        Self::BeforeCompact,
        Self::BeforeSummary,
        Self::Compact,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            HookKind::BeforeTree => "session_before_tree",
            HookKind::Tree => "session_tree",
            HookKind::BeforeBranch => "session_before_branch",
            HookKind::Branch => "session_branch",
            HookKind::BeforeCompact => "session_before_compact",
            HookKind::BeforeSummary => "session.compacting",
            HookKind::Compact => "session_compact",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A change that is about to happen or has happened. Entries are as in the log.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum HookEvent {
    /// The leaf is about to move. A hook may forbid it, or supply a requested summary.
    #[serde(rename = "session_before_tree")]
    BeforeTree { preparation: TreePreparation },
    /// The leaf has moved.
    #[serde(rename = "session_tree")]
    Tree {
        new_leaf_id: Option<String>,
        old_leaf_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_entry: Option<Box<RawValue>>,
        /// Says whether a hook supplied the summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_extension: Option<bool>,
    },
    /// A session is about to branch off at this message. A hook may forbid it.
    #[serde(rename = "session_before_branch")]
    BeforeBranch { entry_id: String },
    /// A session has branched off.
    #[serde(rename = "session_branch")]
    Branch {
        /// The log of its source, in its store.
        previous_session_file: String,
        /// The new session's URI.
        session: String,
    },
    /// The conversation is about to be compacted. A hook may forbid it, or supply the compaction.
    #[serde(rename = "session_before_compact")]
    BeforeCompact {
        preparation: CompactPreparation,
        branch_entries: Vec<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_instructions: Option<String>,
    },
    /// A summary of these messages is about to be made. A hook may add context, replace the prompt or attach data.
    #[serde(rename = "session.compacting")]
    BeforeSummary { session_id: String, messages: Vec<HookMessage> },
    /// The conversation has been compacted.
    #[serde(rename = "session_compact")]
    Compact { compaction_entry: Box<RawValue>, from_extension: bool },
}

impl HookEvent {
    pub fn kind(&self) -> HookKind {
        match self {
            HookEvent::BeforeTree { .. } => HookKind::BeforeTree,
            HookEvent::Tree { .. } => HookKind::Tree,
            HookEvent::BeforeBranch { .. } => HookKind::BeforeBranch,
            HookEvent::Branch { .. } => HookKind::Branch,
            HookEvent::BeforeCompact { .. } => HookKind::BeforeCompact,
            HookEvent::BeforeSummary { .. } => HookKind::BeforeSummary,
            HookEvent::Compact { .. } => HookKind::Compact,
        }
    }
}

/// A move of the leaf.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreePreparation {
    pub target_id: Option<String>,
    pub old_leaf_id: Option<String>,
    pub common_ancestor_id: Option<String>,
    /// The entries of the abandoned branch, oldest first. Of more than 16 MiB the newest are here.
    pub entries_to_summarize: Vec<Box<RawValue>>,
    pub user_wants_summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A compaction that is about to be made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactPreparation {
    pub first_kept_entry_id: String,
    pub messages_to_summarize: Vec<HookMessage>,
    pub tokens_before: u64,
}

/// A message of the conversation, in plain text.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookMessage {
    /// `system`, `user`, `assistant` or `toolResult`.
    pub role: &'static str,
    pub text: String,
}

/// A hook's answer. Members that do not belong to the event have no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookAnswer {
    /// Forbids the change.
    pub cancel: bool,
    /// The reason for forbidding it.
    pub reason: Option<String>,
    /// `session_before_tree`: the summary of the abandoned branch, if one is requested.
    pub summary: Option<HookSummary>,
    /// `session_before_tree`: instructions for the summary, in place of the requested ones.
    pub custom_instructions: Option<String>,
    pub replace_instructions: Option<bool>,
    pub label: Option<String>,
    /// `session_before_compact`: the compaction.
    pub compaction: Option<HookCompaction>,
    /// `session.compacting`: lines of context for the summarizer.
    pub context: Vec<String>,
    /// `session.compacting`: the summarizer's prompt, in place of the usual one.
    pub prompt: Option<String>,
    /// `session.compacting`: added to the entry's details.
    pub preserve_data: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct HookSummary {
    pub summary: String,
    #[serde(default)]
    pub details: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookCompaction {
    pub summary: String,
    /// By default the prepared one.
    #[serde(default)]
    pub first_kept_entry_id: Option<String>,
    #[serde(default)]
    pub tokens_before: Option<u64>,
    #[serde(default)]
    pub details: Option<Value>,
}

/// A program that is called for changes of sessions' trees.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// Its name in messages about failures.
    fn name(&self) -> String;

    fn wants(&self, kind: HookKind) -> bool;

    /// Handles an event. The future is dropped when the user cancels the change.
    ///
    /// An error before a change forbids it: a guard that fails must not let it pass.
    async fn call(&self, event: &HookEvent, at: &HookContext) -> Result<HookAnswer, HookError>;
}

/// The reason why a hook did not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// The session that a hook is called for, and the changes that it can make there.
#[derive(Clone)]
pub struct HookContext {
    host: Weak<HostInner>,
    session: SessionUri,
    chat: ChatId,
}

/// The result of branching off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    pub session: SessionUri,
    /// The text to start the first message with.
    pub text: String,
}

impl std::fmt::Debug for HookContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookContext").field("session", &self.session).field("chat", &self.chat).finish_non_exhaustive()
    }
}

impl HookContext {
    pub fn session(&self) -> &SessionUri {
        &self.session
    }

    /// Creates a session from the conversation before a user message.
    pub async fn branch(&self, entry_id: &str) -> Result<BranchOutcome, HookError> {
        let place = (self.session.clone(), self.chat.clone());
        let (host, failed) = (self.host()?, |error: SessionRequestError| HookError(error.to_string()));
        let cut = TreeRequest::PlanFork { before: Some(entry_id.to_owned()) };
        let asked = host.ask_tree(&place, cut).await.map_err(failed)?;
        let branched = host.branch_off(&place, entry_id.to_owned(), asked).await.map_err(failed)?;
        let text = branched.prefill.map(|prefill| prefill.text).unwrap_or_default();
        Ok(BranchOutcome { session: branched.session, text })
    }

    /// Moves the leaf and returns the new one.
    pub async fn navigate_tree(&self, target_id: Option<&str>, summarize: bool) -> Result<Option<String>, HookError> {
        let place = (self.session.clone(), self.chat.clone());
        let navigate_options = NavigateOptions { summarize, ..NavigateOptions::default() };
        let request = TreeRequest::Navigate { target: target_id.map(str::to_owned), navigate_options };
        let failed = |error: SessionRequestError| HookError(error.to_string());
        let asked = self.host()?.ask_tree(&place, request).await.map_err(failed)?;
        match asked.answer().await.map_err(failed)? {
            TreeAnswer::NavigateOutcome(navigated) => Ok(navigated.leaf),
            _ => Err(gone()),
        }
    }

    /// A token with which an outside program can do the same, as long as the lease is held.
    pub fn lease(&self) -> Result<Lease, HookError> {
        let host = self.host()?;
        let place = (self.session.clone(), self.chat.clone());
        let lease = host.0.leases.grant(host.0.env.random.as_ref(), place);
        lease.map_err(|error| HookError(format!("cannot create a token: {error}")))
    }

    fn host(&self) -> Result<Host, HookError> {
        self.host.upgrade().map(Host).ok_or_else(gone)
    }
}

fn gone() -> HookError {
    HookError("the session is gone".to_owned())
}

/// All hooks of a host. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Arc<Mutex<Vec<Arc<dyn Hook>>>>);

impl Hooks {
    pub(crate) fn add(&self, hook: Arc<dyn Hook>) {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// The hooks for this kind, in the order in which they were added.
    fn of(&self, kind: HookKind) -> Vec<Arc<dyn Hook>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|hook| hook.wants(kind)).cloned().collect()
    }

    /// The hooks for one chat of a session.
    pub(crate) fn at(&self, host: Weak<HostInner>, session: SessionUri, chat: ChatId) -> ChatHooks {
        ChatHooks { hooks: self.clone(), place: HookContext { host, session, chat } }
    }
}

/// The hooks, as one chat of a session calls them.
#[derive(Clone)]
pub(crate) struct ChatHooks {
    hooks: Hooks,
    place: HookContext,
}

impl ChatHooks {
    pub(crate) fn are_any(&self, kind: HookKind) -> bool {
        !self.hooks.of(kind).is_empty()
    }

    /// Asks all, one after another, until one forbids the change.
    ///
    /// A later answer replaces an earlier one.
    pub(crate) async fn ask(&self, event: &HookEvent) -> Result<HookAnswer, TreeError> {
        let mut all = HookAnswer::default();
        for hook in self.hooks.of(event.kind()) {
            let by = hook.name();
            let answer = match hook.call(event, &self.place).await {
                Ok(answer) => answer,
                Err(error) => return Err(TreeError::HookFailed { by, error }),
            };
            if answer.cancel {
                let reason = answer.reason.unwrap_or_else(|| "it gave no reason".to_owned());
                return Err(TreeError::Forbidden { by, reason });
            }
            all.summary = answer.summary.or(all.summary);
            all.custom_instructions = answer.custom_instructions.or(all.custom_instructions);
            all.replace_instructions = answer.replace_instructions.or(all.replace_instructions);
            all.label = answer.label.or(all.label);
            all.compaction = answer.compaction.or(all.compaction);
            all.context.extend(answer.context);
            all.prompt = answer.prompt.or(all.prompt);
            all.preserve_data = answer.preserve_data.or(all.preserve_data);
        }
        Ok(all)
    }

    /// Notifies all of a change that has happened.
    pub(crate) async fn tell(&self, event: &HookEvent) {
        for hook in self.hooks.of(event.kind()) {
            if let Err(error) = hook.call(event, &self.place).await {
                let (hook, event) = (hook.name(), event.kind().as_str());
                tracing::warn!(session = %self.place.session, %hook, %event, %error, "a hook failed");
            }
        }
    }
}
