//! Summaries at the leaf: merges of another branch, and compactions of the older part of this one.

use std::sync::Arc;

use grove_agents::{Summarizer, SummaryRequest};
use grove_core::*;
use grove_storage::chat_log::{LogSnapshot, raw_line};
use grove_tree::compaction::{self, CompactionPlan, SummaryKind, SummaryOptions, summary_prompt};
use grove_tree::conversation::{Block, MessageRole, ModelMessage, messages_of};
use grove_tree::entries::{Compaction, SummaryOrigin};
use grove_tree::navigate::{self, OtherBranchError};
use grove_tree::tree_edit::{self, NewEntry, TreeEdit, TreeEditError};
use grove_tree::{EntryNo, LogIndex};
use serde_json::json;
use serde_json::value::RawValue;

use super::navigation::GeneratedSummary;
use super::operation::{NewTurnPolicy, OperationStart, PreparedOperation};
use super::{TreeError, TreeReply, answered, leaf_of};
use crate::hooks::{ChatHooks, CompactPreparation, HookEvent, HookKind, HookMessage};
use crate::sequencer::HostStopped;
use crate::session::SessionTask;

/// The part of a conversation that a summarizer gets, in bytes, if its window is unknown.
pub const DEFAULT_TRANSCRIPT_BYTES: u64 = 256 << 10;
/// The estimated bytes of a token, and the percentage of a summarizer's window that is filled.
const BYTES_PER_TOKEN: u64 = 4;
const WINDOW_PERCENT: u64 = 60;
/// The bytes of entries that a hook gets. Of more, the newest.
pub const HOOK_BYTES: usize = 16 << 20;

/// The data for asking a summarizer of this session.
pub(super) struct SummarizerContext {
    agent: String,
    model: Option<ModelId>,
    working_directories: Vec<String>,
    settings: Extra,
    /// The part of the conversation that it gets, in bytes.
    limit: usize,
}

/// A merge that is ready to be applied.
pub(super) struct PreparedMerge {
    /// The leaf for which it was made.
    leaf: Option<String>,
    summary: GeneratedSummary,
}

/// A compaction that is ready to be applied.
pub(super) struct PreparedCompaction {
    leaf: Option<String>,
    summary: GeneratedSummary,
    first_kept: Option<String>,
    tokens_before: u64,
}

/// The result of merging a summary of another branch into this one.
#[derive(Debug)]
pub struct MergeOutcome {
    pub entry: String,
    pub summary: String,
    pub leaf: Option<String>,
}

/// The result of replacing the older part of a conversation by a summary.
#[derive(Debug)]
pub struct CompactionOutcome {
    pub entry: String,
    pub summary: String,
    pub first_kept: Option<String>,
    pub tokens_before: u64,
}

impl SummarizerContext {
    pub(super) fn no_model(&self) -> TreeError {
        TreeError::NoModel { agent: self.agent.clone() }
    }

    pub(super) async fn summarize(
        &self,
        summarizer: &dyn Summarizer,
        summary_options: &SummaryOptions<'_>,
        messages: &[ModelMessage],
    ) -> Result<String, TreeError> {
        let request = SummaryRequest {
            prompt: summary_prompt(summary_options, messages, self.limit),
            instructions: summary_options.instructions.map(str::to_owned),
            model: self.model.clone(),
            working_directories: self.working_directories.clone(),
            settings: self.settings.clone(),
        };
        let summary = summarizer.summarize(request).await?;
        if summary.trim().is_empty() {
            return Err(TreeError::EmptySummary { agent: self.agent.clone() });
        }
        Ok(summary)
    }
}

impl SessionTask {
    pub(super) fn summarizer_context(&self, chat: &ChatId) -> SummarizerContext {
        let window = self.context_use(chat).map(|used| used.size * BYTES_PER_TOKEN * WINDOW_PERCENT / 100);
        SummarizerContext {
            agent: self.tip.agent.to_string(),
            model: self.tip.model.clone(),
            working_directories: self.tip.working_directories.clone(),
            settings: self.tip.config.as_ref().map(|config| config.values.clone()).unwrap_or_default(),
            limit: usize::try_from(window.unwrap_or(DEFAULT_TRANSCRIPT_BYTES)).unwrap_or(usize::MAX),
        }
    }

