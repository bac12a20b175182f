//! Applies changes by ranges to a text, like the editor.

use grove_transcript::{TextChange, TextPosition};

/// The text after changes that all refer to the original text. Positions after the end of a line or of the text are its
/// end; of overlapping changes, the later one in the text is applied and the other cut short.
pub fn apply_changes(text: &str, changes: &[TextChange]) -> String {
    let lines = line_starts(text);
    let mut places: Vec<(usize, usize, &str)> = changes
        .iter()
        .map(|change| {
            let start = offset_of(text, &lines, change.range.start);
            let end = offset_of(text, &lines, change.range.end);
            (start.min(end), start.max(end), change.text.as_str())
        })
        .collect();
    places.sort_by_key(|(start, end, _)| (*start, *end));
    let mut changed = String::with_capacity(text.len());
    let mut done = 0;
    for (at, (start, end, with)) in places.iter().enumerate() {
        let next = places.get(at + 1).map_or(text.len(), |(start, ..)| *start);
        changed.push_str(&text[done.min(*start)..*start]);
        changed.push_str(with);
        done = (*end).min(next.max(*start)).max(done);
    }
    changed.push_str(&text[done..]);
    changed
}

/// The start of each line. Lines end with `\n`, `\r\n` or `\r`.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
        if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
            starts.push(at + 1);
        }
    }
    starts
}

fn offset_of(text: &str, lines: &[usize], position: TextPosition) -> usize {
    let line = usize::try_from(position.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(&start) = lines.get(line) else { return text.len() };
    let end = lines.get(line + 1).copied().unwrap_or(text.len());
    let content = text[start..end].trim_end_matches(['\r', '\n']);
    let mut column = position.column.saturating_sub(1);
    for (at, letter) in content.char_indices() {
        let width = letter.len_utf16() as u64;
        if column < width {
            return start + at;
        }
        column -= width;
    }
    start + content.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use grove_transcript::TextRange;

    fn change(start: (u64, u64), end: (u64, u64), text: &str) -> TextChange {
        let at = |(line, column)| TextPosition { line, column };
        TextChange { range: TextRange { start: at(start), end: at(end) }, text: text.into() }
    }

    #[test]
    fn changes_count_lines_and_utf16_columns_of_the_text_before_them() {
        let text = "one\r\n𝄞two\nthree";
        for (changes, expected) in [
            (vec![change((1, 1), (1, 4), "1")], "1\r\n𝄞two\nthree"),
            (vec![change((2, 3), (2, 6), "2")], "one\r\n𝄞2\nthree"),
            (vec![change((3, 1), (3, 6), "3"), change((1, 1), (1, 1), "x")], "xone\r\n𝄞two\n3"),
            (vec![change((1, 99), (2, 1), "")], "one𝄞two\nthree"),
            (vec![change((9, 1), (9, 9), "!")], "one\r\n𝄞two\nthree!"),
            (vec![], text),
        ] {
            assert_eq!(apply_changes(text, &changes), expected);
        }
    }

    #[test]
    fn changes_that_overlap_are_both_seen() {
        let overlapping = [change((1, 1), (1, 4), "A"), change((1, 3), (1, 6), "B")];
        assert_eq!(apply_changes("abcdefg", &overlapping), "ABfg");
    }
}
