//! A chat's tree: reading it, navigating it, and labelling its entries.
//!
//! `grove_tree` decides what a request means, on the log as it is on the disk. A change is an event like any other: it
//! is in the journal when it is published, and later in the log.

mod info;
mod navigation;
mod operation;
pub(crate) mod summarize;
mod turns;

use std::sync::Arc;

use grove_agents::AgentError;
use grove_core::*;
use grove_fs::FsError;
use grove_fs::workspace::WorkspaceError;
use grove_storage::chat_log::{ChatLogError, LogReaderCrash, LogSnapshot};
use grove_tree::navigate::{BranchPointError, Prefill};
use grove_tree::tree_edit::{self, NewEntry, TreeEdit, TreeEditError};
use grove_tree::turns::TurnLimit;
use grove_tree::{AppendError, Cursor, LogError, LogIndex, NewLogError, RowFilter, RowPage, RowsError, RowsRequest};
use serde_json::Value;
use serde_json::value::RawValue;

use super::forks::ForkPlan;
use super::{CommandError, SessionTask, SetupFileError};
use crate::hooks::HookError;
use crate::sequencer::HostStopped;
pub(super) use operation::TreeOperations;
pub(crate) use operation::TreeOutcome;
pub use summarize::{CompactionOutcome, MergeOutcome};
use tokio::sync::oneshot;

/// A request about a chat's tree.
#[derive(Debug)]
pub enum TreeRequest {
    Rows {
        filter: RowFilter,
        search: String,
        after: Option<Cursor>,
        limit: usize,
    },
    /// The log's lines after the first so many.
    Entries {
        after: usize,
        limit: usize,
    },
    /// Goes to an entry, or before the first one.
    Navigate {
        target: Option<String>,
        navigate_options: NavigateOptions,
    },
    /// Sets or removes the label of an entry.
    Label {
        target: String,
        label: Option<String>,
    },
    /// Prepares a fork: the conversation before a user message, or everything.
    PlanFork {
        before: Option<String>,
    },
    /// Appends a summary of the branch that ends at an entry.
    Merge {
        from: String,
        instructions: Option<String>,
    },
    /// Replaces older entries by a summary.
    Compact {
        instructions: Option<String>,
        /// The number of newest tokens that are not summarized; by default the configured one.
        keep: Option<u64>,
    },
    /// Cancels a running summary.
    Abort,
    /// Finds the user message that begins a turn.
    BeginningOf(TurnId),
    /// Reads the entries outside turns that tell of the session: compactions, and Grove's own notes.
    InfoEntries,
    /// Notes an event of the session in the log: the data of a `grove.info` entry.
    AddInfo(Value),
}

/// The options of a navigation.
pub use grove_tree::navigate::NavigateOptions;

/// The answer to a request.
#[derive(Debug)]
pub enum TreeAnswer {
    Rows(RowPage),
    Entries(Entries),
    NavigateOutcome(NavigateOutcome),
    MergeOutcome(MergeOutcome),
    CompactionOutcome(CompactionOutcome),
    Aborted(bool),
    Labelled {
        leaf: Option<String>,
    },
    Beginning(String),
    PlanFork(Box<ForkPlan>),
    InfoEntries(InfoEntries),
    /// The line of the new entry.
    InfoAdded(Arc<str>),
}

/// The entries outside turns on the branch of the leaf.
#[derive(Debug)]
pub struct InfoEntries {
    /// In the order of the branch.
    pub entries: Vec<BranchInfo>,
    /// The newest turn on the branch.
    pub newest: Option<TurnId>,
}

/// An entry outside turns.
#[derive(Clone, Debug)]
pub struct BranchInfo {
    pub line: Arc<str>,
    /// The entry before it on the branch.
    pub parent: Option<String>,
    /// The number of turns that begin behind it.
    pub turns_behind: usize,
}

/// The result of a navigation.
#[derive(Debug)]
pub struct NavigateOutcome {
    pub moved: bool,
    pub leaf: Option<String>,
    /// The text for the prompt, ready to be edited and sent again.
    pub prefill: Option<Prefill>,
    /// The entry with the summary of the abandoned branch.
    pub summary_entry: Option<String>,
}

/// Lines of a log.
#[derive(Debug)]
pub struct Entries {
    pub lines: Vec<Box<RawValue>>,
    /// The number of lines before the next one.
    pub next: usize,
    pub more: bool,
    pub leaf: Option<String>,
}

