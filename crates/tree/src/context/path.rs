//! Selects the entries of a branch that become messages.

use std::collections::HashMap;

use grove_fs::FsError;

use super::Rules;
use crate::fields::EntryFields;
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::object::field;
use crate::scan::text_of;
use crate::source::{LogSource, each_line, line};

/// The entries of a branch that a context is built from.
pub(super) struct ContextPath {
    /// The compaction whose summary comes first.
    pub(super) compaction: Option<EntryNo>,
    /// True if that compaction has a system message, which replaces the kept ones.
    pub(super) has_system_message: bool,
    /// The kept and later entries that can become messages, oldest first.
    pub(super) entries: Vec<EntryNo>,
    /// The number of entries from before the compaction.
    pub(super) kept_entries: usize,
    /// The results of `context_edit` entries: a deletion, or new content.
    pub(super) edits: HashMap<EntryNo, Option<Vec<u8>>>,
}

impl ContextPath {
    /// Selects a whole branch; or the last compaction's summary with the kept and later entries; or the entries after a
    /// reset.
    pub(super) fn of(
        rules: Rules,
        index: &LogIndex,
        source: &(impl LogSource + ?Sized),
        branch: &[EntryNo],
    ) -> Result<Self, FsError> {
        let last = |wanted: EntryType| branch.iter().rposition(|entry| index.kind(*entry) == wanted);
        let compaction = last(EntryType::Compaction);
        let reset = last(EntryType::ResetBoundary).filter(|reset| rules != Rules::Pi && compaction < Some(*reset));
        let mut path = Self {
            compaction: None,
            has_system_message: false,
            entries: Vec::new(),
            kept_entries: 0,
            edits: edits(rules, index, source, branch)?,
        };
        let mut take = |range: &[EntryNo]| {
            path.entries.extend(range.iter().filter(|entry| becomes_message(index.kind(**entry))));
        };
        match (reset, compaction) {
            (Some(reset), _) => take(&branch[reset + 1..]),
            (None, None) => take(branch),
            (None, Some(at)) => {
                let line = line(index, source, branch[at])?;
                let fields = EntryFields::of(&line).line;
                let first = fields.first_kept.and_then(text_of).and_then(|id| index.find_bytes(&id));
                let first_kept = first.and_then(|first| branch[..at].iter().position(|entry| *entry == first));
                take(&branch[first_kept.unwrap_or(at)..at]);
                path.kept_entries = path.entries.len();
                path.entries.extend(branch[at + 1..].iter().filter(|entry| becomes_message(index.kind(**entry))));
                path.compaction = Some(branch[at]);
                path.has_system_message =
                    rules != Rules::Omp && fields.system_message.is_some_and(|value| value.starts_with(b"{"));
            }
        }
        Ok(path)
    }
}

fn becomes_message(kind: EntryType) -> bool {
    matches!(kind, EntryType::Message | EntryType::CustomMessage | EntryType::BranchSummary)
}

/// pi 1.5: the last edit of each entry.
fn edits(
    rules: Rules,
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    branch: &[EntryNo],
) -> Result<HashMap<EntryNo, Option<Vec<u8>>>, FsError> {
    let mut edits = HashMap::new();
    if rules == Rules::Omp {
        return Ok(edits);
    }
    let entries: Vec<EntryNo> =
        branch.iter().copied().filter(|entry| index.kind(*entry) == EntryType::ContextEdit).collect();
    each_line(index, source, &entries, |_, line| {
        let fields = EntryFields::of(&line).line;
        if let Some(target) = fields.target.and_then(text_of).and_then(|id| index.find_bytes(&id)) {
            let content = fields.replacement.and_then(|replacement| field(replacement, "content"));
            edits.insert(target, content.map(<[u8]>::to_vec));
        }
        Ok(())
    })?;
    Ok(edits)
}
