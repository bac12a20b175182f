//! The text that is being edited, and the history of entered texts.

use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, Word};

use super::keys::KeyPress;

/// The maximum size of a text.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The size of the history.
const MAX_HISTORY: usize = 200;

/// The outcome of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditOutcome {
    Nothing,
    Changed,
    Entered(String),
    Interrupt,
    /// Ctrl-D on an empty line.
    End,
}

pub(crate) struct LineEditor {
    line: LineBuffer,
    history: Vec<String>,
    /// The index of the recalled text, and the text that was being written before.
    recalled: Option<(usize, String)>,
}

impl std::fmt::Debug for LineEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineEditor").field("line", &self.line).finish_non_exhaustive()
    }
}

/// A listener that ignores changes.
struct NoListener;

impl DeleteListener for NoListener {
    fn delete(&mut self, _: usize, _: &str, _: Direction) {}
}

impl ChangeListener for NoListener {
    fn insert_char(&mut self, _: usize, _: char) {}
    fn insert_str(&mut self, _: usize, _: &str) {}
    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

impl LineEditor {
    pub(super) fn new() -> Self {
        Self { line: LineBuffer::with_capacity(MAX_TEXT_BYTES), history: Vec::new(), recalled: None }
    }

    pub(crate) fn text(&self) -> &str {
        self.line.as_str()
    }

    /// The byte position of the cursor in the text.
    pub(crate) fn cursor(&self) -> usize {
        self.line.pos()
    }

    /// Clears the text.
    pub(crate) fn clear(&mut self) {
        self.line.update("", 0, &mut NoListener);
        self.recalled = None;
    }

    pub(super) fn apply(&mut self, key: KeyPress) -> EditOutcome {
        let line = &mut self.line;
        let is_changed = match key {
            KeyPress::Char(c) => line.insert(c, 1, &mut NoListener).is_some(),
            KeyPress::NewLine => line.insert('\n', 1, &mut NoListener).is_some(),
            KeyPress::Paste(text) => line.yank(&text, 1, &mut NoListener).is_some(),
            KeyPress::Backspace => line.backspace(1, &mut NoListener),
            KeyPress::Delete => line.delete(1, &mut NoListener).is_some(),
            KeyPress::Left | KeyPress::Ctrl('b') => line.move_backward(1),
            KeyPress::Right | KeyPress::Ctrl('f') => line.move_forward(1),
            KeyPress::WordLeft => line.move_to_prev_word(Word::Emacs, 1),
            KeyPress::WordRight => line.move_to_next_word(At::AfterEnd, Word::Emacs, 1),
            KeyPress::Home | KeyPress::Ctrl('a') => line.move_home(),
            KeyPress::End | KeyPress::Ctrl('e') => line.move_end(),
            KeyPress::DeleteWord => line.delete_prev_word(Word::Big, 1, &mut NoListener),
            KeyPress::Ctrl('u') => line.discard_line(&mut NoListener),
            KeyPress::Ctrl('k') => line.kill_line(&mut NoListener),
            KeyPress::Up | KeyPress::Ctrl('p') => self.recall(HistoryStep::Older),
            KeyPress::Down | KeyPress::Ctrl('n') => self.recall(HistoryStep::Newer),
            KeyPress::Enter => return EditOutcome::Entered(self.enter()),
            KeyPress::Ctrl('c') => return EditOutcome::Interrupt,
            KeyPress::Ctrl('d') if line.is_empty() => return EditOutcome::End,
            KeyPress::Ctrl('d') => line.delete(1, &mut NoListener).is_some(),
            KeyPress::Ctrl(_) => false,
        };
        if is_changed { EditOutcome::Changed } else { EditOutcome::Nothing }
    }

    fn enter(&mut self) -> String {
        let text = self.line.as_str().to_owned();
        self.clear();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let excess = self.history.len().saturating_sub(MAX_HISTORY);
            self.history.drain(..excess);
        }
        text
    }

    fn recall(&mut self, which: HistoryStep) -> bool {
        let newest = self.history.len();
        let at = self.recalled.as_ref().map_or(newest, |(at, _)| *at);
        let wanted = match which {
            HistoryStep::Older => at.checked_sub(1),
            HistoryStep::Newer => Some(at + 1).filter(|wanted| *wanted <= newest),
        };
        let Some(wanted) = wanted else { return false };
        let written = match self.recalled.take() {
            Some((_, written)) => written,
            None => self.line.as_str().to_owned(),
        };
        let text = self.history.get(wanted).unwrap_or(&written).clone();
        self.line.update(&text, text.len(), &mut NoListener);
        self.recalled = (wanted < newest).then_some((wanted, written));
        true
    }
}

#[derive(Clone, Copy)]
enum HistoryStep {
    Older,
    Newer,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut LineEditor, text: &str) {
        text.chars().for_each(|c| {
            editor.apply(KeyPress::Char(c));
        });
    }

    #[test]
    fn a_line_is_edited_where_the_cursor_is() {
        let mut editor = LineEditor::new();
        typed(&mut editor, "fix tests");
        editor.apply(KeyPress::WordLeft);
        typed(&mut editor, "the ");
        assert_eq!((editor.text(), editor.cursor()), ("fix the tests", 8));
        editor.apply(KeyPress::End);
        editor.apply(KeyPress::DeleteWord);
        editor.apply(KeyPress::Backspace);
        editor.apply(KeyPress::Home);
        editor.apply(KeyPress::Delete);
        assert_eq!(editor.text(), "ix the");
        editor.apply(KeyPress::Ctrl('k'));
        assert_eq!(editor.text(), "");
        assert_eq!(editor.apply(KeyPress::Ctrl('d')), EditOutcome::End);
    }

    #[test]
    fn a_paste_is_one_text_and_nothing_is_entered_before_enter() {
        let mut editor = LineEditor::new();
        typed(&mut editor, "see: ");
        assert_eq!(editor.apply(KeyPress::Paste("one\ntwo\nthree".into())), EditOutcome::Changed);
        assert_eq!(editor.apply(KeyPress::Enter), EditOutcome::Entered("see: one\ntwo\nthree".into()));
        assert_eq!(editor.text(), "");
        assert_eq!(
            editor.apply(KeyPress::Paste("x".repeat(MAX_TEXT_BYTES + 1))),
            EditOutcome::Nothing,
            "excess text is refused"
        );
    }

    #[test]
    fn earlier_texts_are_recalled_and_the_one_that_was_being_written_comes_back() {
        let mut editor = LineEditor::new();
        for text in ["one", "two", "two", " "] {
            typed(&mut editor, text);
            editor.apply(KeyPress::Enter);
        }
        typed(&mut editor, "dra");
        editor.apply(KeyPress::Up);
        assert_eq!(editor.text(), "two");
        editor.apply(KeyPress::Up);
        assert_eq!(editor.apply(KeyPress::Up), EditOutcome::Nothing);
        assert_eq!(editor.text(), "one");
        editor.apply(KeyPress::Down);
        editor.apply(KeyPress::Down);
        assert_eq!(editor.text(), "dra");
        assert_eq!(editor.apply(KeyPress::Down), EditOutcome::Nothing);
    }
}
