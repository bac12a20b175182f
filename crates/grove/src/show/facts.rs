//! Plans, changed files and the usage of a turn, for a terminal.

use std::path::{Path, PathBuf};

use grove_core::{Cost, PlanEntry, PlanStatus};
use grove_wire::ahp::{FileEdit, FileEditDiffStats};

use super::style::{bold, dim, green, red, sanitize};
use crate::chat_client::{UsageView, one_line};

/// The number of changed files that are listed; the others are counted.
const MAX_EDITS: usize = 20;

/// A plan as a checklist, a line for each step.
pub(crate) fn plan(steps: &[PlanEntry]) -> Vec<String> {
    let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
    let head = format!("plan {}", dim(format!("({done} of {} done)", steps.len())));
    let step = |step: &PlanEntry| {
        let content = one_line(&sanitize(&step.content));
        match step.status {
            PlanStatus::Completed => format!("  {} {}", green("✓"), dim(content)),
            PlanStatus::InProgress => format!("  ▸ {}", bold(content)),
            PlanStatus::Pending => format!("  · {content}"),
        }
    };
    std::iter::once(head).chain(steps.iter().map(step)).collect()
}

/// The current folder, which paths are relative to.
pub(crate) fn current_folder() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// Changed files, a line for each. Paths below `current_folder` are relative.
pub(crate) fn edits<'a>(
    edits: impl ExactSizeIterator<Item = &'a FileEdit>,
    current_folder: Option<&Path>,
) -> Vec<String> {
    let more = edits.len().saturating_sub(MAX_EDITS);
    let mut lines: Vec<String> = edits.take(MAX_EDITS).map(|edit| self::edit(edit, current_folder)).collect();
    if more > 0 {
        lines.push(format!("  {}", dim(format!("… and {more} more files"))));
    }
    lines
}

/// The name of an edited file, and the kind of change.
pub(crate) fn edited(edit: &FileEdit, current_folder: Option<&Path>) -> (String, &'static str) {
    let (uri, verb) = match (&edit.before, &edit.after) {
        (None, Some(after)) => (after.uri.as_str(), "Create"),
        (Some(before), None) => (before.uri.as_str(), "Delete"),
        (Some(_), Some(after)) => (after.uri.as_str(), "Edit"),
        (None, None) => ("a file", "Edit"),
    };
    let path = grove_work::local_path(uri).ok();
    let path = path
        .as_deref()
        .map(|path| current_folder.and_then(|current_folder| path.strip_prefix(current_folder).ok()).unwrap_or(path));
    let name = path.map_or_else(|| uri.to_owned(), |path| path.display().to_string());
    (sanitize(&name).replace('\n', " "), verb)
}

/// The counts of added and removed lines.
pub(crate) fn counts(edit: &FileEdit) -> String {
    edit.diff.as_ref().map_or_else(String::new, |FileEditDiffStats { added, removed }| {
        format!(" +{} -{}", added.unwrap_or_default(), removed.unwrap_or_default())
    })
}

fn edit(edit: &FileEdit, current_folder: Option<&Path>) -> String {
    let (name, verb) = edited(edit, current_folder);
    let what = match verb {
        "Create" => " (new)",
        "Delete" => " (removed)",
        _ => "",
    };
    let counts = edit.diff.as_ref().map(|FileEditDiffStats { added, removed }| {
        let (added, removed) = (added.unwrap_or_default(), removed.unwrap_or_default());
        format!(" {} {}", green(format!("+{added}")), red(format!("-{removed}")))
    });
    format!("  {name}{}{what}", counts.unwrap_or_default())
}

/// The usage of a turn, if any is known.
pub(crate) fn usage(usage: &UsageView<'_>) -> Option<String> {
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
    let both = usage.output.map(|output| format!("{} → {} tokens", count(usage.input), tokens(output)));
    let context = usage.context().map(|context| format!("{} of {}", tokens(context.used), tokens(context.size)));
    let facts: Vec<String> = [both, context, usage.cost().map(|cost| money(&cost))].into_iter().flatten().collect();
    Some(facts.join(" · ")).filter(|facts| !facts.is_empty())
}

