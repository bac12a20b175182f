//! Going elsewhere in a chat's tree: hooks are asked, what is left is summarized where that is wanted, then the leaf moves.

use std::sync::Arc;

use grove_agents::Summarizer;
use grove_core::*;
use grove_tree::compaction::{SummaryOf, SummaryWish};
use grove_tree::conversation::messages_of;
use grove_tree::entries::Origin;
use grove_tree::moves::{self, NewEntry, PlanError};
use grove_tree::navigate::{self, Landing, TreePreparation, Way};
use grove_tree::turns::{self, Stretch};
use grove_tree::{EntryNo, Index};
use serde_json::Value;
use serde_json::value::RawValue;

use super::summing::{Asking, within};
use super::undertaking::{Beginning, Found, Meanwhile};
use super::{Done, NavigateWishes, Navigated, Seen, TreeAnswer, TreeError, answered, leaf_of, raw};
use crate::hooks::{self, HookEvent, HookKind, HooksAt};
use crate::sequencer::{Origin as Action, Stopped};
use crate::session::settings::restored_at;
use crate::session::{Attempted, SessionTask};

/// A way through the tree that nobody forbids.
pub(super) struct Leaving {
    preparation: TreePreparation,
    summary: Option<Summary>,
    landing: Lands,
    /// Whose action it is, where it is one.
    origin: Option<Action>,
}

/// Where one lands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lands {
    /// Who goes to a message takes it back.
    BeforeMessages,
    /// Behind the entry, whatever it is.
    Behind,
}

/// What was left, in few words.
pub(super) struct Summary {
    pub(super) text: String,
    pub(super) details: Option<Value>,
    pub(super) origin: Origin,
}

/// A move of the leaf that was prepared.
struct Moving {
    turns: Vec<Arc<Turn>>,
    older: bool,
    entries: Vec<LogEntry>,
    settings: RestoredSettings,
    /// Whether the leaf goes elsewhere. One that stays where it is may still be named.
    moves: bool,
    navigated: Navigated,
    summary_line: Option<Box<RawValue>>,
}

impl SessionTask {
    pub(super) async fn navigate(
        &mut self,
        chat: &ChatId,
        seen: Option<Seen>,
        target: Option<String>,
        wishes: NavigateWishes,
        done: Done,
    ) -> Result<(), Stopped> {
        let here = |leaf| Navigated { moved: false, leaf, prefill: None, summary_entry: None };
        let Some(seen) = seen else {
            return answered(
                done,
                match target {
                    None => Ok(TreeAnswer::Navigated(here(None))),
                    Some(id) => Err(PlanError::UnknownEntry { id }.into()),
                },
            );
        };
        let label = wishes.label.clone();
        let preparation = match navigate::prepare(&seen.index, target.as_deref(), wishes) {
            Ok(Way::To(preparation)) => preparation,
            Ok(Way::Here) => {
                // Who is there already may still want to name the place.
                let answer = match (target, label) {
                    (Some(target), Some(label)) => {
                        let labelled = self.label(chat, Some(seen), &target, Some(&label)).await?;
                        labelled.map(|labelled| match labelled {
                            TreeAnswer::Labelled { leaf } => TreeAnswer::Navigated(here(leaf)),
                            other => other,
                        })
                    }
                    _ => Ok(TreeAnswer::Navigated(here(leaf_of(&seen.index)))),
                };
                return answered(done, answer);
            }
            Err(error) => return answered(done, Err(error.into())),
        };
        let hooks = self.hooks(chat);
        let asks = hooks.are_any(HookKind::BeforeTree);
        if let Err(error) = self.must_be_free(chat) {
            return answered(done, Err(error));
        }
        if !asks && !preparation.user_wants_summary {
            let leaving = Leaving { preparation, summary: None, landing: Lands::BeforeMessages, origin: None };
            let answer = self.leave(chat, leaving).await?.map(TreeAnswer::Navigated);
            return answered(done, answer);
        }
        let asking = self.asking(chat);
        let summarizer = match (preparation.user_wants_summary, self.agent.summarizer()) {
            // A hook may give it.
            (true, None) if !asks => return answered(done, Err(asking.no_model())),
            (_, summarizer) => summarizer,
        };
        let shown = preparation.user_wants_summary.then_some("summarizing the branch that is left");
        let beginning = Beginning { meanwhile: Meanwhile::GoesFirst, shown, done: Some(done) };
        let work = async move {
            let leaving = settle(preparation, &seen, &hooks, summarizer, &asking).await?;
            Ok(Found::Leave(Box::new(leaving)))
        };
        self.undertake(chat, beginning, work).await
    }

