//! Tables, and the words in them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Rows of cells, each column as wide as its widest cell. The first row is the head.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A text that is cut where it is longer.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = super::style::harmless(text).replace(['\n', '\t'], " ");
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default().trim_end()),
        None => text,
    }
}

/// How long ago a time was, in milliseconds since 1970.
pub(crate) fn age(at: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = now.saturating_sub(Duration::from_millis(at)).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The shortest beginnings, of eight characters at least, that tell these ids apart.
pub(crate) fn short(ids: &[&str]) -> Vec<String> {
    short_among(ids, &[])
}

/// The same where further ids are searched than those that are shown. The source before an id's dot does not count as
/// characters of it.
pub(crate) fn short_among(ids: &[&str], others: &[&str]) -> Vec<String> {
    const FEWEST: usize = 8;
    // Those that begin most alike are neighbours. A tree may have too many to compare each with each.
    let mut sorted = [ids, others].concat();
    sorted.sort_unstable();
    // A session that was moved is listed twice, under one id.
    sorted.dedup();
    let one = |id: &&str| {
        let at = sorted.partition_point(|other| other < id);
        let neighbours = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter_map(|at| sorted.get(at));
        let alike = |other: &&str| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let longest = neighbours.map(alike).max().unwrap_or(0);
        let source = id.split_once('.').map_or(0, |(source, _)| source.chars().count() + 1);
        id.chars().take((source + FEWEST).max(longest + 1)).collect()
    };
    ids.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = lines(&[row(&["ID", "TITLE", "AGE"]), row(&["a", "ä long one", "1 s"]), row(&["abc", "", "2 h"])]);
        assert_eq!(table, ["ID   TITLE       AGE", "a    ä long one  1 s", "abc              2 h"]);
    }

    #[test]
    fn ids_are_shown_as_short_as_they_can_be_told_apart() {
        assert_eq!(short(&["0123456789", "abcdefghij", "s"]), ["01234567", "abcdefgh", "s"]);
        assert_eq!(short(&["0123456789", "0123456799"]), ["012345678", "012345679"]);
        assert_eq!(short(&["01234567", "0123456789"]), ["01234567", "012345678"]);
        assert_eq!(short(&["0123456789", "0123456789"]), ["01234567", "01234567"]);
    }

    #[test]
    fn ids_are_told_apart_from_those_that_are_not_shown() {
        assert_eq!(short_among(&["0123456789"], &["0123456799", "s"]), ["012345678"]);
        assert_eq!(short_among(&["vs-code.0123456789"], &[]), ["vs-code.01234567"]);
        assert_eq!(short_among(&["vs-code.0123456789"], &["vs-code.0123456799"]), ["vs-code.012345678"]);
    }

    #[test]
    fn long_texts_are_cut_and_ages_are_rounded_down() {
        assert_eq!(cut("a\nb c", 9), "a b c");
        assert_eq!(cut("abc def", 4), "abc…");
        assert_eq!(age(0).split(' ').next_back(), Some("d"));
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert_eq!(age(now - 125_000), "2 min");
        assert_eq!(age(now + 9_000), "0 s");
    }
}
