//! Navigation in a chat's tree: asks hooks, summarizes the abandoned branch if requested, then moves the leaf.

use std::sync::Arc;

use grove_agents::Summarizer;
use grove_core::*;
use grove_storage::ActionOrigin as Action;
use grove_storage::chat_log::{LogSnapshot, raw_line};
use grove_storage::settings::restored_at;
use grove_tree::compaction::{SummaryKind, SummaryOptions};
use grove_tree::conversation::messages_of;
use grove_tree::entries;
use grove_tree::navigate::{self, Navigation, NavigationTarget, TreePreparation};
use grove_tree::tree_edit::{self, NewEntry, TreeEditError};
use grove_tree::turns::{self, EntryRange};
use grove_tree::{EntryNo, LogIndex};
use serde_json::Value;
use serde_json::value::RawValue;

use super::operation::{NewTurnPolicy, OperationStart, PreparedOperation};
use super::summarize::{SummarizerContext, within};
use super::{NavigateOptions, NavigateOutcome, TreeAnswer, TreeError, TreeReply, answered, leaf_of};
use crate::hooks::{self, ChatHooks, HookEvent, HookKind};
use crate::sequencer::HostStopped;
use crate::session::{CommandOutcome, SessionTask};

/// A navigation that no hook forbids.
pub(super) struct PreparedNavigation {
    preparation: TreePreparation,
    summary: Option<GeneratedSummary>,
    landing: LandingMode,
    /// The client's action that requested it, if any.
    origin: Option<Action>,
}

/// The position at which a navigation ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LandingMode {
    /// Before a user message, which is returned for editing.
    BeforeMessages,
    /// After the entry, whatever it is.
    Behind,
}

/// A summary of the abandoned branch.
pub(super) struct GeneratedSummary {
    pub(super) text: String,
    pub(super) details: Option<Value>,
    pub(super) origin: entries::SummaryOrigin,
}

/// A prepared move of the leaf.
struct LeafMove {
    turns: Vec<Arc<Turn>>,
    older: bool,
    entries: Vec<LogEntry>,
    settings: RestoredSettings,
    /// Says whether the leaf moves. An unmoved one may still be labelled.
    moves: bool,
    navigated: NavigateOutcome,
    summary_line: Option<Box<RawValue>>,
}

impl SessionTask {
    pub(super) async fn navigate(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        target: Option<String>,
        navigate_options: NavigateOptions,
        done: TreeReply,
    ) -> Result<(), HostStopped> {
        let here = |leaf| NavigateOutcome { moved: false, leaf, prefill: None, summary_entry: None };
        let Some(seen) = seen else {
            return answered(
                done,
                match target {
                    None => Ok(TreeAnswer::NavigateOutcome(here(None))),
                    Some(id) => Err(TreeEditError::UnknownEntry { id }.into()),
                },
            );
        };
        let label = navigate_options.label.clone();
        let preparation = match navigate::prepare(&seen.index, target.as_deref(), navigate_options) {
            Ok(Navigation::MoveTo(preparation)) => preparation,
            Ok(Navigation::AlreadyThere) => {
                // A navigation to the current position may still set a label.
                let answer = match (target, label) {
                    (Some(target), Some(label)) => {
                        let labelled = self.label(chat, Some(seen), &target, Some(&label)).await?;
                        labelled.map(|labelled| match labelled {
                            TreeAnswer::Labelled { leaf } => TreeAnswer::NavigateOutcome(here(leaf)),
                            other => other,
                        })
                    }
                    _ => Ok(TreeAnswer::NavigateOutcome(here(leaf_of(&seen.index)))),
                };
                return answered(done, answer);
            }
            Err(error) => return answered(done, Err(error.into())),
        };
        let hooks = self.hooks(chat);
        let asks = hooks.are_any(HookKind::BeforeTree);
        if let Err(error) = self.require_no_operation(chat) {
            return answered(done, Err(error));
        }
        if !asks && !preparation.user_wants_summary {
            let prepared_navigation =
                PreparedNavigation { preparation, summary: None, landing: LandingMode::BeforeMessages, origin: None };
            let answer = self.leave(chat, prepared_navigation).await?.map(TreeAnswer::NavigateOutcome);
            return answered(done, answer);
        }
        let summarizer_context = self.summarizer_context(chat);
        let summarizer = match (preparation.user_wants_summary, self.agents.agent().summarizer()) {
            // A hook may supply it.
            (true, None) if !asks => return answered(done, Err(summarizer_context.no_model())),
            (_, summarizer) => summarizer,
        };
        let shown = preparation.user_wants_summary.then_some("summarizing the abandoned branch");
        let beginning = OperationStart { new_turn_policy: NewTurnPolicy::AbortOperation, shown, done: Some(done) };
        let work = async move {
            let prepared_navigation = settle(preparation, &seen, &hooks, summarizer, &summarizer_context).await?;
            Ok(PreparedOperation::Navigate(Box::new(prepared_navigation)))
        };
        self.start_operation(chat, beginning, work).await
    }

