//! Where a conversation is written: answers to stdout, everything about them to stderr, so that `grove run … > file`
//! holds the answer and nothing else.

use std::fmt::Display;
use std::io::{self, Write};

use super::style::{dim, harmless};

/// The two streams, which are one to the eye: what stands in the last line is known whichever wrote it.
#[derive(Debug)]
pub(crate) struct Screen {
    last: Last,
}

/// Whose line is not at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nobody,
    Answer,
    Aside,
}

impl Screen {
    pub(crate) const fn new() -> Self {
        Self { last: Last::Nobody }
    }

    /// More of an answer.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        let text = harmless(text);
        if text.is_empty() {
            return Ok(());
        }
        if self.last == Last::Aside {
            self.end_line()?;
        }
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        self.last = if text.ends_with('\n') { Last::Nobody } else { Last::Answer };
        Ok(())
    }

    /// More of what is thought.
    pub(crate) fn thought(&mut self, text: &str) -> io::Result<()> {
        let text = harmless(text);
        if text.is_empty() {
            return Ok(());
        }
        if self.last == Last::Answer {
            self.end_line()?;
        }
        let mut out = anstream::stderr().lock();
        write!(out, "{}", dim(&text))?;
        self.last = if text.ends_with('\n') { Last::Nobody } else { Last::Aside };
        Ok(())
    }

    /// A line about the conversation.
    pub(crate) fn line(&mut self, line: impl Display) -> io::Result<()> {
        self.end_line()?;
        writeln!(anstream::stderr().lock(), "{line}")
    }

    /// A question, which the person answers behind it.
    pub(crate) fn prompt(&mut self, question: impl Display) -> io::Result<()> {
        self.end_line()?;
        let mut out = anstream::stderr().lock();
        write!(out, "{question} ")?;
        out.flush()?;
        self.last = Last::Aside;
        Ok(())
    }

    /// The person pressed enter: on a terminal, that ends the line.
    pub(crate) fn entered(&mut self) {
        self.last = Last::Nobody;
    }

    /// Ends the line that somebody left open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.last, Last::Nobody) {
            Last::Nobody => Ok(()),
            Last::Answer => {
                let mut out = anstream::stdout().lock();
                out.write_all(b"\n")?;
                out.flush()
            }
            Last::Aside => anstream::stderr().lock().write_all(b"\n"),
        }
    }
}
