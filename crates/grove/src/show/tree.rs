//! A tree for a terminal.

use grove_wire::x_grove::TreeRow;

use super::style::{dim, green};
use super::table::{cut, padded, short};

/// The maximum indent of a branch.
const MAX_INDENT: u32 = 12;

/// A line for each row, at most `width` columns wide.
pub(crate) fn lines(rows: &[TreeRow], width: Option<usize>) -> Vec<String> {
    let ids = short(&rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>());
    let widest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    // The mark of a shortened text takes a column, too.
    let most = width.map_or(usize::MAX, |width| width.saturating_sub(1));
    let line = |(row, id): (&TreeRow, &String)| {
        let line = cut(&text(row, &padded(id, widest)), most);
        match (row.leaf, row.active) {
            (true, _) => green(line).to_string(),
            (false, true) => line,
            (false, false) => dim(line).to_string(),
        }
    };
    rows.iter().zip(&ids).map(line).collect()
}

fn text(row: &TreeRow, id: &str) -> String {
    let mark = match (row.leaf, row.active) {
        (true, _) => '*',
        (false, true) => '|',
        (false, false) => ' ',
    };
    let indent = "  ".repeat(row.indent.min(MAX_INDENT) as usize);
    // The label comes before the text, so that only the text is shortened.
    let label = row.label.as_ref().map(|label| format!(" [{label}]")).unwrap_or_default();
    format!("{id} {mark} {indent}{}{label}: {}", row.role, row.text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(more: Value) -> TreeRow {
        let mut row = json!({"id": "aaaa0001", "parent": null, "depth": 0, "indent": 0, "kind": "message",
            "role": "user", "text": "hello", "active": true, "leaf": false, "hasChildren": false});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_line_says_where_one_is_who_speaks_and_what() {
        let rows = [
            row(json!({})),
            row(json!({"id": "aaaa0002", "indent": 1, "leaf": true, "label": "here", "role": "assistant"})),
            row(json!({"id": "3", "indent": 1, "active": false})),
        ];
        let expected = [
            "aaaa0001 | user: hello",
            "\x1b[32maaaa0002 *   assistant [here]: hello\x1b[0m",
            "\x1b[2m3            user: hello\x1b[0m",
        ];
        assert_eq!(lines(&rows, None), expected);
    }

    #[test]
    fn a_line_is_as_long_as_the_terminal_is_wide_and_steers_it_not() {
        let long = row(json!({"text": "one two three\x1b[2J", "indent": 1}));
        assert_eq!(lines(std::slice::from_ref(&long), Some(24)), ["aaaa0001 |   user: one…"]);
        assert_eq!(lines(&[long], None), ["aaaa0001 |   user: one two three[2J"]);
        let deep = row(json!({"indent": 1_000_000}));
        assert!(lines(&[deep], None)[0].chars().count() < 50, "the text is still visible");
    }
}
