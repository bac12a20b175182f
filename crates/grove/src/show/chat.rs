//! Printing a chat as it grows: each update writes what is new.
//!
//! It compares states instead of following actions, so a replay, a snapshot and combined changes all look the same.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::Instant;

use super::call::{self, ToolCallSubject};
use super::facts::{self, current_folder};
use super::screen::ChatScreen;
use super::style::{bold, cyan, dim, green, red, sanitize, yellow};
use crate::chat_client::{
    ChatView, PartContent, PartKey, PartView, ToolPart, ToolPartState, TurnResult, TurnView, one_line,
};

/// The printing of questions: with the chat, or left to the dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    Shown,
    AskedHere,
}

/// The printed part of a chat.
#[derive(Debug)]
pub(crate) struct ChatPrinter {
    questions: Questions,
    /// The last finished turn that was printed completely.
    done: Option<String>,
    current: Option<TurnPrinter>,
    /// Turns whose prompts are already on the terminal.
    own: HashSet<String>,
    queued: usize,
    /// Warnings that are already on the terminal.
    warned: HashSet<String>,
}

#[derive(Debug)]
struct TurnPrinter {
    id: String,
    parts: BTreeMap<PartKey, Shown>,
    /// The times at which tool calls were first seen running.
    running_since: BTreeMap<PartKey, Instant>,
}

/// The printed part of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// This many bytes.
    Upto(usize),
    Begun,
    Over,
}

impl ChatPrinter {
    pub(crate) fn new(questions: Questions) -> Self {
        Self { questions, done: None, current: None, own: HashSet::new(), queued: 0, warned: HashSet::new() }
    }

