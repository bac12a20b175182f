//! A chat's tree: looking at it, moving in it, and naming what is in it.
//!
//! What a request means is decided by `grove_tree`, on the log as it is on the disk. What changes is an event like any
//! other: it is in the journal when somebody hears of it, and in the log behind that.

use std::borrow::Cow;
use std::sync::Arc;

use grove_agents::Closing;
use grove_core::*;
use grove_fs::FsError;
use grove_tree::moves::{self, NewEntry, Plan, PlanError};
use grove_tree::navigate::{self, BranchPointError, Landing, Prefill, Way, Wishes};
use grove_tree::turns::{self, Limit};
use grove_tree::{
    AppendError, Cursor, Filter, Index, LogError, NewHeader, NewLogError, Page, RowsError, RowsRequest, Source,
    branched, forked,
};

use super::log::{ChatLogError, Seen};
use super::{Attempted, Backend, SessionTask};
use crate::sequencer::Stopped;
use tokio::sync::oneshot;

/// What can be asked of a chat's tree.
#[derive(Debug)]
pub(crate) enum TreeRequest {
    Rows {
        filter: Filter,
        search: String,
        after: Option<Cursor>,
        limit: usize,
    },
    /// Goes to an entry, or before the first one.
    Navigate {
        target: Option<String>,
        label: Option<String>,
    },
    /// Names an entry, or takes its name away.
    Label {
        target: String,
        label: Option<String>,
    },
    /// Prepares a new session: with what was said before a message of the user, or with everything.
    Cut {
        before: Option<String>,
    },
}

/// What comes of it.
#[derive(Debug)]
pub(crate) enum TreeAnswer {
    Rows(Page),
    Navigated(Navigated),
    Labelled { leaf: Option<String> },
    Cut(Box<Cutting>),
}

/// What a new session is made of.
#[derive(Debug)]
pub(crate) struct Cutting {
    /// The session as it is, but for its id.
    pub(crate) like: NewSession,
    pub(crate) title: String,
    /// The log that it comes from, and its last entry that goes with it; nothing where nothing does.
    pub(crate) log: Option<(Seen, Extent)>,
    /// The newest turns that go with it, and whether there are older ones.
    pub(crate) turns: Vec<Arc<Turn>>,
    pub(crate) older: bool,
    pub(crate) prefill: Option<Prefill>,
}

/// How much of a log goes with a new session.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    /// The way to an entry.
    Branch(String),
    All,
}

/// Where one is after going somewhere.
#[derive(Debug)]
pub(crate) struct Navigated {
    pub(crate) moved: bool,
    pub(crate) leaf: Option<String>,
    /// What is put into the prompt, ready to be changed and sent again.
    pub(crate) prefill: Option<Prefill>,
}

/// Why a tree could not be looked at, or not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("the session has no chat {0}")]
    UnknownChat(ChatId),
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    #[error("{0}")]
    Refused(String),
    #[error("the log could not be looked at: its reader broke down")]
    Broken,
}

impl SessionTask {
    /// Does what is asked of a chat's tree. The inner error says why not; nothing has changed then.
    pub(super) async fn tree(
        &mut self,
        chat: &ChatId,
        request: TreeRequest,
    ) -> Result<Result<TreeAnswer, TreeError>, Stopped> {
        let seen = match self.look(chat).await {
            Ok(seen) => seen,
            Err(error) => return Ok(Err(error)),
        };
        match request {
            TreeRequest::Rows { filter, search, after, limit } => {
                let Some(seen) = seen else {
                    return Ok(Ok(TreeAnswer::Rows(Page { rows: Vec::new(), next: None, total: 0 })));
                };
                let page = seen.with(move |index, source| {
                    let request = RowsRequest { filter, search: &search, leaf: index.leaf(), after, limit };
                    Ok(grove_tree::rows(index, source, &request)?)
                });
                Ok(page.await.map(TreeAnswer::Rows))
            }
            TreeRequest::Navigate { target, label } => self.navigate(chat, seen, target, label).await,
            TreeRequest::Label { target, label } => self.label(chat, seen, &target, label.as_deref()).await,
            TreeRequest::Cut { before } => Ok(self.cut(seen, before).await.map(|cut| TreeAnswer::Cut(Box::new(cut)))),
        }
    }

    async fn look(&mut self, chat: &ChatId) -> Result<Option<Seen>, TreeError> {
        if self.tip.chat(chat).is_none() {
            return Err(TreeError::UnknownChat(chat.clone()));
        }
        let (fs, session) = (self.around.env.sessions.clone(), self.tip.id.clone());
        let log = self.logs.entry(chat.clone()).or_insert_with(|| super::ChatLog::new(fs, &session, chat.clone()));
        Ok(log.look(&self.tip).await?)
    }

