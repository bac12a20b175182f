//! A model's context: the messages of a branch, and the settings along it.
//!
//! The index alone selects the entries, so that only their lines are read: after a compaction the kept and the later
//! ones, and the last entry of each setting.

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

/// The rules for building a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// pi 1.5.
    Pi,
    /// oh-my-pi 18.3.
    Omp,
    /// Grove's own: the common rules of both, with oh-my-pi's modes. Nothing is left that a model's API refuses:
    /// neither a tool call without its result nor a result without its call. Summaries and custom messages are user
    /// messages.
    #[default]
    Grove,
}

/// The context of a model. Messages borrow from a log in memory.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context<'a> {
    pub messages: Vec<ContextMessage<'a>>,
    pub thinking_level: String,
    pub model: ContextModel,
    /// pi has no modes.
    pub mode: Option<String>,
    pub injected_rules: Vec<String>,
    /// The number of leading messages that replace a compacted part.
    #[serde(skip)]
    pub leading: usize,
    /// True if older messages are left out.
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

/// A message in JSON, borrowed from the log if nothing had to be changed.
#[derive(Clone, Debug)]
pub struct Json<'a> {
    bytes: Cow<'a, [u8]>,
    /// The text with replacement characters, if the bytes are not valid UTF-8.
    lossy_text: OnceCell<Box<str>>,
}

impl<'a> Json<'a> {
    fn new(bytes: Cow<'a, [u8]>) -> Self {
        Self { bytes, lossy_text: OnceCell::new() }
    }

    /// The text; invalid UTF-8 is replaced.
    pub fn get(&self) -> &str {
        // Validated only here: most contexts are long, and few messages are read as text.
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
    /// The context before the first entry.
    pub fn empty(rules: Rules) -> Self {
        let settings = settings::ContextSettings::none(rules);
        Self::with(settings, NewestMessages { messages: Vec::new(), is_cut: false }, 0)
    }

    fn with(settings: settings::ContextSettings, newest: NewestMessages<'a>, leading: usize) -> Self {
        let settings::ContextSettings { thinking_level, model, mode, injected_rules } = settings;
        let NewestMessages { messages, is_cut } = newest;
        Self { messages, thinking_level, model, mode, injected_rules, leading, is_cut }
    }

    /// The context at an entry; at `None`, before the first one.
    pub fn at(
        index: &LogIndex,
        source: &'a (impl LogSource + ?Sized),
        rules: Rules,
        at: Option<EntryNo>,
    ) -> Result<Self, FsError> {
        Self::tail(index, source, rules, at, usize::MAX)
    }

    /// The context with only the newest messages, at most `count`. Earlier entries are read only if a message depends
    /// on them: a tool's result needs its call. Under Grove's rules the first message is never a tool's result.
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

    /// Like [`Context::tail`], with the summary of an earlier compaction first. Any number of messages may be left out
    /// in between.
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

/// The number of further entries in the first read, since some are dropped again.
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
            // At a message of the user or the assistant, earlier ones do not affect calls and results.
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
        // Doubling keeps the total below twice the needed size.
        size = size.saturating_mul(2);
    }
}
