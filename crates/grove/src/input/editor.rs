//! The text that is being edited, and those that were entered before.

use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, Word};

use super::keys::Key;

/// How many bytes a text may have. More is not taken.
const MOST_TEXT: usize = 256 << 10;
/// How many texts are remembered.
const MOST_HISTORY: usize = 200;

/// What comes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Nothing,
    Changed,
    Entered(String),
    Interrupt,
    /// Ctrl-D on an empty line.
    End,
}

pub(crate) struct Editor {
    line: LineBuffer,
    history: Vec<String>,
    /// The text of the history that is shown, and the one that was being written before.
    recalled: Option<(usize, String)>,
}

impl std::fmt::Debug for Editor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor").field("line", &self.line).finish_non_exhaustive()
    }
}

/// Nobody listens to changes.
struct Quiet;

impl DeleteListener for Quiet {
    fn delete(&mut self, _: usize, _: &str, _: Direction) {}
}

impl ChangeListener for Quiet {
    fn insert_char(&mut self, _: usize, _: char) {}
    fn insert_str(&mut self, _: usize, _: &str) {}
    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

impl Editor {
    pub(super) fn new() -> Self {
        Self { line: LineBuffer::with_capacity(MOST_TEXT), history: Vec::new(), recalled: None }
    }

    pub(crate) fn text(&self) -> &str {
        self.line.as_str()
    }

    /// The place of the cursor in the text, in bytes.
    pub(crate) fn cursor(&self) -> usize {
        self.line.pos()
    }

    /// Drops the text.
    pub(crate) fn clear(&mut self) {
        self.line.update("", 0, &mut Quiet);
        self.recalled = None;
    }

    pub(super) fn apply(&mut self, key: Key) -> Edit {
        let line = &mut self.line;
        let is_changed = match key {
            Key::Char(c) => line.insert(c, 1, &mut Quiet).is_some(),
            Key::NewLine => line.insert('\n', 1, &mut Quiet).is_some(),
            Key::Paste(text) => line.yank(&text, 1, &mut Quiet).is_some(),
            Key::Backspace => line.backspace(1, &mut Quiet),
            Key::Delete => line.delete(1, &mut Quiet).is_some(),
            Key::Left | Key::Ctrl('b') => line.move_backward(1),
            Key::Right | Key::Ctrl('f') => line.move_forward(1),
            Key::WordLeft => line.move_to_prev_word(Word::Emacs, 1),
            Key::WordRight => line.move_to_next_word(At::AfterEnd, Word::Emacs, 1),
            Key::Home | Key::Ctrl('a') => line.move_home(),
            Key::End | Key::Ctrl('e') => line.move_end(),
            Key::DeleteWord => line.delete_prev_word(Word::Big, 1, &mut Quiet),
            Key::Ctrl('u') => line.discard_line(&mut Quiet),
            Key::Ctrl('k') => line.kill_line(&mut Quiet),
            Key::Up | Key::Ctrl('p') => self.recall(Recall::Older),
            Key::Down | Key::Ctrl('n') => self.recall(Recall::Newer),
            Key::Enter => return Edit::Entered(self.enter()),
            Key::Ctrl('c') => return Edit::Interrupt,
            Key::Ctrl('d') if line.is_empty() => return Edit::End,
            Key::Ctrl('d') => line.delete(1, &mut Quiet).is_some(),
            Key::Ctrl(_) => false,
        };
        if is_changed { Edit::Changed } else { Edit::Nothing }
    }

    fn enter(&mut self) -> String {
        let text = self.line.as_str().to_owned();
        self.clear();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let excess = self.history.len().saturating_sub(MOST_HISTORY);
            self.history.drain(..excess);
        }
        text
    }

    fn recall(&mut self, which: Recall) -> bool {
        let newest = self.history.len();
        let at = self.recalled.as_ref().map_or(newest, |(at, _)| *at);
        let wanted = match which {
            Recall::Older => at.checked_sub(1),
            Recall::Newer => Some(at + 1).filter(|wanted| *wanted <= newest),
        };
        let Some(wanted) = wanted else { return false };
        let written = match self.recalled.take() {
            Some((_, written)) => written,
            None => self.line.as_str().to_owned(),
        };
        let text = self.history.get(wanted).unwrap_or(&written).clone();
        self.line.update(&text, text.len(), &mut Quiet);
        self.recalled = (wanted < newest).then_some((wanted, written));
        true
    }
}

#[derive(Clone, Copy)]
enum Recall {
    Older,
    Newer,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut Editor, text: &str) {
        text.chars().for_each(|c| {
            editor.apply(Key::Char(c));
        });
    }

    #[test]
    fn a_line_is_edited_where_the_cursor_is() {
        let mut editor = Editor::new();
        typed(&mut editor, "fix tests");
        editor.apply(Key::WordLeft);
        typed(&mut editor, "the ");
        assert_eq!((editor.text(), editor.cursor()), ("fix the tests", 8));
        editor.apply(Key::End);
        editor.apply(Key::DeleteWord);
        editor.apply(Key::Backspace);
        editor.apply(Key::Home);
        editor.apply(Key::Delete);
        assert_eq!(editor.text(), "ix the");
        editor.apply(Key::Ctrl('k'));
        assert_eq!(editor.text(), "");
        assert_eq!(editor.apply(Key::Ctrl('d')), Edit::End);
    }

    #[test]
    fn a_paste_is_one_text_and_nothing_is_entered_before_enter() {
        let mut editor = Editor::new();
        typed(&mut editor, "see: ");
        assert_eq!(editor.apply(Key::Paste("one\ntwo\nthree".into())), Edit::Changed);
        assert_eq!(editor.apply(Key::Enter), Edit::Entered("see: one\ntwo\nthree".into()));
        assert_eq!(editor.text(), "");
        assert_eq!(editor.apply(Key::Paste("x".repeat(MOST_TEXT + 1))), Edit::Nothing, "more than fits is not taken");
    }

    #[test]
    fn earlier_texts_are_recalled_and_the_one_that_was_being_written_comes_back() {
        let mut editor = Editor::new();
        for text in ["one", "two", "two", " "] {
            typed(&mut editor, text);
            editor.apply(Key::Enter);
        }
        typed(&mut editor, "dra");
        editor.apply(Key::Up);
        assert_eq!(editor.text(), "two");
        editor.apply(Key::Up);
        assert_eq!(editor.apply(Key::Up), Edit::Nothing);
        assert_eq!(editor.text(), "one");
        editor.apply(Key::Down);
        editor.apply(Key::Down);
        assert_eq!(editor.text(), "dra");
        assert_eq!(editor.apply(Key::Down), Edit::Nothing);
    }
}
