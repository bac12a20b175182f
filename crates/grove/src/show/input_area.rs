//! The last rows of a terminal: a status line, and the input line with its prompt.
//!
//! The conversation is written above them. To write there, the area is erased, and drawn again below. The terminal
//! stores the end of the conversation (`ESC 7`, `ESC 8`), so no columns have to be counted.

use unicode_width::UnicodeWidthChar;

use super::style::{bold, cyan, dim};
use super::table::cut;

/// The number of rows shown of a long text.
const MAX_ROWS: usize = 8;
/// The width of a terminal that does not report one.
const USUAL_COLUMNS: usize = 80;

/// Erases the area, and moves the cursor to the end of the conversation.
pub(super) const ERASE: &str = "\x1b8\x1b[J";

/// The text on the input line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputText {
    pub(crate) text: String,
    /// The byte position of the cursor.
    pub(crate) cursor: usize,
}

/// Draws the area below the conversation. `is_at_line_start`: the conversation ended with a line end.
pub(super) fn draw(
    passing: Option<&str>,
    mark: &str,
    input: &InputText,
    columns: Option<usize>,
    is_at_line_start: bool,
) -> String {
    let columns = columns.unwrap_or(USUAL_COLUMNS).max(10);
    let mark: String = cut(mark, columns / 2);
    let indent = super::table::columns(&mark) + 1;
    let WrappedText { rows, cursor_row, cursor_column } = rows(input, columns.saturating_sub(indent + 1));
    let mut lines: Vec<String> =
        passing.map(|passing| dim(cut(passing, columns - 1)).to_string()).into_iter().collect();
    let first = lines.len();
    for (at, row) in rows.iter().enumerate() {
        lines.push(match at {
            0 if mark == PROMPT => format!("{} {row}", cyan(bold(&mark).to_string())),
            0 => format!("{} {row}", bold(&mark)),
            _ => format!("{}{row}", " ".repeat(indent)),
        });
    }
    // Make room first: scrolling later would invalidate the stored position.
    let below = lines.len() - usize::from(is_at_line_start);
    let mut drawn = "\x1bD".repeat(below);
    if below > 0 {
        drawn.push_str(&format!("\x1b[{below}A"));
    }
    drawn.push_str("\x1b7");
    drawn.push_str(if is_at_line_start { "\r" } else { "\r\n" });
    drawn.push_str(&lines.join("\r\n"));
    let up = lines.len() - 1 - (first + cursor_row);
    if up > 0 {
        drawn.push_str(&format!("\x1b[{up}A"));
    }
    drawn.push_str(&format!("\r\x1b[{}C", indent + cursor_column));
    drawn
}

/// The prompt of the input line while no question is pending.
pub(crate) const PROMPT: &str = "›";

#[derive(Debug, PartialEq, Eq)]
struct WrappedText {
    rows: Vec<String>,
    cursor_row: usize,
    cursor_column: usize,
}

/// Wraps the text into rows of `columns`: if there are too many, those around the cursor.
fn rows(input: &InputText, columns: usize) -> WrappedText {
    let columns = columns.max(2);
    let mut rows = vec![String::new()];
    let (mut column, mut cursor) = (0, (0, 0));
    for (at, c) in input.text.char_indices() {
        if at == input.cursor {
            cursor = (rows.len() - 1, column);
        }
        if c == '\n' {
            rows.push(String::new());
            column = 0;
            continue;
        }
        // A tab or another control character takes one column.
        let (shown, width) = match c.width() {
            Some(width) => (c, width),
            None => (' ', 1),
        };
        if column + width > columns {
            rows.push(String::new());
            column = 0;
            if at == input.cursor {
                cursor = (rows.len() - 1, 0);
            }
        }
        if let Some(row) = rows.last_mut() {
            row.push(shown);
        }
        column += width;
    }
    if input.cursor >= input.text.len() {
        cursor = (rows.len() - 1, column);
    }
    let skipped = (cursor.0 + 1).saturating_sub(MAX_ROWS);
    let rows: Vec<String> = rows.into_iter().skip(skipped).take(MAX_ROWS).collect();
    WrappedText { rows, cursor_row: cursor.0 - skipped, cursor_column: cursor.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, cursor: usize, columns: usize) -> WrappedText {
        rows(&InputText { text: text.into(), cursor }, columns)
    }

    #[test]
    fn a_text_is_shown_in_rows_with_the_cursor_in_its_place() {
        let expected = |rows: &[&str], cursor_row, cursor_column| WrappedText {
            rows: rows.iter().map(ToString::to_string).collect(),
            cursor_row,
            cursor_column,
        };
        assert_eq!(of("", 0, 10), expected(&[""], 0, 0));
        assert_eq!(of("abc", 1, 10), expected(&["abc"], 0, 1));
        assert_eq!(of("abcdef", 6, 4), expected(&["abcd", "ef"], 1, 2));
        assert_eq!(of("one\ntwo", 3, 10), expected(&["one", "two"], 0, 3));
        assert_eq!(of("漢字か", 3, 4), expected(&["漢字", "か"], 0, 2));
        assert_eq!(of("a\tb", 3, 10), expected(&["a b"], 0, 3));
        let long = "x\n".repeat(20);
        let shown = of(&long, long.len(), 10);
        assert_eq!((shown.rows.len(), shown.cursor_row), (MAX_ROWS, MAX_ROWS - 1));
    }

    #[test]
    fn the_area_makes_room_before_it_remembers_where_the_conversation_ended() {
        let input = InputText { text: "hi".into(), cursor: 2 };
        let drawn = draw(Some("busy"), PROMPT, &input, Some(40), false);
        assert!(drawn.starts_with("\x1bD\x1bD\x1b[2A\x1b7\r\n"), "{drawn:?}");
        assert!(drawn.ends_with("\r\x1b[4C"), "{drawn:?}");
        let drawn = draw(None, "[y/n]", &input, Some(40), true);
        assert!(drawn.starts_with("\x1b7\r") && drawn.contains("[y/n]"), "{drawn:?}");
        assert!(drawn.ends_with("\r\x1b[8C"), "{drawn:?}");
    }
}
