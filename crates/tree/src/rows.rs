//! The tree as flat rows, for lists to navigate in: depth first, the active branch first among siblings.
//!
//! Nested trees cannot be sent: a conversation is as deep as it is long. The index alone decides which rows there are;
//! bodies are read for the shown rows, and for a search once in file order.

use std::fmt;
use std::str::FromStr;

use grove_core::TurnId;
use grove_fs::FsError;

use crate::children::Children;
use crate::index::{EntryNo, LogIndex, NONE, Owner};
use crate::kind::EntryType;
use crate::preview::{EntryPreview, PreviewReader};
use crate::role::Role;
use crate::source::{LogSource, each_line};
use crate::turns::turn_id_in;

/// The maximum number of rows of a page, whatever was asked for.
pub const MAX_ROWS: usize = 10_000;

/// A selection of entries. The current position is always shown: the leaf, or the nearest entry above it that passes
/// the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowFilter {
    /// The conversation without bookkeeping: labels, custom entries, changes of model, thinking level, title and the
    /// like.
    #[default]
    Default,
    /// Like the default, without the results of tools.
    NoTools,
    /// User messages.
    UserOnly,
    /// Entries with a label.
    LabeledOnly,
    /// Everything, also assistants' messages of only tool calls, which the other filters leave out.
    All,
}

/// A request for rows of a tree.
#[derive(Clone, Copy, Debug)]
pub struct RowsRequest<'a> {
    pub filter: RowFilter,
    /// Words that must all be in a row, in any order. An empty search shows every row.
    pub search: &'a str,
    /// The end of the active branch: mostly [`LogIndex::leaf`].
    pub leaf: Option<EntryNo>,
    /// Continues after the last page. Rows keep the order of the first page, whatever was appended and wherever the
    /// leaf moved since.
    pub after: Option<Cursor>,
    /// At least one row is returned and at most [`MAX_ROWS`].
    pub limit: usize,
}

/// A position in a list of rows. Its text is opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The number of entries of the log at that time.
    entries: u32,
    leaf: Option<EntryNo>,
    /// The last row of the page.
    after: EntryNo,
}

/// A page of rows, with the position of the next one.
#[derive(Clone, Debug)]
pub struct RowPage {
    pub rows: Vec<EntryRow>,
    /// `None` at the end.
    pub next: Option<Cursor>,
    /// The total number of rows.
    pub total: usize,
}

/// A row: an entry in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    pub entry: EntryNo,
    pub id: String,
    /// The nearest shown ancestor.
    pub parent: Option<String>,
    /// The number of shown ancestors.
    pub depth: u32,
    /// The number of forks above it: a conversation without branches is not indented.
    pub indent: u32,
    pub kind: EntryType,
    pub preview: EntryPreview,
    pub label: Option<String>,
    /// Milliseconds since 1970.
    pub time: Option<i64>,
    /// True if it is on the path to the leaf.
    pub is_active: bool,
    /// True for the current position: the leaf, or the nearest row above it.
    pub is_leaf: bool,
    pub has_children: bool,
    /// The turn that a user message begins.
    pub turn: Option<TurnId>,
}

/// The reason why there are no rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    #[error("the cursor is not valid for this list: request the list without one")]
    UnknownCursor,
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// The rows of a tree, a page at a time.
pub fn rows(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    request: &RowsRequest<'_>,
) -> Result<RowPage, RowsError> {
    let (entries, leaf) = match request.after {
        None => (index.len() as u32, request.leaf),
        Some(cursor) => (cursor.entries, cursor.leaf),
    };
    let is_known = |entry: EntryNo| entry.0 < entries && index.owner(entry) == Owner::Tree;
    let cursor_entry = request.after.map(|cursor| cursor.after);
    if entries as usize > index.len() || !leaf.into_iter().chain(cursor_entry).all(is_known) {
        return Err(RowsError::UnknownCursor);
    }
    let words: Vec<String> = request.search.split_whitespace().map(str::to_lowercase).collect();
    let found = match words.as_slice() {
        [] => None,
        words => Some(search(index, source, request.filter, entries, words)?),
    };
    let outline = Outline::new(index, entries, request.filter, leaf, found.as_deref());
    let from = cursor_entry.map_or(0, |after| outline.behind(after));
    let limit = request.limit.clamp(1, MAX_ROWS);
    let to = from.saturating_add(limit).min(outline.rows.len());
    let rows = outline.render(index, source, from..to)?;
    let next = rows.last().filter(|_| to < outline.rows.len()).map(|row| Cursor { entries, leaf, after: row.entry });
    Ok(RowPage { rows, next, total: outline.rows.len() })
}

/// The rows of a tree and their structure, without contents.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The row of the current position.
    position: Option<EntryNo>,
    rows: Vec<OutlineRow>,
    /// The position of each entry in the whole tree, shown or not.
    places: Vec<u32>,
    /// True for entries on the path to the leaf.
    is_active: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct OutlineRow {
    entry: EntryNo,
    /// The row of the nearest shown ancestor, or [`NONE`].
    parent: u32,
    depth: u32,
    indent: u32,
    children: u32,
}

