//! The checkpoints that the compactions of a log name.

use grove_fs::SessionFs;
use grove_fs::workspace::Checkpoint;
use grove_tree::{EntryNo, EntryType, LogError, LogIndex, store};
use serde::Deserialize;

/// The longest title of a checkpoint.
const MAX_TITLE_CHARS: usize = 80;

/// The checkpoints that a log names.
#[derive(Debug, Default)]
pub struct LoggedCheckpoints {
    /// By compactions on the path to the leaf, in that order.
    pub on_branch: Vec<Checkpoint>,
    /// The numbers of the others.
    pub elsewhere: Vec<u32>,
}

impl LoggedCheckpoints {
    pub fn is_empty(&self) -> bool {
        self.on_branch.is_empty() && self.elsewhere.is_empty()
    }

    /// The highest number on the path to the leaf; 0 if there is none.
    pub(crate) fn last(&self) -> u32 {
        self.on_branch.iter().map(|checkpoint| checkpoint.number).max().unwrap_or(0)
    }
}

/// Reads the compactions of a log, one after another.
pub async fn named(
    fs: &dyn SessionFs,
    log: &str,
    index: &LogIndex,
    leaf: Option<EntryNo>,
) -> Result<LoggedCheckpoints, LogError> {
    let mut named = LoggedCheckpoints::default();
    let compactions: Vec<EntryNo> = compactions(index).collect();
    if compactions.is_empty() {
        return Ok(named);
    }
    let is_compaction = |entry: &EntryNo| index.kind(*entry) == EntryType::Compaction;
    let branch = leaf.map(|leaf| index.branch(leaf)).unwrap_or_default();
    let branch: Vec<EntryNo> = branch.into_iter().filter(is_compaction).collect();
    for entry in compactions {
        for line in store::read_lines(fs, log, index, &[entry]).await? {
            let Some(checkpoint) = checkpoint_in(&line) else { continue };
            match branch.contains(&entry) {
                true => named.on_branch.push(checkpoint),
                false => named.elsewhere.push(checkpoint.number),
            }
        }
    }
    // A number that is named twice is listed.
    let on_branch: Vec<u32> = named.on_branch.iter().map(|checkpoint| checkpoint.number).collect();
    named.elsewhere.retain(|number| !on_branch.contains(number));
    Ok(named)
}

pub(crate) fn compactions(index: &LogIndex) -> impl Iterator<Item = EntryNo> + '_ {
    index.entries().filter(|entry| index.kind(*entry) == EntryType::Compaction)
}

/// The title of a checkpoint: the beginning of its summary.
pub fn title_of(summary: &str) -> String {
    let words = |line: &str| line.trim_start_matches(['#', '*', '-', '>', ' ', '\t']).trim().to_owned();
    let first = summary.lines().map(words).find(|line| !line.is_empty()).unwrap_or_default();
    first.chars().take(MAX_TITLE_CHARS).collect::<String>().trim_end().to_owned()
}

/// The checkpoint that a compaction's line names.
fn checkpoint_in(line: &[u8]) -> Option<Checkpoint> {
    #[derive(Deserialize)]
    struct CompactionEntry {
        #[serde(default)]
        summary: String,
        details: CompactionDetails,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CompactionDetails {
        checkpoint_number: u32,
        checkpoint_path: String,
    }
    let entry: CompactionEntry = serde_json::from_slice(line).ok()?;
    let path = entry.details.checkpoint_path;
    let file = path.rsplit(['/', '\\']).next().filter(|file| !file.is_empty())?.to_owned();
    Some(Checkpoint { number: entry.details.checkpoint_number, title: title_of(&entry.summary), file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_called_by_what_its_summary_begins_with() {
        assert_eq!(title_of("\n## The parser\n\nIt works."), "The parser");
        assert_eq!(title_of(""), "");
        assert_eq!(title_of(&"é".repeat(200)).chars().count(), MAX_TITLE_CHARS);
    }

    #[test]
    fn a_compaction_names_its_checkpoint_or_none() {
        let line = br#"{"type":"compaction","summary":"All of it","details":{"checkpointNumber":2,"checkpointPath":"s/checkpoints/002-all-of-it.md","x":1}}"#;
        let named = checkpoint_in(line).unwrap();
        assert_eq!((named.number, named.title.as_str(), named.file.as_str()), (2, "All of it", "002-all-of-it.md"));
        for none in [r#"{"type":"compaction"}"#, r#"{"details":{"checkpointNumber":-1,"checkpointPath":"x"}}"#, "{"] {
            assert!(checkpoint_in(none.as_bytes()).is_none(), "{none}");
        }
    }
}