    /// Moves the leaf after an entry, or before the first one, for a client's action. Returns whether it has moved.
    pub(in crate::session) async fn move_leaf_behind(
        &mut self,
        chat: &ChatId,
        seen: &LogSnapshot,
        entry: Option<EntryNo>,
        origin: Action,
    ) -> Result<Result<bool, TreeError>, HostStopped> {
        let target = entry.map(|entry| seen.index.id(entry));
        let preparation = match navigate::prepare(&seen.index, target.as_deref(), NavigateOptions::default()) {
            Ok(Navigation::MoveTo(preparation)) => preparation,
            Ok(Navigation::AlreadyThere) => return Ok(Ok(false)),
            Err(error) => return Ok(Err(error.into())),
        };
        if let Err(error) = self.require_no_operation(chat) {
            return Ok(Err(error));
        }
        // An action is applied or refused at once, and a hook may take long.
        if self.hooks(chat).are_any(HookKind::BeforeTree) {
            return Ok(Err(TreeError::MustAsk));
        }
        let prepared_navigation =
            PreparedNavigation { preparation, summary: None, landing: LandingMode::Behind, origin: Some(origin) };
        Ok(self.leave(chat, prepared_navigation).await?.map(|navigated| navigated.moved))
    }

    /// Moves the leaf.
    pub(super) async fn leave(
        &mut self,
        chat: &ChatId,
        prepared_navigation: PreparedNavigation,
    ) -> Result<Result<NavigateOutcome, TreeError>, HostStopped> {
        let (old_leaf_id, from_extension) = (
            prepared_navigation.preparation.old_leaf_id.clone(),
            prepared_navigation.summary.as_ref().map(|summary| summary.origin == entries::SummaryOrigin::Extension),
        );
        let action = prepared_navigation.origin.clone();
        let navigation = match self.prepare(chat, prepared_navigation).await {
            Ok(navigation) => navigation,
            Err(error) => return Ok(Err(error)),
        };
        let LeafMove { turns, older, entries, settings, moves, navigated, summary_line } = navigation;
        if !moves {
            let command = HostCommand::AddEntries { chat: chat.clone(), entries, resets_agent: false };
            return Ok(self.attempt(command, None).await?.map(|_| navigated).map_err(TreeError::from));
        }
        self.logs.note(chat, &turns);
        let command = HostCommand::MoveLeaf { chat: chat.clone(), turns, older, entries, settings };
        match self.attempt(command, action).await? {
            Ok(CommandOutcome::Happened | CommandOutcome::NoChange) => {
                self.agents.restart(chat, self.session_context.env.spawn.as_ref());
                self.relist_checkpoints(chat).await?;
                let new_leaf_id = navigated.leaf.clone();
                self.tell(
                    chat,
                    HookEvent::Tree { new_leaf_id, old_leaf_id, summary_entry: summary_line, from_extension },
                );
                Ok(Ok(navigated))
            }
            Err(refused) => Ok(Err(TreeError::Refused(refused))),
        }
    }

    /// Prepares the entries to write, and the turns that clients see then.
    async fn prepare(&mut self, chat: &ChatId, prepared_navigation: PreparedNavigation) -> Result<LeafMove, TreeError> {
        let PreparedNavigation { preparation, summary, landing: lands, .. } = prepared_navigation;
        let seen = self.look(chat).await?.ok_or(TreeError::WentOn)?;
        if leaf_of(&seen.index) != preparation.old_leaf_id {
            return Err(TreeError::WentOn);
        }
        let landing = match preparation.target_id.as_deref() {
            None => NavigationTarget { leaf: None, prefill: None },
            Some(target) => {
                let target = tree_edit::find(&seen.index, target)?;
                if lands == LandingMode::Behind {
                    NavigationTarget { leaf: Some(target), prefill: None }
                } else {
                    seen.with(move |index, source| navigate::resolve_target(index, source, target)).await??
                }
            }
        };
        let mut index = LogIndex::clone(&seen.index);
        let mut entries = Vec::new();
        let id = self.new_entry_id(&index);
        let new = NewEntry { id: &id, at: self.session_context.env.clock.now() };
        let to = landing.leaf.map(|leaf| seen.index.id(leaf));
        let plan = match (&summary, to.as_deref()) {
            (Some(GeneratedSummary { text, details, origin }), to) => {
                tree_edit::branch_with_summary(&index, to, text, details.as_ref(), *origin, new)?
            }
            (None, None) => tree_edit::reset_leaf(&index, new),
            (None, Some(to)) => tree_edit::branch(&index, to, new)?,
        };
        let summary_entry = summary.is_some().then(|| id.clone());
        let summary_line = plan.line.as_deref().filter(|_| summary.is_some()).and_then(raw_line);
        // Going to a message ends at its parent, which may already be the leaf.
        let moves = summary.is_some() || landing.leaf != seen.index.leaf();
        if moves {
            self.plan_into(chat, plan, &mut index, &mut entries)?;
        }
        if let (Some(label), Some(target)) = (&preparation.label, preparation.target_id.as_deref()) {
            let id = self.new_entry_id(&index);
            let new = NewEntry { id: &id, at: self.session_context.env.clock.now() };
            let plan = tree_edit::label(&index, target, Some(label), new)?;
            self.plan_into(chat, plan, &mut index, &mut entries)?;
        }
        // Planned entries are in no file yet, and contain no turn.
        let shown = EntryRange::to(landing.leaf).above(self.floor(chat, &seen.index));
        let window = turns::newest_turns_in(seen.fs.as_ref(), &seen.path, &seen.index, shown, self.window()).await?;
        let settings = restored_at(&self.tip, seen.fs.as_ref(), &seen.path, &seen.index, landing.leaf).await?;
        let navigated =
            NavigateOutcome { moved: moves, leaf: leaf_of(&index), prefill: landing.prefill, summary_entry };
        Ok(LeafMove { turns: window.turns, older: window.older, entries, settings, moves, navigated, summary_line })
    }