impl Outline {
    /// The outline of a whole log under a filter.
    pub fn of(index: &LogIndex, filter: RowFilter, leaf: Option<EntryNo>) -> Self {
        Self::new(index, index.len() as u32, filter, leaf, None)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The outline of the first `entries` of a log. `found` marks the entries that a search found.
    fn new(index: &LogIndex, entries: u32, filter: RowFilter, leaf: Option<EntryNo>, found: Option<&[bool]>) -> Self {
        let leaf = leaf.map(|leaf| index.canonical(leaf));
        let mut is_active = vec![false; entries as usize];
        for entry in leaf.into_iter().flat_map(|leaf| index.links.ancestors(leaf)) {
            if let Some(active) = is_active.get_mut(entry.as_usize()) {
                *active = true;
            }
        }
        let position = leaf.and_then(|leaf| position(index, filter, leaf));
        let is_shown = |entry: EntryNo| {
            let passes = passes(index, filter, entry) && found.is_none_or(|found| found[entry.as_usize()]);
            passes || Some(entry) == position
        };
        let mut rows: Vec<OutlineRow> = Vec::new();
        let mut places = vec![NONE; entries as usize];
        // The row of each entry, or of its nearest shown ancestor.
        let mut row_of = vec![NONE; entries as usize];
        let mut place = 0;
        walk(index, entries, &is_active, |entry, parent| {
            places[entry.as_usize()] = place;
            place += 1;
            let above = parent.map_or(NONE, |parent| row_of[parent.as_usize()]);
            row_of[entry.as_usize()] = above;
            if !is_shown(entry) {
                return;
            }
            row_of[entry.as_usize()] = rows.len() as u32;
            let depth = match rows.get_mut(above as usize) {
                None => 0,
                Some(parent) => {
                    parent.children += 1;
                    parent.depth + 1
                }
            };
            rows.push(OutlineRow { entry, parent: above, depth, indent: 0, children: 0 });
        });
        for at in 0..rows.len() {
            if let Some(parent) = rows.get(rows[at].parent as usize) {
                rows[at].indent = parent.indent + u32::from(parent.children > 1);
            }
        }
        Self { position, rows, places, is_active }
    }

    /// The first row after an entry, which may be hidden.
    fn behind(&self, entry: EntryNo) -> usize {
        let place = self.places[entry.as_usize()];
        self.rows.partition_point(|row| self.places[row.entry.as_usize()] <= place)
    }

    /// Renders some of the rows with their contents.
    pub fn render(
        &self,
        index: &LogIndex,
        source: &(impl LogSource + ?Sized),
        range: std::ops::Range<usize>,
    ) -> Result<Vec<EntryRow>, FsError> {
        let end = range.end.min(self.rows.len());
        let lines = &self.rows[range.start.min(end)..end];
        let entries: Vec<EntryNo> = lines.iter().map(|line| line.entry).collect();
        let mut rows = Vec::with_capacity(lines.len());
        let mut previews = PreviewReader::new(index, source);
        each_line(index, source, &entries, |entry, line| {
            let preview = previews.show(entry, &line)?;
            let OutlineRow { parent, depth, indent, children, .. } = lines[rows.len()];
            let parent = self.rows.get(parent as usize).map(|row| index.id(row.entry).into_owned());
            rows.push(EntryRow {
                entry,
                id: index.id(entry).into_owned(),
                parent,
                depth,
                indent,
                kind: index.kind(entry),
                preview,
                label: index.label(entry).map(ToOwned::to_owned),
                time: index.time(entry),
                is_active: self.is_active[entry.as_usize()],
                is_leaf: Some(entry) == self.position,
                has_children: children > 0,
                turn: (index.role(entry) == Some(Role::User))
                    .then(|| turn_id_in(&line).unwrap_or_else(|| (&*index.id(entry)).into())),
            });
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Visits the first `entries` of a tree, depth first, with each entry's parent.
fn walk(index: &LogIndex, entries: u32, is_active: &[bool], mut see: impl FnMut(EntryNo, Option<EntryNo>)) {
    let children = Children::once_oldest_first(index, entries);
    // Entries to visit, the next one last.
    let mut waiting: Vec<(EntryNo, Option<EntryNo>)> = Vec::new();
    let put = |waiting: &mut Vec<(EntryNo, Option<EntryNo>)>, siblings: &[EntryNo], parent| {
        let active = siblings.iter().position(|entry| is_active[entry.as_usize()]);
        let others = siblings.iter().enumerate().rev().filter(|(at, _)| Some(*at) != active);
        waiting.extend(others.map(|(_, entry)| (*entry, parent)));
        waiting.extend(active.map(|at| (siblings[at], parent)));
    };
    put(&mut waiting, children.roots(), None);
    let mut is_seen = vec![false; entries as usize];
    // Entries of a cycle have no root. The first of each cycle in the file serves as one.
    let mut cyclic = index.links.cyclic().filter(|entry| entry.0 < entries);
    loop {
        while let Some((entry, parent)) = waiting.pop() {
            if std::mem::replace(&mut is_seen[entry.as_usize()], true) {
                continue;
            }
            see(entry, parent);
            put(&mut waiting, children.of(entry), Some(entry));
        }
        match cyclic.find(|entry| !is_seen[entry.as_usize()]) {
            Some(entry) => waiting.push((entry, None)),
            None => return,
        }
    }
}

/// The row of the leaf under a filter. A bookkeeping leaf, as after a rename, means nothing to a person, and the filter
/// applies to the leaf too. `None` if no earlier entry is shown.
fn position(index: &LogIndex, filter: RowFilter, leaf: EntryNo) -> Option<EntryNo> {
    // An assistant's message of only tool calls is hidden above the leaf, not at it.
    let is_silent = |entry: EntryNo, filter: RowFilter| {
        matches!(filter, RowFilter::Default | RowFilter::NoTools) && index.role(entry) == Some(Role::SilentAssistant)
    };
    let stands = |entry: EntryNo, filter: RowFilter| passes(index, filter, entry) || is_silent(entry, filter);
    let nearest = |filter| index.links.ancestors(leaf).find(|entry| stands(*entry, filter));
    nearest(filter).or_else(|| nearest(RowFilter::Default))
}

fn passes(index: &LogIndex, filter: RowFilter, entry: EntryNo) -> bool {
    let role = index.role(entry);
    if filter != RowFilter::All && role == Some(Role::SilentAssistant) {
        return false;
    }
    match filter {
        RowFilter::Default => !is_bookkeeping(index.kind(entry)),
        RowFilter::NoTools => !is_bookkeeping(index.kind(entry)) && role != Some(Role::ToolResult),
        RowFilter::UserOnly => role == Some(Role::User),
        RowFilter::LabeledOnly => index.label(entry).is_some(),
        RowFilter::All => true,
    }
}

/// True for entries beside the conversation. A reset belongs to it, since it changes a model's context; so may an
/// unknown type.
fn is_bookkeeping(kind: EntryType) -> bool {
    match kind {
        EntryType::Message
        | EntryType::Compaction
        | EntryType::BranchSummary
        | EntryType::CustomMessage
        | EntryType::ResetBoundary
        | EntryType::Unknown => false,
        EntryType::ThinkingLevelChange
        | EntryType::ModelChange
        | EntryType::Custom
        | EntryType::Label
        | EntryType::SessionInfo
        | EntryType::Usage
        | EntryType::ContextEdit
        | EntryType::ModelUsage
        | EntryType::ModeChange
        | EntryType::TtsrInjection
        | EntryType::ServiceTierChange
        | EntryType::CredentialPin
        | EntryType::SessionInit
        | EntryType::TitleChange
        | EntryType::Archive => true,
    }
}

/// Marks the entries that contain every word: in the label, the role or the text.
fn search(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    filter: RowFilter,
    entries: u32,
    words: &[String],
) -> Result<Vec<bool>, FsError> {
    let candidates = index.entries().take(entries as usize).filter(|entry| {
        index.owner(*entry) == Owner::Tree && index.canonical(*entry) == *entry && passes(index, filter, *entry)
    });
    let candidates: Vec<EntryNo> = candidates.collect();
    let mut found = vec![false; entries as usize];
    let mut previews = PreviewReader::new(index, source);
    each_line(index, source, &candidates, |entry, line| {
        let EntryPreview { role, text } = previews.show(entry, &line)?;
        let label = index.label(entry).unwrap_or_default();
        let row = format!("{label}\n{role}\n{text}").to_lowercase();
        found[entry.as_usize()] = words.iter().all(|word| row.contains(word.as_str()));
        Ok(())
    })?;
    Ok(found)
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.leaf {
            Some(leaf) => write!(f, "{}.{}.{}", self.entries, leaf.0, self.after.0),
            None => write!(f, "{}..{}", self.entries, self.after.0),
        }
    }
}

impl FromStr for Cursor {
    type Err = RowsError;

    fn from_str(text: &str) -> Result<Self, RowsError> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| RowsError::UnknownCursor);
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(RowsError::UnknownCursor);
        let entries = number(part()?)?;
        let leaf = match part()? {
            "" => None,
            leaf => Some(EntryNo(number(leaf)?)),
        };
        Ok(Self { entries, leaf, after: EntryNo(number(part()?)?) })
    }
}

impl FromStr for RowFilter {
    type Err = UnknownFilter;

    fn from_str(text: &str) -> Result<Self, UnknownFilter> {
        Ok(match text {
            "default" => RowFilter::Default,
            "no-tools" => RowFilter::NoTools,
            "user-only" => RowFilter::UserOnly,
            "labeled-only" => RowFilter::LabeledOnly,
            "all" => RowFilter::All,
            _ => return Err(UnknownFilter(text.to_owned())),
        })
    }
}

/// An unknown filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no filter {0:?}: it is one of default, no-tools, user-only, labeled-only, all")]
pub struct UnknownFilter(String);