    async fn navigate(
        &mut self,
        chat: &ChatId,
        seen: Option<Seen>,
        target: Option<String>,
        label: Option<String>,
    ) -> Result<Result<TreeAnswer, TreeError>, Stopped> {
        let here = |leaf| TreeAnswer::Navigated(Navigated { moved: false, leaf, prefill: None });
        let Some(seen) = seen else {
            return Ok(match target {
                None => Ok(here(None)),
                Some(id) => Err(PlanError::UnknownEntry { id }.into()),
            });
        };
        let moving = match self.prepare(chat, &seen, target, label).await {
            Ok(Some(moving)) => moving,
            Ok(None) => return Ok(Ok(here(leaf_of(&seen.index)))),
            Err(error) => return Ok(Err(error)),
        };
        let Moving { turns, older, entries, navigated } = moving;
        let command = Command::MoveLeaf { chat: chat.clone(), turns, older, entries };
        match self.attempt(command, &Who::Host, None).await? {
            Ok(Attempted::Happened | Attempted::NoChange) => {
                self.start_over(chat);
                Ok(Ok(TreeAnswer::Navigated(navigated)))
            }
            Err(refused) => Ok(Err(TreeError::Refused(refused))),
        }
    }

    /// What going to an entry comes to; nothing where one is there.
    async fn prepare(
        &mut self,
        chat: &ChatId,
        seen: &Seen,
        target: Option<String>,
        label: Option<String>,
    ) -> Result<Option<Moving>, TreeError> {
        let wishes = Wishes { label: label.clone(), ..Wishes::default() };
        let Way::To(preparation) = navigate::prepare(&seen.index, target.as_deref(), wishes)? else { return Ok(None) };
        let landing = match preparation.target_id.as_deref() {
            None => Landing { leaf: None, prefill: None },
            Some(target) => {
                let target = moves::find(&seen.index, target)?;
                seen.with(move |index, source| Ok(navigate::land(index, source, target)?)).await?
            }
        };
        let mut index = Index::clone(&seen.index);
        let mut entries = Vec::new();
        let id = self.new_entry_id(&index);
        let new = NewEntry { id: &id, at: self.around.env.clock.now() };
        let plan = match landing.leaf {
            None => moves::reset_leaf(&index, new),
            Some(leaf) => moves::branch(&index, &seen.index.id(leaf), new)?,
        };
        self.plan_into(chat, plan, &mut index, &mut entries)?;
        if let (Some(label), Some(target)) = (label, preparation.target_id.as_deref()) {
            let id = self.new_entry_id(&index);
            let new = NewEntry { id: &id, at: self.around.env.clock.now() };
            let plan = moves::label(&index, target, Some(&label), new)?;
            self.plan_into(chat, plan, &mut index, &mut entries)?;
        }
        // What is planned is in no file yet, and no turn is among it.
        let window = turns::newest_at(seen.fs.as_ref(), &seen.path, &seen.index, landing.leaf, self.window()).await?;
        let navigated = Navigated { moved: true, leaf: leaf_of(&index), prefill: landing.prefill };
        Ok(Some(Moving { turns: window.turns, older: window.older, entries, navigated }))
    }

    async fn label(
        &mut self,
        chat: &ChatId,
        seen: Option<Seen>,
        target: &str,
        label: Option<&str>,
    ) -> Result<Result<TreeAnswer, TreeError>, Stopped> {
        let planned = (|| {
            let seen = seen.ok_or_else(|| PlanError::UnknownEntry { id: target.to_owned() })?;
            let mut index = Index::clone(&seen.index);
            let mut entries = Vec::new();
            let id = self.new_entry_id(&index);
            let new = NewEntry { id: &id, at: self.around.env.clock.now() };
            let plan = moves::label(&index, target, label, new)?;
            self.plan_into(chat, plan, &mut index, &mut entries)?;
            Ok::<_, TreeError>((entries, leaf_of(&index)))
        })();
        let (entries, leaf) = match planned {
            Ok(planned) => planned,
            Err(error) => return Ok(Err(error)),
        };
        let command = Command::AddEntries { chat: chat.clone(), entries };
        Ok(match self.attempt(command, &Who::Host, None).await? {
            Ok(_) => Ok(TreeAnswer::Labelled { leaf }),
            Err(refused) => Err(TreeError::Refused(refused)),
        })
    }

    /// A message that is the first of all leaves nothing behind it: its session begins empty.
    async fn cut(&mut self, seen: Option<Seen>, before: Option<String>) -> Result<Cutting, TreeError> {
        let tip = &self.tip;
        let like = NewSession {
            id: tip.id.clone(),
            uri: tip.uri.clone(),
            provider: tip.provider.clone(),
            model: tip.model.clone(),
            working_directories: tip.working_directories.clone(),
            config: tip.config.clone(),
        };
        let mut cutting =
            Cutting { like, title: tip.title.clone(), log: None, turns: Vec::new(), older: false, prefill: None };
        let (leaf, extent, seen) = match (seen, before) {
            (None, None) => return Ok(cutting),
            (None, Some(id)) => return Err(PlanError::UnknownEntry { id }.into()),
            (Some(seen), None) => (seen.index.leaf(), Extent::All, seen),
            (Some(seen), Some(target)) => {
                let point = seen.with(move |index, source| Ok(navigate::branch_point(index, source, &target)?)).await?;
                cutting.prefill = Some(point.prefill);
                let Some(leaf) = point.leaf else { return Ok(cutting) };
                let extent = Extent::Branch(seen.index.id(leaf).into_owned());
                (Some(leaf), extent, seen)
            }
        };
        let window = turns::newest_at(seen.fs.as_ref(), &seen.path, &seen.index, leaf, self.window()).await?;
        (cutting.turns, cutting.older) = (window.turns, window.older);
        cutting.log = Some((seen, extent));
        Ok(cutting)
    }

