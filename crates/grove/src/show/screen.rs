//! The output of a conversation: answers to stdout, everything about them to stderr.
//!
//! So `grove run … > file` writes the answer and nothing else.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use super::input_area::{ERASE, InputText, PROMPT, draw};
use super::style::{bold, cyan, dim, sanitize};
use super::table::terminal_width;
use crate::chat_client::one_line;

/// The two streams, which share a terminal: both know the state of the last line.
pub(crate) struct ChatScreen {
    answers: Box<dyn Write>,
    asides: Box<dyn Write>,
    terminal: TerminalStreams,
    last: OpenLine,
    /// A status line that is erased before anything else is written.
    passing: Option<String>,
    /// The agent's activity, shown beside the spinner.
    activity: Option<String>,
    spinner: Option<String>,
    /// The number of spinner steps.
    spun: usize,
    /// The input line below the conversation, if there is one.
    input: Option<InputLine>,
}

/// An input line.
#[derive(Debug, Default)]
struct InputLine {
    mark: String,
    text: InputText,
    is_drawn: bool,
}

/// The frames of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The streams that go to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalStreams {
    /// Stdout goes to the same terminal as stderr.
    pub(crate) answers: bool,
    /// Lines on stderr can be erased.
    pub(crate) asides: bool,
}

/// The owner of an unfinished line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenLine {
    Nobody,
    Answer,
    Aside,
    /// A question, after which the user types.
    Question,
}

impl fmt::Debug for ChatScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatScreen").field("terminal", &self.terminal).field("last", &self.last).finish_non_exhaustive()
    }
}