    /// The fill level of the model's window at the last turn's end, as far as it is known.
    fn context_use(&self, chat: &ChatId) -> Option<ContextUsage> {
        let usage = self.tip.chat(chat)?.turns.last()?.usage.as_ref()?;
        if let Some(context) = usage.context {
            return Some(context).filter(|context| context.size > 0);
        }
        let agents = self.session_context.agents.borrow().clone();
        let agent = agents.iter().find(|agent| agent.id == self.tip.agent)?;
        let model = usage.model.as_ref().or(self.tip.model.as_ref())?;
        let size = agent.models.iter().find(|known| known.id == *model)?.max_context_window.filter(|size| *size > 0)?;
        Some(ContextUsage { used: usage.input_tokens? + usage.output_tokens.unwrap_or(0), size })
    }

    /// Says whether the chat's conversation nearly fills the model's window, and the agent does not manage that itself.
    pub(in crate::session) fn is_full(&self, chat: &ChatId) -> bool {
        let share = self.session_context.config.compaction.at_percent;
        let is_full = |used: ContextUsage| used.used.saturating_mul(100) >= used.size.saturating_mul(u64::from(share));
        share > 0
            && !self.agents.agent().manages_context_window()
            && self.agents.agent().summarizer().is_some()
            && self.context_use(chat).is_some_and(is_full)
    }

    /// Compacts the chats whose last turn filled the window. Their queued turns wait for it.
    pub(in crate::session) async fn compact_full(&mut self) -> Result<(), HostStopped> {
        for chat in self.operations.full() {
            let seen = self.look(&chat).await;
            self.operations.unmark_full(&chat);
            match seen {
                Ok(seen) if !self.operations.is_running(&chat) => self.compact(&chat, seen, None, None, None).await?,
                Ok(_) => {}
                Err(error) => tracing::warn!(session = %self.tip.id, %error, "a conversation was not compacted"),
            }
            // If no operation was started, the waiting turn must not wait forever.
            if !self.operations.is_running(&chat) {
                self.prompt_waiting(&chat);
            }
        }
        Ok(())
    }

    pub(super) async fn compact(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        instructions: Option<String>,
        keep: Option<u64>,
        done: Option<TreeReply>,
    ) -> Result<(), HostStopped> {
        // The host's own operation may run while a turn waits for it.
        let free = match done {
            Some(_) => self.require_no_operation(chat),
            None => Ok(()),
        };
        let hooks = self.hooks(chat);
        let (summarizer_context, summarizer) = (self.summarizer_context(chat), self.agents.agent().summarizer());
        let refused = match (free, &seen) {
            (Err(error), _) => Some(error),
            (Ok(()), None) => Some(TreeError::NothingToCompact),
            (Ok(()), Some(_)) if summarizer.is_none() && !hooks.are_any(HookKind::BeforeCompact) => {
                Some(summarizer_context.no_model())
            }
            (Ok(()), Some(_)) => None,
        };
        let (Some(seen), None) = (seen, &refused) else {
            return match (done, refused) {
                (Some(done), Some(error)) => answered(done, Err(error)),
                _ => Ok(()),
            };
        };
        let keep = keep.unwrap_or(self.session_context.config.compaction.keep_tokens);
        let session = self.tip.id.to_string();
        let beginning = OperationStart {
            new_turn_policy: NewTurnPolicy::WaitForOperation,
            shown: Some("compacting the conversation"),
            done,
        };
        let work = async move {
            let compacting =
                compacting(&seen, keep, instructions, session, &hooks, summarizer, &summarizer_context).await?;
            Ok(PreparedOperation::Compact(Box::new(compacting)))
        };
        self.start_operation(chat, beginning, work).await
    }