    /// Puts the leaf behind an entry, or before the first one, as an action of a client. Gives whether it has moved.
    pub(in crate::session) async fn go_behind(
        &mut self,
        chat: &ChatId,
        seen: &Seen,
        entry: Option<EntryNo>,
        origin: Action,
    ) -> Result<Result<bool, TreeError>, Stopped> {
        let target = entry.map(|entry| seen.index.id(entry));
        let preparation = match navigate::prepare(&seen.index, target.as_deref(), NavigateWishes::default()) {
            Ok(Way::To(preparation)) => preparation,
            Ok(Way::Here) => return Ok(Ok(false)),
            Err(error) => return Ok(Err(error.into())),
        };
        if let Err(error) = self.must_be_free(chat) {
            return Ok(Err(error));
        }
        // An action is done or refused at once, and a hook may take its time.
        if self.hooks(chat).are_any(HookKind::BeforeTree) {
            return Ok(Err(TreeError::MustAsk));
        }
        let leaving = Leaving { preparation, summary: None, landing: Lands::Behind, origin: Some(origin) };
        Ok(self.leave(chat, leaving).await?.map(|navigated| navigated.moved))
    }

    /// Moves the leaf.
    pub(super) async fn leave(
        &mut self,
        chat: &ChatId,
        leaving: Leaving,
    ) -> Result<Result<Navigated, TreeError>, Stopped> {
        let (old_leaf_id, from_extension) = (
            leaving.preparation.old_leaf_id.clone(),
            leaving.summary.as_ref().map(|summary| summary.origin == Origin::Extension),
        );
        let action = leaving.origin.clone();
        let moving = match self.prepare(chat, leaving).await {
            Ok(moving) => moving,
            Err(error) => return Ok(Err(error)),
        };
        let Moving { turns, older, entries, settings, moves, navigated, summary_line } = moving;
        if !moves {
            let command = Command::AddEntries { chat: chat.clone(), entries, anew: false };
            return Ok(self.attempt(command, &Who::Host, None).await?.map(|_| navigated).map_err(TreeError::from));
        }
        if let Some(log) = self.logs.get_mut(chat) {
            log.note(&turns);
        }
        let command = Command::MoveLeaf { chat: chat.clone(), turns, older, entries, settings };
        match self.attempt(command, &Who::Host, action).await? {
            Ok(Attempted::Happened | Attempted::NoChange) => {
                self.start_over(chat);
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

    /// What is to be written, and what clients see then.
    async fn prepare(&mut self, chat: &ChatId, leaving: Leaving) -> Result<Moving, TreeError> {
        let Leaving { preparation, summary, landing: lands, .. } = leaving;
        let seen = self.look(chat).await?.ok_or(TreeError::WentOn)?;
        if leaf_of(&seen.index) != preparation.old_leaf_id {
            return Err(TreeError::WentOn);
        }
        let landing = match preparation.target_id.as_deref() {
            None => Landing { leaf: None, prefill: None },
            Some(target) => {
                let target = moves::find(&seen.index, target)?;
                if lands == Lands::Behind {
                    Landing { leaf: Some(target), prefill: None }
                } else {
                    seen.with(move |index, source| Ok(navigate::land(index, source, target)?)).await?
                }
            }
        };
        let mut index = Index::clone(&seen.index);
        let mut entries = Vec::new();
        let id = self.new_entry_id(&index);
        let new = NewEntry { id: &id, at: self.around.env.clock.now() };
        let to = landing.leaf.map(|leaf| seen.index.id(leaf));
        let plan = match (&summary, to.as_deref()) {
            (Some(Summary { text, details, origin }), to) => {
                moves::branch_with_summary(&index, to, text, details.as_ref(), *origin, new)?
            }
            (None, None) => moves::reset_leaf(&index, new),
            (None, Some(to)) => moves::branch(&index, to, new)?,
        };
        let summary_entry = summary.is_some().then(|| id.clone());
        let summary_line = plan.line.as_deref().filter(|_| summary.is_some()).and_then(raw);
        // Going to a message lands where it hangs from, and that may be the leaf already.
        let moves = summary.is_some() || landing.leaf != seen.index.leaf();
        if moves {
            self.plan_into(chat, plan, &mut index, &mut entries)?;
        }
        if let (Some(label), Some(target)) = (&preparation.label, preparation.target_id.as_deref()) {
            let id = self.new_entry_id(&index);
            let new = NewEntry { id: &id, at: self.around.env.clock.now() };
            let plan = moves::label(&index, target, Some(label), new)?;
            self.plan_into(chat, plan, &mut index, &mut entries)?;
        }
        // What is planned is in no file yet, and no turn is among it.
        let shown = Stretch::to(landing.leaf).above(self.floor(chat, &seen.index));
        let window = turns::newest_in(seen.fs.as_ref(), &seen.path, &seen.index, shown, self.window()).await?;
        let settings = restored_at(&self.tip, seen.fs.as_ref(), &seen.path, &seen.index, landing.leaf).await?;
        let navigated = Navigated { moved: moves, leaf: leaf_of(&index), prefill: landing.prefill, summary_entry };
        Ok(Moving { turns: window.turns, older: window.older, entries, settings, moves, navigated, summary_line })
    }

    /// Tells hooks what has happened.
    pub(super) fn tell(&self, chat: &ChatId, event: HookEvent) {
        let hooks = self.hooks(chat);
        if hooks.are_any(event.kind()) {
            self.around.env.spawn.spawn(Box::pin(async move { hooks.tell(&event).await }));
        }
    }
}

/// Asks the hooks, and has what is left summarized where that is wanted and nobody gives it.
async fn settle(
    mut preparation: TreePreparation,
    seen: &Seen,
    hooks: &HooksAt,
    summarizer: Option<Arc<dyn Summarizer>>,
    asking: &Asking,
) -> Result<Leaving, TreeError> {
    let left = preparation.entries_to_summarize.clone();
    let mut summary = None;
    if hooks.are_any(HookKind::BeforeTree) {
        let event = HookEvent::BeforeTree { preparation: told(&preparation, seen).await? };
        let answer = hooks.ask(&event).await?;
        preparation.custom_instructions = answer.custom_instructions.or(preparation.custom_instructions);
        preparation.replace_instructions = answer.replace_instructions.unwrap_or(preparation.replace_instructions);
        preparation.label = answer.label.or(preparation.label);
        let given = answer.summary.filter(|_| preparation.user_wants_summary);
        summary = given.map(|given| Summary { text: given.summary, details: given.details, origin: Origin::Extension });
    }
    if preparation.user_wants_summary && summary.is_none() && !left.is_empty() {
        let summarizer = summarizer.ok_or_else(|| asking.no_model())?;
        let text = summary_of(seen, &left, &preparation, summarizer.as_ref(), asking).await?;
        summary = text.map(|text| Summary { text, details: None, origin: Origin::Host });
    }
    Ok(Leaving { preparation, summary, landing: Lands::BeforeMessages, origin: None })
}

/// Nothing where nobody said anything there.
async fn summary_of(
    seen: &Seen,
    left: &[EntryNo],
    preparation: &TreePreparation,
    summarizer: &dyn Summarizer,
    asking: &Asking,
) -> Result<Option<String>, TreeError> {
    let Some(end) = left.last().copied() else { return Ok(None) };
    let entries = left.to_vec();
    let messages = seen.with(move |index, source| Ok(messages_of(index, source, end, &entries)?)).await?;
    if messages.is_empty() {
        return Ok(None);
    }
    let wish = SummaryWish {
        of: SummaryOf::Branch,
        instructions: preparation.custom_instructions.as_deref(),
        replaces: preparation.replace_instructions,
        context: &[],
    };
    asking.summarize(summarizer, &wish, &messages).await.map(Some)
}

/// A way through the tree as hooks are told of it.
async fn told(preparation: &TreePreparation, seen: &Seen) -> Result<hooks::TreePreparation, TreeError> {
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
