//! A session as a Markdown document.
//!
//! The agent's answers are Markdown already and stay unchanged; everything else is quoted, fenced or escaped, so that
//! it cannot be taken for the document's own markup.

use std::io::{self, Write};

use grove_core::{is_unprintable, printable};

use super::{Heading, OutlineBody, OutlineItem, OutlineKind, SessionOutline, TurnOutline, TurnWriter};
use crate::normal::TranscriptTurn;

/// The minimum number of backticks or tildes of a code fence.
const FENCE: usize = 3;
/// The deepest heading.
const DEEPEST_HEADING: usize = 6;

/// Writes Markdown.
#[derive(Debug)]
pub struct Markdown<W> {
    out: W,
    turns: usize,
}

impl<W: Write> Markdown<W> {
    pub fn begin(mut out: W, heading: Heading<'_>) -> io::Result<Self> {
        let SessionOutline { title, facts } = SessionOutline::of(heading);
        writeln!(out, "# {}\n", escaped(&title))?;
        for (name, fact) in facts {
            writeln!(out, "- {name}: {}", escaped(&fact))?;
        }
        Ok(Self { out, turns: 0 })
    }

    fn outline(&mut self, turn: &TurnOutline, number: &str, level: usize) -> io::Result<()> {
        let marks = "#".repeat(level.min(DEEPEST_HEADING));
        writeln!(self.out, "\n{marks} Turn {number}\n")?;
        if !turn.facts.is_empty() {
            writeln!(self.out, "{}\n", escaped(&turn.facts.join(" · ")))?;
        }
        writeln!(self.out, "**{}**\n", turn.speaker)?;
        for line in turn.message.lines() {
            writeln!(self.out, "{}", format!("> {}", quotable(line)).trim_end())?;
        }
        for attachment in &turn.attachments {
            writeln!(self.out, "> - {}", escaped(attachment))?;
        }
        writeln!(self.out)?;
        for piece in &turn.pieces {
            self.piece(piece, number, level)?;
        }
        if let Some(state) = &turn.state {
            writeln!(self.out, "**This turn: {}**\n", escaped(state))?;
        }
        for (name, lines) in &turn.lists {
            writeln!(self.out, "{name}:\n")?;
            for line in lines {
                writeln!(self.out, "- {}", escaped(line))?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: &OutlineItem, number: &str, level: usize) -> io::Result<()> {
        if piece.kind == OutlineKind::AgentText {
            for body in &piece.bodies {
                writeln!(self.out, "{}\n", closed(&printable(&body.text)))?;
            }
            return Ok(());
        }
        let facts = match piece.facts.is_empty() {
            true => String::new(),
            false => format!(" ({})", escaped(&piece.facts.join(", "))),
        };
        writeln!(self.out, "**{}**{facts}\n", escaped(&piece.head))?;
        for OutlineBody { label, text } in &piece.bodies {
            if !label.is_empty() {
                writeln!(self.out, "{label}:\n")?;
            }
            let text = printable(text);
            let fence = "`".repeat(longest_run(&text).max(FENCE - 1) + 1);
            writeln!(self.out, "{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))?;
        }
        for (at, turn) in piece.turns.iter().enumerate() {
            self.outline(turn, &format!("{number}.{}", at + 1), level + 1)?;
        }
        Ok(())
    }
}

impl<W: Write> TurnWriter for Markdown<W> {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()> {
        self.turns += 1;
        let number = self.turns.to_string();
        self.outline(&TurnOutline::of(turn), &number, 2)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A line of text without markup.
fn escaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !is_unprintable(*letter)) {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '|' | '~') {
            plain.push('\\');
        }
        plain.push(letter);
    }
    plain
}

/// A line of a message. People write Markdown as well; a lone tag would be taken for one.
fn quotable(line: &str) -> String {
    printable(line).replace('<', "\\<")
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Markdown with its last code block closed: an interrupted answer would include what follows.
fn closed(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { continue };
        let length = line.chars().take_while(|letter| *letter == mark).count();
        open = match open {
            None if length >= FENCE => Some((mark, length)),
            Some((own, fence_length)) if own == mark && length >= fence_length && line[length..].trim().is_empty() => {
                None
            }
            as_it_is => as_it_is,
        };
    }
    match open {
        Some((mark, length)) => format!("{text}\n{}", mark.to_string().repeat(length)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_code_that_was_cut_off_is_closed() {
        for (text, expected) in [
            ("a\n```rs\nfn", "a\n```rs\nfn\n```"),
            ("```\nx\n```", "```\nx\n```"),
            ("````\n```\n", "````\n```\n\n````"),
            ("~~~\n```\n~~~", "~~~\n```\n~~~"),
            ("plain", "plain"),
        ] {
            assert_eq!(closed(text), expected);
        }
    }

    #[test]
    fn words_are_no_markup() {
        assert_eq!(escaped("a*b <script> [x](y) `c`\u{1b}[2J"), "a\\*b \\<script\\> \\[x\\](y) \\`c\\`\\[2J");
    }
}
