//! The text on a terminal, as plain text.

/// The text without terminal control sequences. A line that is overwritten shows the last text.
pub(super) fn screen(shown: &str) -> String {
    let mut plain = String::with_capacity(shown.len());
    let mut line = 0;
    let mut chars = shown.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => escape(&mut chars),
            '\n' => {
                plain.push('\n');
                line = plain.len();
            }
            '\r' if chars.peek().is_none_or(|next| *next == '\n' || *next == '\r') => {}
            '\r' => plain.truncate(line),
            '\u{8}' if plain.len() > line => drop(plain.pop()),
            '\t' => plain.push('\t'),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Skips the rest of a sequence, also of one that is cut off.
fn escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => drop(chars.find(|c| ('@'..='~').contains(c))),
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                match c {
                    '\u{7}' => return,
                    '\u{1b}' => {
                        chars.next();
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%') => drop(chars.next()),
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_progress_leave_the_words() {
        assert_eq!(screen("\u{1b}[1;31mred\u{1b}[0m\r\nb\r\n"), "red\nb\n");
        assert_eq!(screen("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b"), "ab");
        assert_eq!(screen("1%\r50%\r100%\ndone\r"), "100%\ndone");
        assert_eq!(screen("ab\u{8}c\u{0}\td\u{1b}(B"), "ac\td");
        assert_eq!(screen("cut\u{1b}[3"), "cut");
        assert_eq!(screen("\u{8}\u{8}\na\u{1b}"), "\na");
    }
}
