//! Those who want to know what happens to sessions' trees, and to have a say in it.
//!
//! A [`Hook`] is asked before the leaf moves, before a session branches off and before a conversation is compacted, and
//! told afterwards. Before, it may forbid it or give the summary. It is asked outside of the session's task: the session
//! goes on meanwhile, and nothing of it has changed.

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

/// What a hook can be called for.
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

/// What is about to happen, or has happened. Entries are as they stand in the log.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum HookEvent {
    /// The leaf is to move. It may be forbidden, and a summary that is wanted be given.
    #[serde(rename = "session_before_tree")]
    BeforeTree { preparation: TreePreparation },
    /// It has moved.
    #[serde(rename = "session_tree")]
    Tree {
        new_leaf_id: Option<String>,
        old_leaf_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_entry: Option<Box<RawValue>>,
        /// Whether a hook gave the summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_extension: Option<bool>,
    },
    /// A session is to branch off from this message. It may be forbidden.
    #[serde(rename = "session_before_branch")]
    BeforeBranch { entry_id: String },
    /// It has.
    #[serde(rename = "session_branch")]
    Branch {
        /// The log that it comes from, in its store.
        previous_session_file: String,
        /// The new session's URI.
        session: String,
    },
    /// The conversation is to be compacted. It may be forbidden, or the compaction be given.
    #[serde(rename = "session_before_compact")]
    BeforeCompact {
        preparation: CompactPreparation,
        branch_entries: Vec<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_instructions: Option<String>,
    },
    /// A summary of this is about to be made. Context may be added, the prompt replaced, data be attached.
    #[serde(rename = "session.compacting")]
    BeforeSummary { session_id: String, messages: Vec<HookMessage> },
    /// It has been compacted.
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

/// A way through the tree.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreePreparation {
    pub target_id: Option<String>,
    pub old_leaf_id: Option<String>,
    pub common_ancestor_id: Option<String>,
    /// What is left behind, the oldest first. Of more than 16 MiB the newest are here.
    pub entries_to_summarize: Vec<Box<RawValue>>,
    pub user_wants_summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A compaction to be made.
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

/// What a hook has to say. What does not concern what it was asked has no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookAnswer {
    /// It must not happen.
    pub cancel: bool,
    /// Why not.
    pub reason: Option<String>,
    /// `session_before_tree`: the summary of what is left, where one is wanted.
    pub summary: Option<HookSummary>,
    /// `session_before_tree`: what the summary should look at, in place of what was wanted.
    pub custom_instructions: Option<String>,
    pub replace_instructions: Option<bool>,
    pub label: Option<String>,
    /// `session_before_compact`: the compaction.
    pub compaction: Option<HookCompaction>,
    /// `session.compacting`: lines that the summarizer should know.
    pub context: Vec<String>,
    /// `session.compacting`: what the summarizer is told in place of the usual.
    pub prompt: Option<String>,
    /// `session.compacting`: goes into the entry's details.
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
    /// Without one, what was prepared.
    #[serde(default)]
    pub first_kept_entry_id: Option<String>,
    #[serde(default)]
    pub tokens_before: Option<u64>,
    #[serde(default)]
    pub details: Option<Value>,
}

/// Somebody who wants to be asked and told.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// How it is called where it is to blame.
    fn name(&self) -> String;

    fn wants(&self, kind: HookKind) -> bool;

    /// Called with what happens, and with what it can do about it. The future is dropped when the person does not want
    /// it any more. An error before something happens forbids it: whoever asked for a guard wants to be guarded.
    async fn call(&self, event: &HookEvent, at: &HookContext) -> Result<HookAnswer, HookError>;
}

/// Why a hook did not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// The session that a hook is called for, and what it can do there.
#[derive(Clone)]
pub struct HookContext {
    host: Weak<HostInner>,
    session: SessionUri,
    chat: ChatId,
}

/// What came of a session that branched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    pub session: SessionUri,
    /// The message to begin with.
    pub text: String,
}

impl std::fmt::Debug for HookContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookPlace").field("session", &self.session).field("chat", &self.chat).finish_non_exhaustive()
    }
}

impl HookContext {
    pub fn session(&self) -> &SessionUri {
        &self.session
    }

    /// Makes a new session with what was said before a message of the user.
    pub async fn branch(&self, entry_id: &str) -> Result<BranchOutcome, HookError> {
        let place = (self.session.clone(), self.chat.clone());
        let (host, failed) = (self.host()?, |error: SessionRequestError| HookError(error.to_string()));
        let cut = TreeRequest::PlanFork { before: Some(entry_id.to_owned()) };
        let asked = host.ask_tree(&place, cut).await.map_err(failed)?;
        let branched = host.branch_off(&place, entry_id.to_owned(), asked).await.map_err(failed)?;
        let text = branched.prefill.map(|prefill| prefill.text).unwrap_or_default();
        Ok(BranchOutcome { session: branched.session, text })
    }

    /// Moves the leaf, and gives where it is then.
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

    /// A token with which a program outside can do the same for as long as this is kept.
    pub fn lease(&self) -> Result<Lease, HookError> {
        let host = self.host()?;
        let place = (self.session.clone(), self.chat.clone());
        let lease = host.0.leases.grant(host.0.env.random.as_ref(), place);
        lease.map_err(|error| HookError(format!("no token could be made for it: {error}")))
    }

    fn host(&self) -> Result<Host, HookError> {
        self.host.upgrade().map(Host).ok_or_else(gone)
    }
}

fn gone() -> HookError {
    HookError("the session is gone".to_owned())
}

/// All hooks of a host. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Arc<Mutex<Vec<Arc<dyn Hook>>>>);

impl Hooks {
    pub(crate) fn add(&self, hook: Arc<dyn Hook>) {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards whole data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// Those who want to be called for this, in the order in which they came.
    fn of(&self, kind: HookKind) -> Vec<Arc<dyn Hook>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|hook| hook.wants(kind)).cloned().collect()
    }

    /// The same for one chat of a session.
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

    /// Asks all, one after the other. What a later one says takes the place of what an earlier one said; who forbids it
    /// ends it.
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

    /// Tells all that something has happened, which nobody can change any more.
    pub(crate) async fn tell(&self, event: &HookEvent) {
        for hook in self.hooks.of(event.kind()) {
            if let Err(error) = hook.call(event, &self.place).await {
                let (hook, event) = (hook.name(), event.kind().as_str());
                tracing::warn!(session = %self.place.session, %hook, %event, %error, "a hook failed");
            }
        }
    }
}
