//! A chat as it goes on: what is new since the last look is written behind what was.
//!
//! It compares with the state instead of following actions, so a replay, a snapshot and changes that were seen as one
//! all look the same.

use std::collections::{BTreeMap, HashSet};
use std::io;

use super::screen::Screen;
use super::style::{bold, cyan, dim, green, harmless, red, yellow};
use crate::talk::{Content, End, Key, Part, Tool, ToolState, Turn, View, one_line};

/// Whether questions are written with the chat, or somebody else puts them to the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    Shown,
    AskedHere,
}

/// What of a chat has been written.
#[derive(Debug)]
pub(crate) struct ChatShow {
    questions: Questions,
    /// The last finished turn that was written to its end.
    done: Option<String>,
    current: Option<TurnShow>,
    /// Turns whose prompts stand in the terminal already.
    own: HashSet<String>,
    queued: usize,
}

#[derive(Debug)]
struct TurnShow {
    id: String,
    parts: BTreeMap<Key, Shown>,
}

/// What of a part has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// So many bytes.
    Upto(usize),
    Begun,
    Over,
}

impl ChatShow {
    pub(crate) fn new(questions: Questions) -> Self {
        Self { questions, done: None, current: None, own: HashSet::new(), queued: 0 }
    }

    /// Begins behind all turns that are there but the newest few, and those from `turn` on, which are written.
    pub(crate) fn begin(
        &mut self,
        view: &View<'_>,
        newest: usize,
        turn: Option<&str>,
        screen: &mut Screen,
    ) -> io::Result<()> {
        let from = turn.and_then(|turn| view.turns.iter().position(|done| done.id == turn));
        let hidden = from.unwrap_or(view.turns.len()).saturating_sub(newest);
        if let Some(last) = hidden.checked_sub(1).and_then(|last| view.turns.get(last)) {
            self.done = Some(last.id.to_owned());
        }
        if newest > 0 && (hidden > 0 || view.older) {
            screen.line(dim("… (older turns are not shown)"))?;
        }
        self.queued = view.queued.len();
        Ok(())
    }

    /// A turn of this client's, whose prompt need not be repeated.
    pub(crate) fn mine(&mut self, turn: &str) {
        self.own.insert(turn.to_owned());
    }

    /// Writes what is new.
    pub(crate) fn update(&mut self, view: &View<'_>, screen: &mut Screen) -> io::Result<()> {
        let after = self.done.as_ref().and_then(|done| view.turns.iter().position(|turn| turn.id == done));
        let from = match (after, &self.done) {
            (Some(at), _) => at + 1,
            (None, None) => 0,
            // What was written last is not held any more: what is held now is all newer, or was cut off behind it.
            (None, Some(_)) => view.turns.len().saturating_sub(1),
        };
        for turn in view.turns.iter().skip(from) {
            self.turn(turn, screen)?;
            self.end(turn, screen)?;
        }
        if let Some(active) = &view.active {
            self.turn(active, screen)?;
        }
        if view.queued.len() > self.queued
            && let Some(last) = view.queued.last()
        {
            screen.line(dim(format!("queued: {}", one_line(&harmless(last)))))?;
        }
        self.queued = view.queued.len();
        Ok(())
    }

    fn turn(&mut self, turn: &Turn<'_>, screen: &mut Screen) -> io::Result<()> {
        if self.current.as_ref().is_none_or(|current| current.id != turn.id) {
            if !self.own.contains(turn.id) {
                screen.line(format_args!("{} {}", cyan("›"), bold(harmless(turn.prompt).trim_end())))?;
            }
            self.current = Some(TurnShow { id: turn.id.to_owned(), parts: BTreeMap::new() });
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        for part in &turn.parts {
            let shown = current.parts.get(&part.key).copied();
            if shown != Some(Shown::Over)
                && let Some(shown) = write_part(part, shown, self.questions, screen)?
            {
                current.parts.insert(part.key, shown);
            }
        }
        Ok(())
    }

    fn end(&mut self, turn: &Turn<'_>, screen: &mut Screen) -> io::Result<()> {
        screen.end_line()?;
        match turn.end {
            Some(End::Complete) | None => {}
            Some(End::Cancelled) => screen.line(yellow("– cancelled"))?,
            Some(End::Failed(why)) => screen.line(format_args!("{} {}", red("✗ failed:"), harmless(why)))?,
        }
        self.done = Some(turn.id.to_owned());
        self.current = None;
        Ok(())
    }
}

/// Writes what is new of a part, and says what has been written now.
fn write_part(
    part: &Part<'_>,
    shown: Option<Shown>,
    questions: Questions,
    screen: &mut Screen,
) -> io::Result<Option<Shown>> {
    let upto = match shown {
        Some(Shown::Upto(upto)) => upto,
        Some(Shown::Begun | Shown::Over) | None => 0,
    };
    Ok(match &part.content {
        Content::Text(text) => {
            screen.answer(text.get(upto..).unwrap_or_default())?;
            Some(Shown::Upto(text.len()))
        }
        Content::Reasoning(text) => {
            screen.thought(text.get(upto..).unwrap_or_default())?;
            Some(Shown::Upto(text.len()))
        }
        Content::Tool(tool) => write_tool(tool, shown, screen)?,
        Content::Question { asks, response } => {
            // One that is answered already is nobody's to ask.
            if shown.is_none() && (questions == Questions::Shown || response.is_some()) {
                screen.line(format_args!("{} {}", yellow("?"), harmless(asks)))?;
            }
            match response {
                Some(response) => {
                    screen.line(dim(format!("  {response}")))?;
                    Some(Shown::Over)
                }
                None => Some(Shown::Begun),
            }
        }
        Content::Notice(notice) => {
            screen.line(dim(harmless(notice)))?;
            Some(Shown::Over)
        }
    })
}

fn write_tool(tool: &Tool<'_>, shown: Option<Shown>, screen: &mut Screen) -> io::Result<Option<Shown>> {
    let input = tool.input.map(|input| format!(" {}", dim(one_line(&harmless(input))))).unwrap_or_default();
    match &tool.state {
        ToolState::NotYet => return Ok(None),
        ToolState::Runs => {
            if shown.is_none() {
                screen.line(format_args!("{} {}{input}", cyan("▸"), one_line(&harmless(tool.does))))?;
            }
            return Ok(Some(Shown::Begun));
        }
        ToolState::Done { success, did, output } => {
            let sign = if *success { format!("{}", green("✓")) } else { format!("{}", red("✗")) };
            let output = summary(&harmless(output));
            // What it was given stands in the line before, where there is one.
            let input = if shown.is_none() { input } else { String::new() };
            screen.line(format_args!("{sign} {}{input}{output}", one_line(&harmless(did))))?;
        }
        ToolState::Cancelled { why } => {
            let (does, why) = (one_line(&harmless(tool.does)), one_line(&harmless(why)));
            screen.line(format_args!("{} {does}{input}: {why}", yellow("–")))?;
        }
    }
    Ok(Some(Shown::Over))
}

/// What a tool gave, behind what it did.
fn summary(output: &str) -> String {
    let lines = output.trim_end().lines().count();
    match output.trim().lines().next() {
        None => String::new(),
        Some(first) if lines <= 1 => format!(": {}", dim(one_line(first))),
        Some(first) => format!(": {}", dim(format!("{} … ({lines} lines)", one_line(first)))),
    }
}
