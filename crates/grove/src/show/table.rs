//! Tables, and the formats of their cells.

use std::io::{self, IsTerminal};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns between two cells.
const GAP: usize = 2;
/// The minimum width of a column that is shortened.
const NARROWEST: usize = 6;

/// The width of the terminal on stdout, in columns. Output to a file or a pipe is not cut.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Rows of cells, each column as wide as its widest cell. The first row is the header.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    lines_within(rows, None, &[])
}

/// The same, at most `width` columns wide: the columns in `flexible` are shortened, the first one first.
pub(crate) fn lines_within(rows: &[Vec<String>], width: Option<usize>, flexible: &[usize]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let mut widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let whole = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1);
    let mut excess = width.map_or(0, |width| whole.saturating_sub(width));
    for column in flexible {
        let Some(width) = widths.get_mut(*column) else { continue };
        let less = excess.min(width.saturating_sub(NARROWEST));
        *width -= less;
        excess -= less;
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| padded(&fitted(cell, *width), *width)).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The number of columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// A cell padded with spaces. Wide characters take two columns, combining ones none.
pub(crate) fn padded(cell: &str, width: usize) -> String {
    format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
}

/// A cell of at most `width` columns, with a mark if it was shortened.
fn fitted(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    format!("{}…", head(cell, width.saturating_sub(1)).trim_end())
}

/// The beginning of a text, at most `columns` wide.
fn head(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let fits = |c: char| match left.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut fits = fits;
    let end = text.char_indices().find(|(_, c)| !fits(*c)).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// A text on one line, shortened after `most` columns.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = super::style::sanitize(text).replace(['\n', '\t'], " ");
    if text.width() <= most {
        return text;
    }
    format!("{}…", head(&text, most).trim_end())
}

/// The age of a time that is given in milliseconds since 1970.
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

/// The shortest unique beginnings of these ids, of at least eight characters.
pub(crate) fn short(ids: &[&str]) -> Vec<String> {
    short_among(ids, &[])
}

/// The same, unique among further ids as well.
///
/// The source before an id's dot does not count as characters of it.
pub(crate) fn short_among(ids: &[&str], others: &[&str]) -> Vec<String> {
    const FEWEST: usize = 8;
    // The most similar ids are neighbours. A tree may have too many to compare all pairs.
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
    fn wide_characters_take_two_columns_and_combining_ones_none() {
        let table = lines(&[
            row(&["TITLE", "AGE"]),
            row(&["漢字かな", "1 s"]),
            row(&["e\u{301}te\u{301}", "2 s"]),
            row(&["🙂 ok", "3 s"]),
        ]);
        assert_eq!(table, ["TITLE     AGE", "漢字かな  1 s", "e\u{301}te\u{301}       2 s", "🙂 ok     3 s"]);
        assert_eq!(cut("漢字かな", 5), "漢字…", "half a character is not shown");
        assert_eq!(cut("漢字", 4), "漢字");
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal_at_most() {
        let rows = [
            row(&["ID", "TITLE", "AGENT"]),
            row(&["12345678", "a title that is far too long", "an-agent-with-a-name"]),
        ];
        let within = |width: usize| lines_within(&rows, Some(width), &[1, 2]);
        assert_eq!(within(100)[1], "12345678  a title that is far too long  an-agent-with-a-name");
        assert_eq!(within(50)[1], "12345678  a title that is f…  an-agent-with-a-name");
        for width in 28..100 {
            assert!(within(width).iter().all(|line| line.width() <= width), "{width}: {:?}", within(width));
        }
        assert_eq!(within(3)[1], "12345678  a tit…  an-ag…", "columns stay readable in a tiny terminal");
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