    pub(super) async fn finish_compaction(
        &mut self,
        chat: &ChatId,
        compacting: PreparedCompaction,
    ) -> Result<Result<CompactionOutcome, TreeError>, HostStopped> {
        let PreparedCompaction { leaf, mut summary, first_kept, tokens_before } = compacting;
        let checkpoint = self.add_checkpoint(&summary.text).await;
        if let Some(checkpoint) = &checkpoint {
            summary.details = Some(checkpoint.added_to(summary.details.take()));
        }
        let plan = |index: &LogIndex, new: NewEntry<'_>| {
            let compaction = Compaction {
                summary: &summary.text,
                first_kept: first_kept.as_deref(),
                tokens_before,
                details: summary.details.as_ref(),
                origin: summary.origin,
            };
            tree_edit::compact(index, &compaction, new)
        };
        let (entry, line) = match self.append_summary(chat, leaf, plan).await? {
            Ok(appended) => appended,
            Err(error) => {
                if let Some(checkpoint) = &checkpoint {
                    self.drop_checkpoint(checkpoint).await;
                }
                return Ok(Err(error));
            }
        };
        if checkpoint.is_some() {
            self.relist_checkpoints(chat).await?;
        }
        let from_extension = summary.origin == SummaryOrigin::Extension;
        if let Some(compaction_entry) = line {
            self.tell(chat, HookEvent::Compact { compaction_entry, from_extension });
        }
        Ok(Ok(CompactionOutcome { entry, summary: summary.text, first_kept, tokens_before }))
    }

    pub(super) async fn merge(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        from: String,
        instructions: Option<String>,
        done: TreeReply,
    ) -> Result<(), HostStopped> {
        let Some(seen) = seen else { return answered(done, Err(TreeEditError::UnknownEntry { id: from }.into())) };
        if let Err(error) = self.require_no_operation(chat) {
            return answered(done, Err(error));
        }
        let summarizer_context = self.summarizer_context(chat);
        let Some(summarizer) = self.agents.agent().summarizer() else {
            return answered(done, Err(summarizer_context.no_model()));
        };
        let other = match navigate::other_branch(&seen.index, &from) {
            Ok(other) => other,
            Err(OtherBranchError::TreeEdit(error)) => return answered(done, Err(error.into())),
            Err(OtherBranchError::OnActiveBranch { id }) => {
                return answered(done, Err(TreeError::OnActiveBranch { id }));
            }
        };
        let beginning = OperationStart {
            new_turn_policy: NewTurnPolicy::AbortOperation,
            shown: Some("summarizing another branch"),
            done: Some(done),
        };
        let work = async move {
            let leaf = leaf_of(&seen.index);
            let (end, entries) = (other.end, other.entries);
            let messages = seen.with(move |index, source| messages_of(index, source, end, &entries)).await??;
            if messages.is_empty() {
                return Err(TreeError::NothingToMerge { id: from });
            }
            let summary_options = SummaryOptions {
                of: SummaryKind::Branch,
                instructions: instructions.as_deref(),
                replaces: false,
                context: &[],
            };
            let text = summarizer_context.summarize(summarizer.as_ref(), &summary_options, &messages).await?;
            let ancestor = other.ancestor.map(|ancestor| seen.index.id(ancestor));
            let details = json!({"mergedFrom": {"entryId": from, "commonAncestorId": ancestor}});
            let summary = GeneratedSummary { text, details: Some(details), origin: SummaryOrigin::Host };
            Ok(PreparedOperation::Merge(Box::new(PreparedMerge { leaf, summary })))
        };
        self.start_operation(chat, beginning, work).await
    }

    pub(super) async fn finish_merge(
        &mut self,
        chat: &ChatId,
        merging: PreparedMerge,
    ) -> Result<Result<MergeOutcome, TreeError>, HostStopped> {
        let PreparedMerge { leaf, summary } = merging;
        let at = leaf.clone();
        let plan = |index: &LogIndex, new: NewEntry<'_>| {
            let details = summary.details.as_ref();
            tree_edit::branch_with_summary(index, at.as_deref(), &summary.text, details, summary.origin, new)
        };
        Ok(self.append_summary(chat, leaf, plan).await?.map(|(entry, _)| MergeOutcome {
            leaf: Some(entry.clone()),
            entry,
            summary: summary.text,
        }))
    }

    /// Appends an entry at the leaf for which it was made, and restarts the agent with the new conversation.
    async fn append_summary(
        &mut self,
        chat: &ChatId,
        leaf: Option<String>,
        plan: impl FnOnce(&LogIndex, NewEntry<'_>) -> Result<TreeEdit, TreeEditError>,
    ) -> Result<Result<(String, Option<Box<RawValue>>), TreeError>, HostStopped> {
        let planned = async {
            let seen = self.look(chat).await?.ok_or(TreeError::WentOn)?;
            if leaf_of(&seen.index) != leaf {
                return Err(TreeError::WentOn);
            }
            let mut index = LogIndex::clone(&seen.index);
            let id = self.new_entry_id(&index);
            let plan = plan(&index, NewEntry { id: &id, at: self.session_context.env.clock.now() })?;
            let line = plan.line.as_deref().and_then(raw_line);
            let mut entries = Vec::new();
            self.plan_into(chat, plan, &mut index, &mut entries)?;
            Ok((id, line, entries))
        };
        let (id, line, entries) = match planned.await {
            Ok(planned) => planned,
            Err(error) => return Ok(Err(error)),
        };
        let command = HostCommand::AddEntries { chat: chat.clone(), entries, resets_agent: true };
        Ok(match self.attempt(command, None).await? {
            Ok(_) => {
                self.agents.restart(chat, self.session_context.env.spawn.as_ref());
                Ok((id, line))
            }
            Err(refused) => Err(TreeError::Refused(refused)),
        })
    }
}