    /// Notifies hooks of a change.
    pub(super) fn tell(&self, chat: &ChatId, event: HookEvent) {
        let hooks = self.hooks(chat);
        if hooks.are_any(event.kind()) {
            self.session_context.env.spawn.spawn(Box::pin(async move { hooks.tell(&event).await }));
        }
    }
}

/// Asks the hooks, and summarizes the abandoned branch if requested and no hook supplies the summary.
async fn settle(
    mut preparation: TreePreparation,
    seen: &LogSnapshot,
    hooks: &ChatHooks,
    summarizer: Option<Arc<dyn Summarizer>>,
    summarizer_context: &SummarizerContext,
) -> Result<PreparedNavigation, TreeError> {
    let left = preparation.entries_to_summarize.clone();
    let mut summary = None;
    if hooks.are_any(HookKind::BeforeTree) {
        let event = HookEvent::BeforeTree { preparation: hook_preparation(&preparation, seen).await? };
        let answer = hooks.ask(&event).await?;
        preparation.custom_instructions = answer.custom_instructions.or(preparation.custom_instructions);
        preparation.replace_instructions = answer.replace_instructions.unwrap_or(preparation.replace_instructions);
        preparation.label = answer.label.or(preparation.label);
        let given = answer.summary.filter(|_| preparation.user_wants_summary);
        summary = given.map(|given| GeneratedSummary {
            text: given.summary,
            details: given.details,
            origin: entries::SummaryOrigin::Extension,
        });
    }
    if preparation.user_wants_summary && summary.is_none() && !left.is_empty() {
        let summarizer = summarizer.ok_or_else(|| summarizer_context.no_model())?;
        let text = summary_of(seen, &left, &preparation, summarizer.as_ref(), summarizer_context).await?;
        summary = text.map(|text| GeneratedSummary { text, details: None, origin: entries::SummaryOrigin::Host });
    }
    Ok(PreparedNavigation { preparation, summary, landing: LandingMode::BeforeMessages, origin: None })
}

/// Summarizes a branch; `None` if it contains no messages.
async fn summary_of(
    seen: &LogSnapshot,
    left: &[EntryNo],
    preparation: &TreePreparation,
    summarizer: &dyn Summarizer,
    summarizer_context: &SummarizerContext,
) -> Result<Option<String>, TreeError> {
    let Some(end) = left.last().copied() else { return Ok(None) };
    let entries = left.to_vec();
    let messages = seen.with(move |index, source| messages_of(index, source, end, &entries)).await??;
    if messages.is_empty() {
        return Ok(None);
    }
    let summary_options = SummaryOptions {
        of: SummaryKind::Branch,
        instructions: preparation.custom_instructions.as_deref(),
        replaces: preparation.replace_instructions,
        context: &[],
    };
    summarizer_context.summarize(summarizer, &summary_options, &messages).await.map(Some)
}

/// The description of a navigation for hooks.
async fn hook_preparation(
    preparation: &TreePreparation,
    seen: &LogSnapshot,
) -> Result<hooks::TreePreparation, TreeError> {
    let entries = within(&seen.index, &preparation.entries_to_summarize);
    Ok(hooks::TreePreparation {
        target_id: preparation.target_id.clone(),
        old_leaf_id: preparation.old_leaf_id.clone(),
        common_ancestor_id: preparation.common_ancestor_id.clone(),
        entries_to_summarize: seen.lines(entries).await?,
        user_wants_summary: preparation.user_wants_summary,
        custom_instructions: preparation.custom_instructions.clone(),
        replace_instructions: preparation.replace_instructions,
        label: preparation.label.clone(),
    })
}
