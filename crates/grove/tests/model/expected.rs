//! The model: the expected state, as simple as possible.

use std::collections::BTreeMap;

/// The name of a session without a title.
pub(crate) const UNTITLED: &str = "New session";

/// The origin of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TitleSource {
    Nobody,
    Prompt,
    Agent,
    Person,
}

/// A position in a conversation: after a turn, and after a summary that followed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The index of the turn in the session; `None` before the first.
    pub(crate) turn: Option<usize>,
    pub(crate) is_summary: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ExpectedTurn {
    pub(crate) id: String,
    pub(crate) prompt: String,
    pub(crate) answer: String,
    /// The position of the prompt.
    pub(crate) after: Position,
}

/// An entry of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExpectedPart {
    Prompt,
    Answer,
}

#[derive(Clone, Debug)]
pub(crate) struct ExpectedSession {
    pub(crate) uri: String,
    pub(crate) title: String,
    pub(crate) source: TitleSource,
    pub(crate) turns: Vec<ExpectedTurn>,
    pub(crate) position: Position,
    pub(crate) labels: BTreeMap<(usize, ExpectedPart), String>,
    /// Other chats, by their URI: the answers in each.
    pub(crate) chats: BTreeMap<String, Vec<String>>,
    /// Its log was damaged before the import: parts of the tree may be missing.
    pub(crate) is_damaged: bool,
}

impl ExpectedSession {
    pub(crate) fn new(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            title: UNTITLED.to_owned(),
            source: TitleSource::Nobody,
            turns: Vec::new(),
            position: Position::default(),
            labels: BTreeMap::new(),
            chats: BTreeMap::new(),
            is_damaged: false,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.uri.rsplit('/').next().unwrap()
    }

    /// The turns on the current branch, the oldest first.
    pub(crate) fn shown(&self) -> Vec<usize> {
        let mut shown = Vec::new();
        let mut next = self.position.turn;
        while let Some(turn) = next {
            shown.push(turn);
            next = self.turns[turn].after.turn;
        }
        shown.reverse();
        shown
    }

    /// Adds a finished turn at the position, and moves the position to it.
    pub(crate) fn say(&mut self, id: &str, prompt: &str, answer: &str) {
        self.name_after_prompt(prompt);
        self.turns.push(ExpectedTurn {
            id: id.to_owned(),
            prompt: prompt.to_owned(),
            answer: answer.to_owned(),
            after: self.position,
        });
        self.position = Position { turn: Some(self.turns.len() - 1), is_summary: false };
    }

    /// Names a session without a title after its first visible prompt.
    fn name_after_prompt(&mut self, prompt: &str) {
        if self.source == TitleSource::Nobody {
            let first = self.shown().first().map_or(prompt.to_owned(), |turn| self.turns[*turn].prompt.clone());
            if let Some(title) = first.split(is_line_break).find_map(normalized).filter(|title| title != UNTITLED) {
                (self.title, self.source) = (title, TitleSource::Prompt);
            }
        }
    }

    pub(crate) fn renamed(&mut self, title: &str) {
        (self.title, self.source) = match normalized(title).filter(|title| title != UNTITLED) {
            Some(title) => (title, TitleSource::Person),
            None => (UNTITLED.to_owned(), TitleSource::Nobody),
        };
    }

    pub(crate) fn named_by_agent(&mut self, title: &str) {
        let title = normalized(title).filter(|title| title != UNTITLED && self.source != TitleSource::Person);
        if let Some(title) = title.filter(|title| *title != self.title) {
            (self.title, self.source) = (title, TitleSource::Agent);
        }
    }

    /// A session with everything of this one.
    pub(crate) fn forked(&self, title: Option<&str>) -> Self {
        let mut fork = self.clone();
        match title.and_then(normalized).filter(|title| title != UNTITLED) {
            Some(title) => (fork.title, fork.source) = (title, TitleSource::Person),
            None if self.source == TitleSource::Nobody => {}
            None => {
                let room: String = self.title.chars().take(200 - " (fork)".len()).collect();
                fork.title = format!("{} (fork)", room.trim_end());
            }
        }
        fork
    }

    /// A session with the conversation before a turn.
    pub(crate) fn branched(&self, at: usize) -> Self {
        let mut way = ExpectedSession { position: self.turns[at].after, ..self.clone() }.shown();
        let mut branch = Self { turns: Vec::new(), labels: BTreeMap::new(), chats: BTreeMap::new(), ..self.clone() };
        branch.position = Position { is_summary: self.turns[at].after.is_summary, turn: way.len().checked_sub(1) };
        for (new, old) in way.drain(..).enumerate() {
            let old_after = self.turns[old].after;
            let after = Position { turn: new.checked_sub(1), is_summary: old_after.is_summary };
            branch.turns.push(ExpectedTurn { after, ..self.turns[old].clone() });
            for part in [ExpectedPart::Prompt, ExpectedPart::Answer] {
                if let Some(label) = self.labels.get(&(old, part)) {
                    branch.labels.insert((new, part), label.clone());
                }
            }
        }
        branch
    }
}

fn is_line_break(one: char) -> bool {
    "\n\r\u{b}\u{c}\u{85}\u{2028}\u{2029}".contains(one)
}

/// A title as it is shown: one line, trimmed, without control characters, at most 200 characters.
pub(crate) fn normalized(title: &str) -> Option<String> {
    let pieces = title.split(|one| one == '\t' || is_line_break(one));
    let is_odd = |one: &char| {
        one.is_control()
            || "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{feff}".contains(*one)
    };
    let pieces = pieces.map(|piece| piece.chars().filter(|one| !is_odd(one)).collect::<String>().trim().to_owned());
    let line = pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(200).collect();
    let line = line.trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}
