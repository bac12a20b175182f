//! Diffs of files as coloured lines.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

use super::style::{bold, dim, green, red, sanitize};

/// How long a comparison may take. Beyond it the diff is coarser.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The number of unchanged lines around a change.
const AROUND: usize = 3;
/// The number of characters shown of a line.
const MAX_LINE: usize = 400;

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The file, and the kind of change.
    pub(crate) head: String,
    pub(crate) body: DiffBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiffBody {
    Lines(Vec<DiffLine>),
    /// The text cannot be shown, and the reason.
    Missing(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine {
    Same(String),
    Added(String),
    Removed(String),
    /// Omitted unchanged lines.
    Gap,
}

/// The lines that differ between two texts, with a few lines around them.
pub(crate) fn diff_lines(before: &str, after: &str) -> Vec<DiffLine> {
    let diff = TextDiff::configure().algorithm(Algorithm::RawMyers).timeout(TIMEOUT).diff_lines(before, after);
    let mut lines = Vec::new();
    for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if at > 0 {
            lines.push(DiffLine::Gap);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text: String = change.value().trim_end_matches(['\n', '\r']).chars().take(MAX_LINE).collect();
            lines.push(match change.tag() {
                ChangeTag::Equal => DiffLine::Same(text),
                ChangeTag::Insert => DiffLine::Added(text),
                ChangeTag::Delete => DiffLine::Removed(text),
            });
        }
    }
    lines
}

/// Diffs for a terminal, at most `most` lines, and whether they are complete.
pub(crate) fn shown(diffs: &[FileDiff], most: usize) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    for FileDiff { head, body } in diffs {
        lines.push(bold(sanitize(head).replace('\n', " ")).to_string());
        match body {
            DiffBody::Missing(why) => lines.push(dim(format!("  {}", sanitize(why))).to_string()),
            DiffBody::Lines(all) => lines.extend(all.iter().map(|line| match line {
                DiffLine::Same(text) => dim(format!("    {}", one(text))).to_string(),
                DiffLine::Added(text) => green(format!("  + {}", one(text))).to_string(),
                DiffLine::Removed(text) => red(format!("  - {}", one(text))).to_string(),
                DiffLine::Gap => dim("  ⋮").to_string(),
            })),
        }
    }
    let is_all = lines.len() <= most;
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    if more > 0 {
        lines.push(dim(format!("  … {more} more lines")).to_string());
    }
    (lines, is_all)
}

fn one(line: &str) -> String {
    sanitize(line).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_diff_shows_changed_lines_with_a_few_around_them() {
        let before: String = (0..30).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 3\n", "line three\n").replace("line 25\n", "");
        let file = FileDiff { head: "a.rs".into(), body: DiffBody::Lines(diff_lines(&before, &after)) };
        let (lines, is_all) = shown(std::slice::from_ref(&file), 100);
        let lines = plain(&lines);
        assert!(is_all);
        assert_eq!(lines[..6], ["a.rs", "    line 0", "    line 1", "    line 2", "  - line 3", "  + line three"]);
        assert!(lines.contains(&"  ⋮".to_owned()) && lines.contains(&"  - line 25".to_owned()), "{lines:?}");
        assert!(!lines.contains(&"    line 15".to_owned()), "{lines:?}");
        let (cut, is_all) = shown(&[file], 5);
        assert_eq!((plain(&cut).last().map(String::as_str), is_all), (Some("  … 12 more lines"), false));
    }

    #[test]
    fn nothing_in_a_diff_steers_the_terminal() {
        let body = DiffBody::Lines(diff_lines("", "a\x1b[2Jb\r\n"));
        let (lines, _) = shown(&[FileDiff { head: "x\x1b]0;t".into(), body }], 10);
        assert!(lines.iter().all(|line| !line.contains("\x1b[2J") && !line.contains("\x1b]")), "{lines:?}");
    }
}