/// A number of tokens with three digits.
fn tokens(count: u64) -> String {
    // Beyond 2^53 a float is inexact, which three digits do not show.
    let (value, unit) = match count {
        0..1_000 => return count.to_string(),
        // Values that would be rounded to 1000k are 1M.
        1_000..999_500 => (count as f64 / 1e3, "k"),
        999_500.. => (count as f64 / 1e6, "M"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{}{unit}", without_zeros(&format!("{value:.decimals$}")))
}

/// An amount of money, with enough digits for small amounts.
fn money(cost: &Cost) -> String {
    let amount = cost.amount.as_f64().unwrap_or_default();
    // Two digits that are not zero, within limits.
    let decimals = (3..12).find(|decimals| amount.abs() * 10f64.powi(*decimals) >= 10.0);
    let figures = match decimals.and_then(|decimals| usize::try_from(decimals).ok()) {
        Some(decimals) if amount.abs() < 0.01 => without_zeros(&format!("{amount:.decimals$}")).to_owned(),
        Some(_) | None => format!("{amount:.2}"),
    };
    format!("{figures} {}", sanitize(&cost.currency)).trim_end().to_owned()
}

fn without_zeros(figures: &str) -> &str {
    if figures.contains('.') { figures.trim_end_matches('0').trim_end_matches('.') } else { figures }
}

#[cfg(test)]
mod tests {
    use grove_core::PlanPriority;
    use grove_wire::ahp::{FileEditSide, Object};
    use serde_json::json;

    use super::*;

    /// The lines without colours, as `anstream` writes them to a file.
    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_plan_is_a_checklist() {
        let step =
            |content: &str, status| PlanEntry { content: content.into(), priority: PlanPriority::Medium, status };
        let steps = [
            step("look", PlanStatus::Completed),
            step("change\n\x1b[2Jit", PlanStatus::InProgress),
            step("test", PlanStatus::Pending),
        ];
        let expected = ["plan (1 of 3 done)", "  ✓ look", "  ▸ change [2Jit", "  · test"];
        assert_eq!(plain(&plan(&steps)), expected);
    }

    fn side(uri: &str) -> Option<FileEditSide> {
        Some(FileEditSide { uri: uri.to_owned(), ..FileEditSide::default() })
    }

    #[test]
    fn changed_files_are_named_from_here_and_counted() {
        let diff = Some(FileEditDiffStats { added: Some(3), removed: None });
        let given = [
            FileEdit { before: side("file:///w/a%20b.rs"), after: side("file:///w/a%20b.rs"), diff: diff.clone() },
            FileEdit { before: None, after: side("file:///elsewhere/new.rs"), diff },
            FileEdit { before: side("other:/x"), after: None, diff: None },
        ];
        let lines = plain(&edits(given.iter(), Some(Path::new("/w"))));
        assert_eq!(lines, ["  a b.rs +3 -0", "  /elsewhere/new.rs +3 -0 (new)", "  other:/x (removed)"]);
    }

    #[test]
    fn many_changed_files_are_counted_rather_than_listed() {
        let given = vec![FileEdit { after: side("file:///a"), ..FileEdit::default() }; 50];
        let lines = plain(&edits(given.iter(), None));
        assert_eq!(lines.len(), MAX_EDITS + 1);
        assert_eq!(lines[MAX_EDITS], "  … and 30 more files");
    }

    #[test]
    fn what_a_turn_took_is_a_line_where_it_is_known() {
        let meta = json!({"context": {"used": 12_345, "size": 128_000}, "cost": {"amount": 0.4213, "currency": "USD"}});
        let meta = meta.as_object().cloned();
        let of = |input, output, meta: Option<&Object>| usage(&UsageView { input, output, meta });
        let whole = "12.3k → 678 tokens · 12.3k of 128k · 0.42 USD";
        assert_eq!(of(Some(12_345), Some(678), meta.as_ref()).as_deref(), Some(whole));
        assert_eq!(of(None, Some(5), None).as_deref(), Some("? → 5 tokens"));
        assert_eq!(of(Some(3), None, None), None);
        let odd = json!({"context": 7, "cost": {"amount": "much"}}).as_object().cloned();
        assert_eq!(of(None, None, odd.as_ref()), None, "unreadable values are left out");
    }

    #[test]
    fn numbers_have_the_figures_that_say_something() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (9_996, "10k"),
            (128_000, "128k"),
            (999_499, "999k"),
            (999_500, "1M"),
            (1_234_567, "1.23M"),
        ] {
            assert_eq!(tokens(count), text);
        }
        for (amount, text) in [(json!(0), "0.00 USD"), (json!(12), "12.00 USD"), (json!(0.00042), "0.00042 USD")] {
            let cost = Cost { amount: serde_json::from_value(amount).unwrap(), currency: "USD".to_owned() };
            assert_eq!(money(&cost), text);
        }
    }
}