    /// Starts after all existing turns except the newest few, and those from `turn` on, which are printed.
    pub(crate) fn begin(
        &mut self,
        view: &ChatView<'_>,
        newest: usize,
        turn: Option<&str>,
        screen: &mut ChatScreen,
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

    /// Marks a turn of this client, whose prompt need not be repeated.
    pub(crate) fn mine(&mut self, turn: &str) {
        self.own.insert(turn.to_owned());
    }

    /// Prints what is new.
    pub(crate) fn update(&mut self, view: &ChatView<'_>, screen: &mut ChatScreen) -> io::Result<()> {
        self.warned.retain(|warning| view.warnings.contains(warning));
        for warning in view.warnings {
            if self.warned.insert(warning.clone()) {
                screen.line(format_args!("{} {}", yellow("!"), sanitize(warning)))?;
            }
        }
        let after = self.done.as_ref().and_then(|done| view.turns.iter().position(|turn| turn.id == done));
        let from = match (after, &self.done) {
            (Some(at), _) => at + 1,
            (None, None) => 0,
            // The last printed turn is no longer loaded: the loaded ones are all newer, or were cut off after it.
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
            screen.line(dim(format!("queued: {}", one_line(&sanitize(last)))))?;
        }
        self.queued = view.queued.len();
        screen.passing(view.activity.filter(|_| view.active.is_some()))
    }

    fn turn(&mut self, turn: &TurnView<'_>, screen: &mut ChatScreen) -> io::Result<()> {
        if self.current.as_ref().is_none_or(|current| current.id != turn.id) {
            if !self.own.contains(turn.id) {
                screen.line(format_args!("{} {}", cyan("›"), bold(sanitize(turn.prompt).trim_end())))?;
            }
            self.current =
                Some(TurnPrinter { id: turn.id.to_owned(), parts: BTreeMap::new(), running_since: BTreeMap::new() });
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        let newest = turn.parts.iter().rposition(|part| matches!(part.content, PartContent::PlanPart(_)));
        for (at, part) in turn.parts.iter().enumerate() {
            // Of several new plans only the newest is valid.
            if matches!(part.content, PartContent::PlanPart(_)) && Some(at) != newest {
                continue;
            }
            let shown = current.parts.get(&part.key).copied();
            if shown != Some(Shown::Over)
                && let Some(now) =
                    write_part(part, shown, current.running_since.get(&part.key), self.questions, screen)?
            {
                if shown.is_none() && now == Shown::Begun {
                    current.running_since.insert(part.key, Instant::now());
                }
                current.parts.insert(part.key, now);
            }
        }
        Ok(())
    }

    fn end(&mut self, turn: &TurnView<'_>, screen: &mut ChatScreen) -> io::Result<()> {
        screen.end_line()?;
        match turn.end {
            Some(TurnResult::Complete) | None => {}
            Some(TurnResult::Cancelled) => screen.line(yellow("– cancelled"))?,
            Some(TurnResult::Failed(why)) => screen.line(format_args!("{} {}", red("✗ failed:"), sanitize(why)))?,
        }
        if let Some(usage) = turn.usage.as_ref().and_then(facts::usage) {
            screen.line(dim(usage))?;
        }
        self.done = Some(turn.id.to_owned());
        self.current = None;
        Ok(())
    }
}

/// Prints what is new of a part, and returns its printed part.
fn write_part(
    part: &PartView<'_>,
    shown: Option<Shown>,
    since: Option<&Instant>,
    questions: Questions,
    screen: &mut ChatScreen,
) -> io::Result<Option<Shown>> {
    let upto = match shown {
        Some(Shown::Upto(upto)) => upto,
        Some(Shown::Begun | Shown::Over) | None => 0,
    };
    Ok(match &part.content {
        PartContent::Text(text) => {
            screen.answer(text.get(upto..).unwrap_or_default())?;
            Some(Shown::Upto(text.len()))
        }
        PartContent::Reasoning(text) => {
            screen.thought(text.get(upto..).unwrap_or_default())?;
            Some(Shown::Upto(text.len()))
        }
        PartContent::ToolPart(tool) => write_tool(tool, shown, since, screen)?,
        PartContent::Question { asks, response } => {
            // A question that was already answered is not asked.
            if shown.is_none() && (questions == Questions::Shown || response.is_some()) {
                screen.line(format_args!("{} {}", yellow("?"), sanitize(asks)))?;
            }
            match response {
                Some(response) => {
                    screen.line(dim(format!("  {response}")))?;
                    Some(Shown::Over)
                }
                None => Some(Shown::Begun),
            }
        }
        PartContent::Notice(notice) => {
            screen.line(dim(sanitize(notice)))?;
            Some(Shown::Over)
        }
        PartContent::PlanPart(plan) => {
            let lines = plan.steps().map(|steps| facts::plan(&steps));
            for line in lines.unwrap_or_else(|| vec![dim(sanitize(plan.text)).to_string()]) {
                screen.line(line)?;
            }
            Some(Shown::Over)
        }
    })
}

fn write_tool(
    tool: &ToolPart<'_>,
    shown: Option<Shown>,
    since: Option<&Instant>,
    screen: &mut ChatScreen,
) -> io::Result<Option<Shown>> {
    let subject = ToolCallSubject::of(tool.input).line();
    // Many agents name the command or file in their title, too.
    let row = |words: &str| {
        let words = one_line(&sanitize(words));
        match subject.is_empty() || words.contains(&subject) {
            true => words,
            false => format!("{words} {}", dim(&subject)),
        }
    };
    match &tool.state {
        ToolPartState::NotYet => return Ok(None),
        ToolPartState::Runs => {
            if shown.is_none() {
                screen.line(format_args!("{} {}", cyan("▸"), row(tool.does)))?;
            }
            return Ok(Some(Shown::Begun));
        }
        ToolPartState::Done { success, did, ran, output } => {
            let sign = if *success { format!("{}", green("✓")) } else { format!("{}", red("✗")) };
            let output = summary(&sanitize(output));
            // What the host measured holds for turns of before, too.
            let ran = ran.or_else(|| since.map(Instant::elapsed));
            let ran = ran.map(|ran| format!(" {}", dim(format!("({})", call::duration(ran))))).unwrap_or_default();
            let party = tool.approved_by.as_ref().map(|party| sanitize(&format!("· approved by {party}")));
            let party = party.map(|party| format!(" {}", dim(party))).unwrap_or_default();
            screen.line(format_args!("{sign} {}{ran}{party}{output}", row(did)))?;
            for line in facts::edits(tool.edits.iter().copied(), current_folder().as_deref()) {
                screen.line(line)?;
            }
        }
        ToolPartState::Cancelled { why } => {
            // The call did not run, so its description would be wrong.
            screen.line(format_args!("{} {}: {}", yellow("–"), row(tool.name), one_line(&sanitize(why))))?;
        }
    }
    Ok(Some(Shown::Over))
}

/// The result of a tool, for the end of its line.
fn summary(output: &str) -> String {
    let lines = output.trim_end().lines().count();
    match output.trim().lines().next() {
        None => String::new(),
        Some(first) if lines <= 1 => format!(": {}", dim(one_line(first))),
        Some(first) => format!(": {}", dim(format!("{} … ({lines} lines)", one_line(first)))),
    }
}

#[cfg(test)]
mod tests {
    use grove_wire::ahp::{FileEdit, FileEditDiffStats, FileEditSide};
    use serde_json::{Value, json};

    use super::*;
    use crate::chat_client::{PlanPart, UsageView};
    use crate::show::screen::tests::screen;

    fn view<'a>(turns: Vec<TurnView<'a>>, active: Option<TurnView<'a>>) -> ChatView<'a> {
        let (queued, activity) = (Vec::new(), None);
        ChatView { title: "", turns, older: false, active, queued, activity, warnings: &[] }
    }

    fn turn<'a>(contents: Vec<PartContent<'a>>, end: Option<TurnResult<'a>>) -> TurnView<'a> {
        let parts = contents.into_iter().enumerate().map(|(at, content)| PartView { key: (0, at), content });
        TurnView { id: "t", prompt: "go", parts: parts.collect(), usage: None, end }
    }

    /// The lines about the conversation, without colours.
    fn asides(show: &mut ChatPrinter, views: &[ChatView<'_>]) -> Vec<String> {
        let (mut screen, _, err) = screen(true, true);
        views.iter().for_each(|view| show.update(view, &mut screen).unwrap());
        let written = err.take();
        anstream::adapter::strip_str(&written).to_string().lines().map(str::to_owned).collect()
    }

    fn plan(status: &str) -> Value {
        json!([{"content": "look", "priority": "medium", "status": status}])
    }

    #[test]
    fn of_plans_that_are_seen_at_once_only_the_newest_is_written() {
        let plans = ["pending", "inProgress", "completed"].map(plan);
        let of = |upto: usize| {
            let contents = plans[..upto].iter().map(|plan| PartContent::PlanPart(PlanPart { plan, text: "" }));
            view(Vec::new(), Some(turn(contents.collect(), None)))
        };
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &[of(2), of(2), of(3)]);
        assert_eq!(written, ["› go", "plan (0 of 1 done)", "  ▸ look", "plan (1 of 1 done)", "  ✓ look"]);
    }

    #[test]
    fn a_plan_that_cannot_be_read_is_told_in_words() {
        let odd = json!("odd");
        let contents = vec![PartContent::PlanPart(PlanPart { plan: &odd, text: "first this, then that" })];
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &[view(Vec::new(), Some(turn(contents, None)))]);
        assert_eq!(written, ["› go", "first this, then that"]);
    }

    #[test]
    fn a_call_names_the_files_that_it_changed() {
        let after = Some(FileEditSide { uri: "file:///nowhere/a.rs".to_owned(), ..FileEditSide::default() });
        let diff = Some(FileEditDiffStats { added: Some(3), removed: Some(1) });
        let edit = FileEdit { before: after.clone(), after, diff };
        let state = ToolPartState::Done { success: true, did: "Edited", ran: None, output: "".into() };
        let contents = vec![PartContent::ToolPart(ToolPart {
            name: "Edit",
            does: "Edit",
            input: None,
            edits: vec![&edit],
            approved_by: None,
            state,
        })];
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &[view(Vec::new(), Some(turn(contents, None)))]);
        assert_eq!(written, ["› go", "✓ Edited", "  /nowhere/a.rs +3 -1"]);
    }

