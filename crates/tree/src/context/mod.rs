//! What a model is given: the messages of a branch, and the settings along it.
//!
//! Which entries count is decided by the index alone, so that only their lines are read: after a compaction those that
//! it kept and those that came later, of the settings the last of each.

mod messages;
mod path;
mod settings;
mod tools;

use std::borrow::Cow;
use std::cell::OnceCell;

use grove_fs::FsError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::index::{EntryNo, LogIndex, Owner};
use crate::role::Role;
use crate::source::LogSource;
pub(crate) use messages::{BRANCH_INTRODUCTION, COMPACTION_INTRODUCTION};
use messages::{ContextDraft, ContextWriter};
use path::ContextPath;

/// Whose rules build a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// pi 1.5
    Pi,
    /// oh-my-pi 18.3
    Omp,
    /// Grove's own: what both agree on, with the modes and rules of oh-my-pi. Nothing is left that a provider refuses:
    /// neither a tool call without its result nor a result without its call. Summaries and custom messages are messages
    /// of the user.
    #[default]
    Grove,
}

/// What a model is given. Messages are lent by the log where it is in memory.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context<'a> {
    pub messages: Vec<ContextMessage<'a>>,
    pub thinking_level: String,
    pub model: ContextModel,
    /// pi has no modes.
    pub mode: Option<String>,
    pub injected_rules: Vec<String>,
    /// How many of the messages stand for what a compaction took away: they come first.
    #[serde(skip)]
    pub leading: usize,
    /// Whether there are older messages that are not among them.
    #[serde(skip)]
    pub is_cut: bool,
}

/// A message.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ContextMessage<'a> {
    pub json: Json<'a>,
    /// The entry it comes from.
    #[serde(skip)]
    pub entry: EntryNo,
}

/// A message in JSON, as it stands in the log where nothing had to be changed.
#[derive(Clone, Debug)]
pub struct Json<'a> {
    bytes: Cow<'a, [u8]>,
    /// What is shown where the bytes are no text.
    lossy_text: OnceCell<Box<str>>,
}

impl<'a> Json<'a> {
    fn new(bytes: Cow<'a, [u8]>) -> Self {
        Self { bytes, lossy_text: OnceCell::new() }
    }

    /// Bytes that are no text are replaced.
    pub fn get(&self) -> &str {
        // Whether they are is asked only here: most contexts are long, and few messages are looked at.
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            Err(_) => self.lossy_text.get_or_init(|| String::from_utf8_lossy(&self.bytes).into()),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.get()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The model of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextModel {
    Unknown,
    One {
        provider: Option<String>,
        model_id: Option<String>,
    },
    /// oh-my-pi: `provider/id` for each role.
    ByRole(Vec<(String, String)>),
}

impl Serialize for ContextModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ContextModel::Unknown => serializer.serialize_none(),
            ContextModel::One { provider, model_id } => {
                let mut map = serializer.serialize_map(None)?;
                for (name, value) in [("provider", provider), ("modelId", model_id)] {
                    if let Some(value) = value {
                        map.serialize_entry(name, value)?;
                    }
                }
                map.end()
            }
            ContextModel::ByRole(models) => serializer.collect_map(models.iter().map(|(role, model)| (role, model))),
        }
    }
}

impl<'a> Context<'a> {
    /// What a model is given before the first entry.
    pub fn empty(rules: Rules) -> Self {
        let settings = settings::ContextSettings::none(rules);
        Self::with(settings, NewestMessages { messages: Vec::new(), is_cut: false }, 0)
    }

    fn with(settings: settings::ContextSettings, newest: NewestMessages<'a>, leading: usize) -> Self {
        let settings::ContextSettings { thinking_level, model, mode, injected_rules } = settings;
        let NewestMessages { messages, is_cut } = newest;
        Self { messages, thinking_level, model, mode, injected_rules, leading, is_cut }
    }