/// The reason why a tree could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("the session has no chat {0}")]
    UnknownChat(ChatId),
    #[error(transparent)]
    TreeEdit(#[from] TreeEditError),
    #[error(transparent)]
    Point(#[from] BranchPointError),
    #[error(transparent)]
    NewLog(#[from] NewLogError),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(transparent)]
    Log(#[from] ChatLogError),
    #[error(transparent)]
    Read(#[from] LogError),
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Refused(#[from] CommandError),
    #[error("the chat has no turn {0}")]
    UnknownTurn(TurnId),
    #[error("a summary is being made in this chat: wait for it, or abort it")]
    Busy,
    #[error("a turn is running in this chat: wait for its end, or cancel it")]
    TurnRuns,
    #[error("a turn started meanwhile: nothing has changed")]
    TurnBegan,
    #[error("the chat has continued meanwhile: nothing has changed; read its tree again")]
    WentOn,
    #[error("aborted: nothing has changed")]
    Aborted,
    #[error("{agent} has no model for summaries: continue without a summary, or configure a hook that supplies one")]
    NoModel { agent: String },
    #[error("no summary was made: {0}")]
    Summary(#[from] AgentError),
    #[error("{agent} gave an empty summary, so nothing has changed: try again, or with other instructions")]
    EmptySummary { agent: String },
    #[error("there is nothing to compact: the whole conversation fits into the part that is kept")]
    NothingToCompact,
    #[error("entry {id} is on this branch already: there is nothing to merge")]
    OnActiveBranch { id: String },
    #[error("there is nothing to summarize on the path to entry {id}")]
    NothingToMerge { id: String },
    #[error("a hook must be asked first: use x-grove/navigate")]
    MustAsk,
    #[error("{by} forbids it: {reason}")]
    Forbidden { by: String, reason: String },
    #[error("{by} failed, so nothing has changed: {error}")]
    HookFailed { by: String, error: HookError },
    #[error("the chat's log could not be copied yet, and will be retried: {0}")]
    NotCopied(String),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Setup(#[from] SetupFileError),
    #[error(transparent)]
    ReaderCrash(#[from] LogReaderCrash),
}

impl SessionTask {
    /// Carries out a request about a chat's tree, and answers; long operations are answered later.
    ///
    /// If the answer is an error, nothing has changed.
    pub(super) async fn tree(
        &mut self,
        chat: &ChatId,
        request: TreeRequest,
        done: TreeReply,
    ) -> Result<(), HostStopped> {
        let seen = match self.look(chat).await {
            Ok(seen) => seen,
            Err(error) => return answered(done, Err(error)),
        };
        let answer = match request {
            TreeRequest::Rows { filter, search, after, limit } => match seen {
                None => Ok(TreeAnswer::Rows(RowPage { rows: Vec::new(), next: None, total: 0 })),
                Some(seen) => {
                    let page = seen.with(move |index, source| {
                        let request = RowsRequest { filter, search: &search, leaf: index.leaf(), after, limit };
                        grove_tree::rows(index, source, &request)
                    });
                    match page.await {
                        Ok(page) => page.map(TreeAnswer::Rows).map_err(TreeError::from),
                        Err(crash) => Err(crash.into()),
                    }
                }
            },
            TreeRequest::Entries { after, limit } => entries(seen, after, limit).await.map(TreeAnswer::Entries),
            TreeRequest::Navigate { target, navigate_options } => {
                return self.navigate(chat, seen, target, navigate_options, done).await;
            }
            TreeRequest::Label { target, label } => self.label(chat, seen, &target, label.as_deref()).await?,
            TreeRequest::PlanFork { before } => {
                self.plan_fork(chat, seen, before).await.map(|fork_plan| TreeAnswer::PlanFork(Box::new(fork_plan)))
            }
            TreeRequest::Merge { from, instructions } => return self.merge(chat, seen, from, instructions, done).await,
            TreeRequest::Compact { instructions, keep } => {
                return self.compact(chat, seen, instructions, keep, Some(done)).await;
            }
            TreeRequest::Abort => Ok(TreeAnswer::Aborted(self.give_up(chat, TreeError::Aborted).await?)),
            TreeRequest::BeginningOf(turn) => {
                let found = self.find_turn(chat, seen, &turn).await;
                found.map(|(seen, place)| TreeAnswer::Beginning(seen.index.id(place.first).into_owned()))
            }
            TreeRequest::InfoEntries => self.info_entries(chat, seen).await.map(TreeAnswer::InfoEntries),
            TreeRequest::AddInfo(data) => {
                self.add_info_to(chat, seen, &data).await?.map(|entry| TreeAnswer::InfoAdded(entry.line))
            }
        };
        answered(done, answer)
    }

    pub(super) async fn look(&mut self, chat: &ChatId) -> Result<Option<LogSnapshot>, TreeError> {
        if self.tip.chat(chat).is_none() {
            return Err(TreeError::UnknownChat(chat.clone()));
        }
        self.copied(chat).await?;
        // A running save has the log meanwhile. A sequencer that ended is noticed elsewhere.
        self.settle().await.ok();
        Ok(self.logs.log(chat).look(&self.tip).await?)
    }

    async fn label(
        &mut self,
        chat: &ChatId,
        seen: Option<LogSnapshot>,
        target: &str,
        label: Option<&str>,
    ) -> Result<Result<TreeAnswer, TreeError>, HostStopped> {
        let planned = (|| {
            let seen = seen.ok_or_else(|| TreeEditError::UnknownEntry { id: target.to_owned() })?;
            let mut index = LogIndex::clone(&seen.index);
            let mut entries = Vec::new();
            let id = self.new_entry_id(&index);
            let new = NewEntry { id: &id, at: self.session_context.env.clock.now() };
            let plan = tree_edit::label(&index, target, label, new)?;
            self.plan_into(chat, plan, &mut index, &mut entries)?;
            Ok::<_, TreeError>((entries, leaf_of(&index)))
        })();
        let (entries, leaf) = match planned {
            Ok(planned) => planned,
            Err(error) => return Ok(Err(error)),
        };
        let command = HostCommand::AddEntries { chat: chat.clone(), entries, resets_agent: false };
        Ok(match self.attempt(command, None).await? {
            Ok(_) => Ok(TreeAnswer::Labelled { leaf }),
            Err(refused) => Err(TreeError::Refused(refused)),
        })
    }

    /// The number of turns that clients are shown at once.
    pub(super) fn window(&self) -> TurnLimit {
        self.session_context.config.limits.snapshot()
    }

    /// Adds a plan's line to the entries to be written, if it fits the log.
    fn plan_into(
        &self,
        chat: &ChatId,
        plan: TreeEdit,
        index: &mut LogIndex,
        entries: &mut Vec<LogEntry>,
    ) -> Result<(), TreeError> {
        let Some(line) = plan.line else { return Ok(()) };
        index.append(&line)?;
        let after = self.tip.chat(chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        entries.push(LogEntry { line: String::from_utf8_lossy(&line).into(), after });
        Ok(())
    }

    /// Eight digits that no entry has.
    fn new_entry_id(&self, index: &LogIndex) -> String {
        loop {
            let id = self.random_entry_id(index.len());
            if index.find(&id).is_none() {
                return id;
            }
        }
    }
}

/// The sender of an answer. The caller may have stopped waiting.
pub(crate) type TreeReply = oneshot::Sender<Result<TreeAnswer, TreeError>>;

fn answered(done: TreeReply, answer: Result<TreeAnswer, TreeError>) -> Result<(), HostStopped> {
    done.send(answer).ok();
    Ok(())
}

/// The bytes of entries that are sent at once, unless one alone has more.
pub const ENTRIES_BYTES: usize = 4 << 20;

/// The lines of a log after the first so many, up to a limit.
async fn entries(seen: Option<LogSnapshot>, after: usize, limit: usize) -> Result<Entries, TreeError> {
    let Some(seen) = seen else { return Ok(Entries { lines: Vec::new(), next: 0, more: false, leaf: None }) };
    let mut bytes = 0;
    let wanted: Vec<_> = seen
        .index
        .entries()
        .skip(after)
        .take(limit)
        .take_while(|entry| {
            let is_first = bytes == 0;
            bytes += seen.index.length(*entry);
            is_first || bytes <= ENTRIES_BYTES
        })
        .collect();
    let next = after.min(seen.index.len()) + wanted.len();
    let lines = seen.lines(&wanted).await?;
    Ok(Entries { lines, next, more: next < seen.index.len(), leaf: leaf_of(&seen.index) })
}

fn leaf_of(index: &LogIndex) -> Option<String> {
    index.leaf().map(|leaf| index.id(leaf).into_owned())
}