    #[test]
    fn a_call_says_what_it_ran_and_how_long_and_one_that_was_denied_did_not_run() {
        let input = Some(r#"{"command":"make test","timeout":5}"#);
        let of = |state| {
            PartContent::ToolPart(ToolPart {
                name: "bash",
                does: "Running bash",
                input,
                edits: vec![],
                approved_by: None,
                state,
            })
        };
        let done = of(ToolPartState::Done { success: true, did: "Ran bash", ran: None, output: "ok".into() });
        let views = [
            view(Vec::new(), Some(turn(vec![of(ToolPartState::Runs)], None))),
            view(Vec::new(), Some(turn(vec![done], None))),
        ];
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &views);
        assert_eq!(written[..2], ["› go", "▸ Running bash make test"]);
        let (before, after) = written[2].split_once(" ms)").unwrap();
        assert!(before.starts_with("✓ Ran bash make test (") && after == ": ok", "{written:?}");
        let ran = Some(std::time::Duration::from_millis(2_500));
        let replayed = of(ToolPartState::Done { success: true, did: "Ran bash", ran, output: "ok".into() });
        let replayed = [view(Vec::new(), Some(turn(vec![replayed], None)))];
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &replayed);
        assert_eq!(written, ["› go", "✓ Ran bash make test (2.5 s): ok"], "what the host measured");
        let denied = of(ToolPartState::Cancelled { why: "denied".into() });
        let written =
            asides(&mut ChatPrinter::new(Questions::Shown), &[view(Vec::new(), Some(turn(vec![denied], None)))]);
        assert_eq!(written, ["› go", "– bash make test: denied"]);
    }

    #[test]
    fn a_warning_is_written_once_and_what_a_turn_took_at_its_end() {
        let warnings = ["two sessions work in one folder".to_owned()];
        let usage = Some(UsageView { input: Some(1_200), output: Some(30), meta: None });
        let running =
            ChatView { warnings: &warnings, ..view(Vec::new(), Some(TurnView { usage, ..turn(Vec::new(), None) })) };
        let ended = TurnView { usage, ..turn(Vec::new(), Some(TurnResult::Complete)) };
        let ended = ChatView { warnings: &warnings, ..view(vec![ended], None) };
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &[running, ended]);
        assert_eq!(written, ["! two sessions work in one folder", "› go", "1.2k → 30 tokens"]);
    }

    #[test]
    fn what_keeps_a_turn_busy_passes_with_it() {
        let running = || view(Vec::new(), Some(turn(Vec::new(), None)));
        let busy = ChatView { activity: Some("no answer for 20 s"), ..running() };
        let over = ChatView {
            activity: Some("no answer for 20 s"),
            ..view(vec![turn(Vec::new(), Some(TurnResult::Complete))], None)
        };
        let written = asides(&mut ChatPrinter::new(Questions::Shown), &[busy, over]);
        assert_eq!(written.len(), 2, "{written:?}");
        assert!(written[1].starts_with("no answer for 20 s"), "{written:?}");
    }
}