impl ChatScreen {
    pub(crate) fn new() -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        // Erasing a line needs the same as colours: a terminal with control sequences.
        let asides = stderr.is_terminal() && AutoStream::choice(&stderr) != ColorChoice::Never;
        let terminal = TerminalStreams { answers: stdout.is_terminal(), asides };
        Self::on(Box::new(anstream::stdout()), Box::new(anstream::stderr()), terminal)
    }

    fn on(answers: Box<dyn Write>, asides: Box<dyn Write>, terminal: TerminalStreams) -> Self {
        Self {
            answers,
            asides,
            terminal,
            last: OpenLine::Nobody,
            passing: None,
            activity: None,
            spinner: None,
            spun: 0,
            input: None,
        }
    }

    /// Returns whether both streams go to a terminal on which rows can be erased.
    pub(crate) fn can_have_an_input_line(&self) -> bool {
        self.terminal.answers && self.terminal.asides && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Shows an input line below the conversation from now on.
    pub(crate) fn open_input(&mut self) {
        self.input = Some(InputLine { mark: PROMPT.to_owned(), ..InputLine::default() });
    }

    /// Removes the input line for good.
    pub(crate) fn close_input(&mut self) -> io::Result<()> {
        self.lift()?;
        self.input = None;
        self.passing = None;
        Ok(())
    }

    /// Draws the input line with this text. Later output erases it until the next call.
    pub(crate) fn settle(&mut self, text: InputText) -> io::Result<()> {
        let is_at_line_start = self.last == OpenLine::Nobody;
        let Some(input) = &mut self.input else { return Ok(()) };
        if input.is_drawn && input.text == text {
            return Ok(());
        }
        let erase = if input.is_drawn { ERASE } else { "" };
        input.text = text;
        input.is_drawn = true;
        let area = draw(self.passing.as_deref(), &input.mark, &input.text, terminal_width(), is_at_line_start);
        self.write_aside(format_args!("{erase}{area}"))
    }

    /// Draws the input line again for the new size of the terminal.
    pub(crate) fn resized(&mut self) -> io::Result<()> {
        self.lift()
    }

    /// Writes the entered text into the conversation.
    pub(crate) fn entered_text(&mut self, text: &str) -> io::Result<()> {
        let Some(input) = &self.input else {
            self.entered();
            return Ok(());
        };
        let (mark, text) = (input.mark.clone(), sanitize(text.trim_end()));
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        self.line(format_args!("{} {}", cyan(mark), bold(first)))?;
        for line in lines {
            self.line(format_args!("  {}", bold(line)))?;
        }
        self.mark(PROMPT)
    }

    /// Sets the text before the input line: the prompt, or the possible answers to a question.
    pub(crate) fn mark(&mut self, mark: &str) -> io::Result<()> {
        if self.input.as_ref().is_some_and(|input| input.mark != mark) {
            self.lift()?;
            if let Some(input) = &mut self.input {
                mark.clone_into(&mut input.mark);
            }
        }
        Ok(())
    }

    /// Erases the input line, to write at the end of the conversation.
    fn lift(&mut self) -> io::Result<()> {
        match &mut self.input {
            Some(input) if input.is_drawn => {
                input.is_drawn = false;
                self.write_aside(ERASE)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes more of an answer.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        let text = sanitize(text);
        if text.is_empty() {
            return Ok(());
        }
        self.stop_spinning();
        self.wipe()?;
        if matches!(self.last, OpenLine::Aside | OpenLine::Question) {
            self.end_line()?;
        }
        self.answers.write_all(text.as_bytes())?;
        self.answers.flush()?;
        self.last = if text.ends_with('\n') { OpenLine::Nobody } else { OpenLine::Answer };
        Ok(())
    }

    /// Writes more of the reasoning.
    pub(crate) fn thought(&mut self, text: &str) -> io::Result<()> {
        let text = sanitize(text);
        if text.is_empty() {
            return Ok(());
        }
        self.stop_spinning();
        self.wipe()?;
        if self.last == OpenLine::Answer {
            self.end_line()?;
        }
        self.write_aside(dim(&text))?;
        self.last = if text.ends_with('\n') { OpenLine::Nobody } else { OpenLine::Aside };
        Ok(())
    }

    /// Writes a line about the conversation.
    pub(crate) fn line(&mut self, line: impl Display) -> io::Result<()> {
        self.end_line()?;
        self.write_aside(format_args!("{line}\n"))
    }

    /// Writes a question; the user answers after it.
    pub(crate) fn prompt(&mut self, question: impl Display) -> io::Result<()> {
        self.end_line()?;
        if self.input.is_some() {
            return self.mark(&question.to_string());
        }
        self.write_aside(format_args!("{question} "))?;
        self.last = OpenLine::Question;
        Ok(())
    }

    /// Shows a status on a terminal until anything else is written.
    pub(crate) fn passing(&mut self, what: Option<&str>) -> io::Result<()> {
        self.activity = what.map(|what| one_line(&sanitize(what))).filter(|what| !what.is_empty());
        self.pass()
    }

    /// Stops the spinner, since output was written.
    fn stop_spinning(&mut self) {
        self.spinner = None;
        if self.input.is_some() {
            self.passing.clone_from(&self.activity);
        }
    }

    fn pass(&mut self) -> io::Result<()> {
        let what = self.activity.clone().or_else(|| self.spinner.clone());
        if !self.terminal.asides || self.passing == what {
            return Ok(());
        }
        if self.input.is_some() {
            self.lift()?;
            self.passing = what;
            return Ok(());
        }
        self.wipe()?;
        let Some(what) = what else { return Ok(()) };
        match self.last {
            // The text that the user types would be erased, too.
            OpenLine::Question => return Ok(()),
            // An answer that goes elsewhere leaves this line free, and must not be split.
            OpenLine::Answer if !self.terminal.answers => {}
            OpenLine::Nobody | OpenLine::Answer | OpenLine::Aside => self.break_line()?,
        }
        // A line wider than the terminal could not be erased: it is cut off instead.
        self.write_aside(format_args!("\x1b[?7l{}\x1b[?7h", dim(&what)))?;
        self.passing = Some(what);
        Ok(())
    }

    /// Moves the spinner, with a description beside it. Only a terminal shows it.
    pub(crate) fn spin(&mut self, what: &str) -> io::Result<()> {
        self.spun = self.spun.wrapping_add(1);
        let picture = SPINNER.get(self.spun % SPINNER.len()).copied().unwrap_or_default();
        self.spinner = Some(format!("{picture} {what}"));
        self.pass()
    }

    /// Handles Enter: on a terminal, it ends the line.
    pub(crate) fn entered(&mut self) {
        // With an input line, the conversation above does not change.
        if self.input.is_some() {
            return;
        }
        self.last = OpenLine::Nobody;
        self.passing = None;
    }

    /// Ends an unfinished line.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.stop_spinning();
        self.break_line()
    }

    fn break_line(&mut self) -> io::Result<()> {
        self.wipe()?;
        match std::mem::replace(&mut self.last, OpenLine::Nobody) {
            OpenLine::Nobody => Ok(()),
            OpenLine::Answer => {
                self.answers.write_all(b"\n")?;
                self.answers.flush()
            }
            OpenLine::Aside | OpenLine::Question => self.write_aside("\n"),
        }
    }

    fn wipe(&mut self) -> io::Result<()> {
        if self.input.is_some() {
            return self.lift();
        }
        match self.passing.take() {
            Some(_) => self.write_aside("\r\x1b[K"),
            None => Ok(()),
        }
    }

    /// Writes to stderr in one piece, so that no other process's output comes between.
    fn write_aside(&mut self, text: impl Display) -> io::Result<()> {
        self.asides.write_all(text.to_string().as_bytes())?;
        self.asides.flush()
    }
}

impl Drop for ChatScreen {
    fn drop(&mut self) {
        // If the terminal cannot be written to, there is nothing to erase.
        drop(self.wipe());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    pub(in crate::show) struct TestStream(Rc<RefCell<Vec<u8>>>);

    impl Write for TestStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl TestStream {
        pub(in crate::show) fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.borrow_mut())).unwrap()
        }
    }

    /// A screen, and the streams that it writes to.
    pub(in crate::show) fn screen(answers: bool, asides: bool) -> (ChatScreen, TestStream, TestStream) {
        let (out, err) = (TestStream::default(), TestStream::default());
        (ChatScreen::on(Box::new(out.clone()), Box::new(err.clone()), TerminalStreams { answers, asides }), out, err)
    }

    const WIPED: &str = "\r\x1b[K";

    #[test]
    fn the_spinner_stays_until_something_is_written() {
        let (mut screen, out, err) = screen(true, true);
        screen.spin("waiting").unwrap();
        assert!(err.take().contains("waiting"));
        screen.passing(None).unwrap();
        assert_eq!(err.take(), "", "no activity is known, and the spinner stays");
        screen.answer("here").unwrap();
        assert_eq!((err.take().as_str(), out.take().as_str()), (WIPED, "here"));
        screen.passing(None).unwrap();
        assert_eq!(err.take(), "", "it is gone");
        screen.spin("waiting").unwrap();
        screen.passing(Some("busy")).unwrap();
        assert!(err.take().ends_with("busy\x1b[0m\x1b[?7h"), "the known activity comes first");
    }

    #[test]
    fn the_input_line_stays_below_whatever_is_written() {
        let (mut screen, out, err) = screen(true, true);
        screen.open_input();
        let typed = |text: &str| InputText { text: text.to_owned(), cursor: text.len() };
        screen.settle(typed("")).unwrap();
        err.take();
        screen.answer("half a").unwrap();
        assert_eq!((err.take().as_str(), out.take().as_str()), (ERASE, "half a"), "it is erased before");
        screen.settle(typed("my te")).unwrap();
        assert!(err.take().contains("my te"));
        screen.settle(typed("my te")).unwrap();
        assert_eq!(err.take(), "", "what stands there is not drawn again");
        screen.answer(" line").unwrap();
        assert_eq!((err.take().as_str(), out.take().as_str()), (ERASE, " line"), "the line goes on where it was");
        screen.prompt("[y/n]").unwrap();
        screen.settle(typed("y")).unwrap();
        assert!(anstream::adapter::strip_str(&err.take()).to_string().contains("[y/n] y"));
        screen.entered_text("y").unwrap();
        assert!(anstream::adapter::strip_str(&err.take()).to_string().contains("[y/n] y\n"), "it stays to be read");
        screen.passing(Some("busy")).unwrap();
        screen.settle(typed("")).unwrap();
        assert!(anstream::adapter::strip_str(&err.take()).to_string().contains("busy"));
        screen.close_input().unwrap();
        assert_eq!(err.take(), ERASE);
    }

    #[test]
    fn a_passing_line_goes_before_anything_else_is_written() {
        let (mut screen, out, err) = screen(true, true);
        for write in [
            (|screen| screen.answer("more\n")) as fn(&mut ChatScreen) -> io::Result<()>,
            |screen| screen.thought("hm\n"),
            |screen| screen.line("a line"),
            |screen| screen.passing(None),
            |screen| screen.end_line(),
        ] {
            screen.passing(Some("no answer for 20 s")).unwrap();
            assert!(err.take().contains("no answer for 20 s"));
            write(&mut screen).unwrap();
            assert!(err.take().starts_with(WIPED));
        }
        screen.passing(Some("busy")).unwrap();
        err.take();
        drop(screen);
        assert_eq!(err.take(), WIPED, "at the end, too");
        assert_eq!(out.take(), "more\n");
    }

    #[test]
    fn a_passing_line_is_for_terminals_only() {
        let (mut screen, out, err) = screen(true, false);
        screen.passing(Some("busy")).unwrap();
        screen.line("done").unwrap();
        assert_eq!((out.take(), err.take()), (String::new(), "done\n".to_owned()));
    }

    #[test]
    fn a_passing_line_is_written_once_and_in_one_line() {
        let (mut screen, _, err) = screen(true, true);
        screen.passing(Some("two\nlines\x1b[2J")).unwrap();
        let written = err.take();
        assert!(written.contains("two lines[2J") && !written.contains('\n'), "{written:?}");
        screen.passing(Some("two\nlines\x1b[2J")).unwrap();
        assert_eq!(err.take(), "");
        screen.passing(Some("other")).unwrap();
        assert!(err.take().starts_with(WIPED));
    }

    #[test]
    fn an_answer_that_goes_to_a_file_is_not_cut_by_a_passing_line() {
        let (mut screen, out, err) = screen(false, true);
        screen.answer("one ").unwrap();
        screen.passing(Some("busy")).unwrap();
        screen.answer("answer").unwrap();
        assert_eq!(out.take(), "one answer");
        assert!(err.take().ends_with(WIPED));
        let (mut screen, out, _) = self::screen(true, true);
        screen.answer("seen ").unwrap();
        screen.passing(Some("busy")).unwrap();
        assert_eq!(out.take(), "seen \n", "on a terminal it needs a line of its own");
    }

    #[test]
    fn nothing_passes_over_what_a_person_types() {
        let (mut screen, _, err) = screen(true, true);
        screen.prompt("[y/n]").unwrap();
        screen.passing(Some("busy")).unwrap();
        assert_eq!(err.take(), "[y/n] ");
        screen.entered();
        screen.passing(Some("busy")).unwrap();
        err.take();
        // The typed text ended the line: there is nothing to erase.
        screen.entered();
        screen.line("done").unwrap();
        assert_eq!(err.take(), "done\n");
    }
}