/// Plans a compaction, asks the hooks, and has the summary made if no hook supplies it.
async fn compacting(
    seen: &LogSnapshot,
    keep: u64,
    mut instructions: Option<String>,
    session: String,
    hooks: &ChatHooks,
    summarizer: Option<Arc<dyn Summarizer>>,
    summarizer_context: &SummarizerContext,
) -> Result<PreparedCompaction, TreeError> {
    let plan = seen.with(move |index, source| compaction::plan(index, source, index.leaf(), keep)).await??;
    let plan = plan.ok_or(TreeError::NothingToCompact)?;
    let leaf = leaf_of(&seen.index);
    let first_kept = seen.index.id(plan.first_kept).into_owned();
    if hooks.are_any(HookKind::BeforeCompact) {
        let answer = hooks.ask(&before_compact(seen, &plan, instructions.clone()).await?).await?;
        instructions = answer.custom_instructions.or(instructions);
        if let Some(given) = answer.compaction {
            let summary =
                GeneratedSummary { text: given.summary, details: given.details, origin: SummaryOrigin::Extension };
            let first_kept = Some(given.first_kept_entry_id.unwrap_or(first_kept));
            let tokens_before = given.tokens_before.unwrap_or(plan.tokens_before);
            return Ok(PreparedCompaction { leaf, summary, first_kept, tokens_before });
        }
    }
    let summarizer = summarizer.ok_or_else(|| summarizer_context.no_model())?;
    let (mut context, mut details, mut replaces) = (Vec::new(), None, false);
    if hooks.are_any(HookKind::BeforeSummary) {
        let event = HookEvent::BeforeSummary { session_id: session, messages: hook_messages(&plan.messages) };
        let answer = hooks.ask(&event).await?;
        context = answer.context;
        details = answer.preserve_data.map(|data| json!({"preserveData": data}));
        replaces = answer.prompt.is_some();
        instructions = answer.prompt.or(instructions);
    }
    let summary_options =
        SummaryOptions { of: SummaryKind::Past, instructions: instructions.as_deref(), replaces, context: &context };
    let text = summarizer_context.summarize(summarizer.as_ref(), &summary_options, &plan.messages).await?;
    let summary = GeneratedSummary { text, details, origin: SummaryOrigin::Host };
    Ok(PreparedCompaction { leaf, summary, first_kept: Some(first_kept), tokens_before: plan.tokens_before })
}

async fn before_compact(
    seen: &LogSnapshot,
    plan: &CompactionPlan,
    custom_instructions: Option<String>,
) -> Result<HookEvent, TreeError> {
    let branch = seen.index.leaf().map(|leaf| seen.index.branch(leaf)).unwrap_or_default();
    Ok(HookEvent::BeforeCompact {
        preparation: CompactPreparation {
            first_kept_entry_id: seen.index.id(plan.first_kept).into_owned(),
            messages_to_summarize: hook_messages(&plan.messages),
            tokens_before: plan.tokens_before,
        },
        branch_entries: seen.lines(within(&seen.index, &branch)).await?,
        custom_instructions,
    })
}

/// The newest of some entries, as many as a hook gets.
pub(super) fn within<'a>(index: &LogIndex, entries: &'a [EntryNo]) -> &'a [EntryNo] {
    let mut bytes = 0;
    let fit = entries.iter().rev().take_while(|entry| {
        bytes += index.length(**entry);
        bytes <= HOOK_BYTES
    });
    &entries[entries.len() - fit.count()..]
}

/// Messages for hooks: the newest, as many as fit.
fn hook_messages(messages: &[ModelMessage]) -> Vec<HookMessage> {
    let mut bytes = 0;
    let mut newest: Vec<_> = messages
        .iter()
        .rev()
        .map(hook_message)
        .take_while(|message| {
            bytes += message.text.len();
            bytes <= HOOK_BYTES
        })
        .collect();
    newest.reverse();
    newest
}

fn hook_message(message: &ModelMessage) -> HookMessage {
    let role = match message.speaker {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool { .. } => "toolResult",
    };
    let texts = message.content.iter().map(|block| match block {
        Block::Text(text) | Block::Thinking(text) => text.clone(),
        Block::Image { mime_type, .. } => format!("[an image, {mime_type}]"),
        Block::Call { name, arguments, .. } => format!("[calls {name} with {arguments}]"),
    });
    HookMessage { role, text: texts.collect::<Vec<_>>().join("\n") }
}
