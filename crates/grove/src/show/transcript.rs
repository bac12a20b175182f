//! A transcript for a terminal. All of its text goes through `sanitize`.

use grove_transcript::ContextBlock;
use grove_transcript::export::{OutlineBody, OutlineItem, OutlineKind, SessionOutline, TurnOutline};

use super::style::{bold, cyan, dim, green, red, sanitize, sanitize_line, yellow};

/// The number of lines shown of an input, an output or a reasoning if many turns are shown.
const SHORT: usize = 12;

/// The length of long texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Whole,
}

/// The facts about a session, a line for each.
pub(crate) fn session(outline: &SessionOutline) -> Vec<String> {
    let title = bold(sanitize(&outline.title).replace('\n', " ")).to_string();
    std::iter::once(title).chain(facts(&outline.facts)).collect()
}

/// Facts below each other.
pub(crate) fn facts(facts: &[(&'static str, String)]) -> Vec<String> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let fact = |(name, fact): &(&str, String)| {
        format!("{}  {}", dim(format!("{name:width$}")), sanitize(fact).replace('\n', " "))
    };
    facts.iter().map(fact).collect()
}

/// A turn. `number` is its name.
pub(crate) fn turn(turn: &TurnOutline, number: &str, length: Length) -> Vec<String> {
    let mut lines = vec![String::new(), head(number, &turn.facts)];
    lines.extend(sanitize(&turn.message).lines().map(|line| format!("{} {line}", green("›"))));
    lines.extend(turn.attachments.iter().map(|line| format!("  {}", dim(sanitize(line)))));
    for piece in &turn.pieces {
        lines.extend(self::piece(piece, number, length));
    }
    if let Some(state) = &turn.state {
        lines.push(red(sanitize_line(state)).to_string());
    }
    for (name, items) in &turn.lists {
        lines.push(dim(format!("{name}:")).to_string());
        lines.extend(items.iter().map(|item| format!("  {}", sanitize_line(item))));
    }
    lines
}

/// The context of a turn that the tool added for the model.
pub(crate) fn context(blocks: &[ContextBlock], number: u32, length: Length) -> Vec<String> {
    if blocks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), head(&number.to_string(), &[])];
    for block in blocks {
        let name = if block.name.is_empty() { "(text)" } else { &block.name };
        lines.push(beside(&cyan(sanitize_line(name)).to_string(), &sanitize_line(&block.attributes)));
        lines.extend(long(&block.text, &number.to_string(), length));
    }
    lines
}

fn head(number: &str, facts: &[String]) -> String {
    let facts: Vec<String> = facts.iter().map(|fact| sanitize_line(fact)).collect();
    beside(&bold(format!("[{number}]")).to_string(), &facts.join(" · "))
}

/// A word, followed by its facts if there are any.
fn beside(word: &str, facts: &str) -> String {
    if facts.is_empty() { word.to_owned() } else { format!("{word} {}", dim(facts)) }
}

fn piece(piece: &OutlineItem, number: &str, length: Length) -> Vec<String> {
    if piece.kind == OutlineKind::AgentText {
        let lines = piece.bodies.iter().flat_map(|body| body.text.lines());
        return lines.map(sanitize).collect();
    }
    let mark = match piece.kind {
        OutlineKind::AgentReasoning => dim("~").to_string(),
        OutlineKind::Call | OutlineKind::Edit => cyan("*").to_string(),
        OutlineKind::Question => yellow("?").to_string(),
        OutlineKind::AgentText | OutlineKind::Notice | OutlineKind::Raw => dim("!").to_string(),
    };
    let facts: Vec<String> = piece.facts.iter().map(|fact| sanitize_line(fact)).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    let mut lines = vec![format!("{mark} {}{}", sanitize_line(&piece.head), dim(facts))];
    for OutlineBody { label, text } in &piece.bodies {
        if !label.is_empty() {
            lines.push(format!("  {}", dim(format!("{label}:"))));
        }
        lines.extend(long(text, number, length));
    }
    for (at, inner) in piece.turns.iter().enumerate() {
        let inner = self::turn(inner, &format!("{number}.{}", at + 1), length);
        lines.extend(inner.into_iter().map(|line| if line.is_empty() { line } else { format!("    {line}") }));
    }
    lines
}

/// A longer text, indented, and shortened if requested.
fn long(text: &str, number: &str, length: Length) -> Vec<String> {
    let most = if length == Length::Short { SHORT } else { usize::MAX };
    let text = sanitize(text);
    let mut lines: Vec<String> = text.lines().take(most).map(|line| format!("    {line}")).collect();
    let more = text.lines().count().saturating_sub(lines.len());
    if more > 0 {
        let turn = number.split('.').next().unwrap_or(number);
        lines.push(format!("    {}", dim(format!("… {more} more lines: --turn {turn} shows them"))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[String]) -> String {
        lines.iter().map(|line| format!("{}\n", anstream::adapter::strip_str(line))).collect()
    }

    fn outline(text: &str) -> TurnOutline {
        let body = |label: &'static str| OutlineBody { label, text: text.to_owned() };
        let inner = TurnOutline {
            speaker: "Agent",
            message: text.to_owned(),
            attachments: vec![text.to_owned()],
            facts: vec![text.to_owned()],
            pieces: Vec::new(),
            state: Some(text.to_owned()),
            lists: vec![("References", vec![text.to_owned()])],
        };
        let piece = |kind| OutlineItem {
            kind,
            head: text.to_owned(),
            facts: vec![text.to_owned()],
            bodies: vec![body("input"), body("")],
            turns: vec![inner.clone()],
        };
        let kinds = [
            OutlineKind::AgentText,
            OutlineKind::AgentReasoning,
            OutlineKind::Call,
            OutlineKind::Edit,
            OutlineKind::Question,
        ];
        let pieces = kinds.into_iter().chain([OutlineKind::Notice, OutlineKind::Raw]).map(piece).collect();
        TurnOutline { pieces, ..inner.clone() }
    }

    #[test]
    fn nothing_that_a_session_says_steers_the_terminal() {
        let hostile = "a\x1b]0;title\x07\x1b[2Jb\r\u{9b}31mc";
        let mut shown = turn(&outline(hostile), "1", Length::Whole);
        shown.extend(session(&SessionOutline { title: hostile.into(), facts: vec![("Agent", hostile.into())] }));
        let block = ContextBlock { name: hostile.into(), attributes: hostile.into(), text: hostile.into() };
        shown.extend(context(&[block], 1, Length::Whole));
        for line in shown {
            let text = anstream::adapter::strip_str(&line).to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
            // Only colours are left: the sequences in the session's text were removed.
            assert!(!line.contains("\x1b[2J") && !line.contains("\x1b]"), "{line:?}");
        }
    }

    #[test]
    fn what_is_long_is_cut_where_many_turns_are_shown_and_it_is_said_how_to_see_it() {
        let text = (0..20).map(|line| format!("line {line}\n")).collect::<String>();
        let piece = OutlineItem {
            kind: OutlineKind::Call,
            head: "bash: run".into(),
            facts: vec!["shell".into(), "failed".into()],
            bodies: vec![OutlineBody { label: "output", text }],
            turns: Vec::new(),
        };
        let short = plain(&self::piece(&piece, "3.1", Length::Short));
        assert!(short.starts_with("* bash: run (shell, failed)\n  output:\n    line 0\n"), "{short}");
        assert!(short.ends_with("    line 11\n    … 8 more lines: --turn 3 shows them\n"), "{short}");
        let whole = plain(&self::piece(&piece, "3.1", Length::Whole));
        assert!(whole.ends_with("    line 19\n"), "{whole}");
    }
}