    /// What a model is given at an entry; at `None`, before the first one.
    pub fn at(
        index: &LogIndex,
        source: &'a (impl LogSource + ?Sized),
        rules: Rules,
        at: Option<EntryNo>,
    ) -> Result<Self, FsError> {
        Self::tail(index, source, rules, at, usize::MAX)
    }

    /// The same with the newest messages alone, at most `count`. What came before is not read unless a message cannot be
    /// understood without it: a tool's result needs its call. Under Grove's rules the first is never a tool's result.
    pub fn tail(
        index: &LogIndex,
        source: &'a (impl LogSource + ?Sized),
        rules: Rules,
        at: Option<EntryNo>,
        count: usize,
    ) -> Result<Self, FsError> {
        let at = at.filter(|entry| index.owner(*entry) == Owner::Tree);
        let branch = at.map(|entry| index.branch(entry)).unwrap_or_default();
        let settings = settings::ContextSettings::of(rules, index, source, &branch)?;
        let path = ContextPath::of(rules, index, source, &branch)?;
        let newest = newest(&path, index, source, rules, count)?;
        let leading = newest.messages.iter().take_while(|message| path.compaction == Some(message.entry)).count();
        Ok(Self::with(settings, newest, leading))
    }

    /// The same, and before the newest messages what a compaction left of the older ones, however many are left out in
    /// between.
    pub fn recent(
        index: &LogIndex,
        source: &'a (impl LogSource + ?Sized),
        rules: Rules,
        at: Option<EntryNo>,
        count: usize,
    ) -> Result<Self, FsError> {
        let mut context = Self::tail(index, source, rules, at, count)?;
        let at = at.filter(|entry| context.is_cut && index.owner(*entry) == Owner::Tree);
        if let Some(at) = at
            && context.leading == 0
        {
            let path = ContextPath::of(rules, index, source, &index.branch(at))?;
            let mut writer = ContextWriter::new(rules, &path);
            writer.begin(index, source)?;
            context.leading = writer.drafts.len();
            context.messages.splice(..0, writer.drafts.into_iter().map(ContextDraft::finish));
        }
        Ok(context)
    }
}

/// The newest messages of a path.
struct NewestMessages<'a> {
    messages: Vec<ContextMessage<'a>>,
    is_cut: bool,
}

/// How many entries are read at first beyond the messages that are wanted. Some are dropped again.
const MARGIN: usize = 32;

/// The newest messages of a path, at most `count`.
fn newest<'a>(
    path: &ContextPath,
    index: &LogIndex,
    source: &'a (impl LogSource + ?Sized),
    rules: Rules,
    count: usize,
) -> Result<NewestMessages<'a>, FsError> {
    let mut size = count.saturating_add(MARGIN);
    loop {
        let mut from = path.entries.len().saturating_sub(size);
        if rules == Rules::Grove {
            // Where the user or the assistant speaks, nothing that came before matters to calls and results.
            let begins =
                |entry: &EntryNo| index.role(*entry).is_some_and(|role| role == Role::User || role.is_assistant());
            let until = path.entries.len().min(from + 1);
            from = path.entries[..until].iter().rposition(begins).unwrap_or(0);
        }
        let mut writer = ContextWriter::new(rules, path);
        if from == 0 {
            writer.begin(index, source)?;
        }
        writer.entries(index, source, &path.entries[from..])?;
        let is_settled = from == 0 || tools::are_settled(rules, &writer.drafts);
        let drafts = tools::repair_tool_calls(rules, writer.drafts);
        if is_settled && (from == 0 || drafts.len() >= count) {
            let mut skip = drafts.len().saturating_sub(count);
            if rules == Rules::Grove {
                skip += drafts[skip..].iter().take_while(|draft| draft.voice.answers().is_some()).count();
            }
            let messages = drafts.into_iter().skip(skip).map(ContextDraft::finish).collect();
            return Ok(NewestMessages { messages, is_cut: from > 0 || skip > 0 });
        }
        // Each time twice as far: all in all no more than twice what was needed is read.
        size = size.saturating_mul(2);
    }
}