    /// How many turns clients are shown at once.
    fn window(&self) -> Limit {
        let limits = &self.around.config.limits;
        Limit { turns: limits.snapshot_turns, bytes: limits.snapshot_bytes as u64 }
    }

    /// Takes a plan's line among the entries to be written, if it fits the log.
    fn plan_into(
        &self,
        chat: &ChatId,
        plan: Plan,
        index: &mut Index,
        entries: &mut Vec<LogEntry>,
    ) -> Result<(), TreeError> {
        let Some(line) = plan.line else { return Ok(()) };
        index.append(&line)?;
        let after = self.tip.chat(chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        entries.push(LogEntry { line: String::from_utf8_lossy(&line).into(), after });
        Ok(())
    }

    /// The agent remembers another conversation than the one that goes on: its next turn begins with a new one.
    fn start_over(&mut self, chat: &ChatId) {
        if let Some(desk) = self.desks.get_mut(chat)
            && let Backend::Ready(agent) = std::mem::take(&mut desk.backend)
        {
            let (left, leaving) = oneshot::channel();
            desk.leaving = Some(leaving);
            self.around.env.spawn.spawn(Box::pin(async move {
                agent.close(Closing::Replaced).await;
                // Nobody may need another one.
                left.send(()).ok();
            }));
        }
    }

    /// Eight digits that no entry has.
    fn new_entry_id(&self, index: &Index) -> String {
        loop {
            let mut bytes = [0; 4];
            // Without randomness the ids would follow one another, which is as good: they must only differ.
            if self.around.env.random.fill(&mut bytes).is_err() {
                bytes = u32::try_from(index.len()).unwrap_or(u32::MAX).to_be_bytes();
            }
            let id = hex::encode(bytes);
            if index.find(&id).is_none() {
                return id;
            }
        }
    }
}

/// A move of the leaf that was prepared.
struct Moving {
    turns: Vec<Arc<Turn>>,
    older: bool,
    entries: Vec<LogEntry>,
    navigated: Navigated,
}

fn leaf_of(index: &Index) -> Option<String> {
    index.leaf().map(|leaf| index.id(leaf).into_owned())
}

impl Seen {
    /// Looks at the log on a thread where waiting for its bytes holds up nobody.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Index, &LogBytes) -> Result<T, TreeError> + Send + 'static,
    ) -> Result<T, TreeError> {
        let index = self.index.clone();
        let bytes =
            LogBytes { fs: self.fs.clone(), path: self.path.clone(), runtime: tokio::runtime::Handle::current() };
        let looked = tokio::task::spawn_blocking(move || look(&index, &bytes)).await;
        looked.unwrap_or(Err(TreeError::Broken))
    }
}

impl Seen {
    /// Writes the log of a new session.
    pub(crate) async fn write_new(&self, extent: Extent, to: String, header: OwnHeader) -> Result<(), TreeError> {
        let fs = self.fs.clone();
        let path = to.clone();
        self.with(move |index, source| {
            let header = NewHeader {
                id: &header.id,
                at: header.at,
                cwd: &header.cwd,
                parent_session: Some(&header.parent),
                title: None,
            };
            let mut made = 0u32;
            let mut new_id = || {
                made += 1;
                format!("{:08x}", made.wrapping_mul(0x9e37_79b9) ^ u32::try_from(index.len()).unwrap_or(0))
            };
            let log = match extent {
                Extent::All => forked(index, &header),
                Extent::Branch(leaf) => branched(index, source, &leaf, &header, &mut new_id)?,
            };
            log.write(index, source, |bytes| source.runtime.block_on(fs.append_file(&path, bytes)))?;
            Ok(())
        })
        .await?;
        Ok(self.fs.sync(&to).await?)
    }
}

/// The first line of a new session's log.
#[derive(Debug)]
pub(crate) struct OwnHeader {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) cwd: String,
    /// The session that it comes from.
    pub(crate) parent: String,
}

/// A log's bytes, read when they are wanted.
pub(crate) struct LogBytes {
    fs: Arc<dyn grove_fs::SessionFs>,
    path: String,
    runtime: tokio::runtime::Handle,
}

impl Source for LogBytes {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError> {
        self.runtime.block_on(self.fs.read_range(&self.path, offset, length)).map(Cow::Owned)
    }
}
