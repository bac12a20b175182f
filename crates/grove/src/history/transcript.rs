//! The content of another tool's session for clients: its chats, or a window of one chat's turns.
//!
//! Turns of abandoned branches are left out, and so are the chats of their subagents. No more turns are held than the window
//! has, and of other chats no more than a row.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use grove_core::{Chat, ChatId, ChatRow, Outcome, Session, SessionId, Timestamp, Turn, normalized_title};
use grove_history::catalog::CatalogEntry;
use grove_history::{HistoryError, TailIndex, TailLimit, newest, reader_of};
use grove_host::history::{
    HistoryOpenError, HistorySelection, HistoryTranscript, HistoryUnavailable, HistoryWindow, subagent_chat,
};
use grove_transcript::{ChildChat, TranscriptTurn, core_turn, json_size, path_of};
use grove_wire::ahp::project::{SpawningCall, SpawningCalls};

use super::summary;

/// The maximum number of subagent chats. The results of further ones are in their tool calls.
pub(crate) const MAX_SUBAGENTS: usize = 1_000;

/// The number of bytes that may be parsed at once. A larger window is read turn by turn from the file's beginning.
const MAX_AT_ONCE: u64 = 32 << 20;

/// Reads the selected part of a session. `tail_index` has the positions of its newest turns.
pub(super) fn open(
    entry: &CatalogEntry,
    look: &HistorySelection,
    tail_index: impl FnOnce() -> Option<TailIndex>,
) -> Result<HistoryTranscript, HistoryOpenError> {
    let main = ChatId::from(Session::MAIN_CHAT);
    match look {
        HistorySelection::Turns(chat, window) if *chat == main && window.before.is_none() => {
            match noted(window, tail_index()) {
                Some(tail_index) => newest_turns(entry, window, &tail_index),
                None => read_all(entry, look),
            }
        }
        HistorySelection::Turns(..) | HistorySelection::Chats => read_all(entry, look),
    }
}

/// The positions of a window's turns, if they fit into memory at once.
fn noted(window: &HistoryWindow, tail_index: Option<TailIndex>) -> Option<TailIndex> {
    let bytes = tail_index.as_ref()?.bytes(TailLimit::Turns(window.turns))?;
    tail_index.filter(|_| bytes <= MAX_AT_ONCE)
}

/// The newest turns of the main chat, without reading the rest of the file.
fn newest_turns(
    entry: &CatalogEntry,
    window: &HistoryWindow,
    tail_index: &TailIndex,
) -> Result<HistoryTranscript, HistoryOpenError> {
    let newest = newest(&entry.location(), Some(tail_index), TailLimit::Turns(window.turns)).map_err(unreadable)?;
    let newest = newest.on_active_branch();
    let mut session = summary::session(entry);
    let mut turns = TurnWindow::new(window);
    let mut at = entry.session.created_at.unwrap_or(Timestamp(0));
    for foreign in &newest.turns {
        let turn = core_turn(foreign, at).turn;
        at = turn.ended_at;
        turns.push(turn);
    }
    if let Some(chat) = session.chats.iter_mut().find(|chat| chat.id.as_str() == Session::MAIN_CHAT) {
        (chat.turns, chat.has_older_turns) = turns.finish()?;
        chat.has_older_turns |= newest.has_older;
    }
    Ok(HistoryTranscript { session, started: SpawningCalls::new() })
}

/// Everything else takes the whole file. Which turns were abandoned is known at its end: a session with branches is read twice.
fn read_all(entry: &CatalogEntry, look: &HistorySelection) -> Result<HistoryTranscript, HistoryOpenError> {
    let location = entry.location();
    let mut follows = Vec::new();
    let mut all = Collected::new(entry, look);
    let reader = reader_of(entry.source());
    reader
        .read(&location, None, &mut |turn| {
            follows.push(turn.follows);
            all.add(&turn);
        })
        .map_err(unreadable)?;
    let path = path_of(&follows);
    if path.len() == follows.len() {
        return all.finish();
    }
    let mut wanted = path.iter().peekable();
    let mut number = 0;
    let mut active = Collected::new(entry, look);
    reader
        .read(&location, None, &mut |turn| {
            if wanted.next_if_eq(&&number).is_some() {
                active.add(&turn);
            }
            number += 1;
        })
        .map_err(unreadable)?;
    active.finish()
}

/// The wanted part of a session, turn by turn.
struct Collected<'a> {
    session: Session,
    /// When the turn before it ended.
    at: Timestamp,
    subagents: Subagents,
    /// Without one nothing but the chats is wanted.
    window: Option<(&'a ChatId, TurnWindow<'a>)>,
    /// The subagent's chat whose turns are wanted, once it was found.
    subagent: Option<Chat>,
}

impl<'a> Collected<'a> {
    fn new(entry: &CatalogEntry, look: &'a HistorySelection) -> Self {
        let session = summary::session(entry);
        Self {
            at: entry.session.created_at.unwrap_or(Timestamp(0)),
            subagents: Subagents::of(&session),
            window: match look {
                HistorySelection::Chats => None,
                HistorySelection::Turns(chat, window) => Some((chat, TurnWindow::new(window))),
            },
            subagent: None,
            session,
        }
    }

    fn add(&mut self, foreign: &TranscriptTurn) {
        let converted = core_turn(foreign, self.at);
        self.at = converted.turn.ended_at;
        if let Some((chat, window)) = &mut self.window
            && chat.as_str() == Session::MAIN_CHAT
        {
            return window.push(converted.turn);
        }
        self.subagents.begin_turn();
        for child in converted.chats {
            let Some((chat, turns)) = self.subagents.add(child) else { continue };
            if let Some((looked_at, window)) = &mut self.window
                && **looked_at == chat.id
            {
                turns.into_iter().for_each(|turn| window.push(turn));
                self.subagent = Some(chat);
            }
        }
    }

    fn finish(self) -> Result<HistoryTranscript, HistoryOpenError> {
        let Self { mut session, subagents: Subagents { rows, started, .. }, window, subagent, .. } = self;
        session.catalogue.extend(rows);
        session.chats.extend(subagent);
        if let Some((chat, window)) = window
            && let Some(chat) = session.chats.iter_mut().find(|mine| mine.id == *chat)
        {
            (chat.turns, chat.has_older_turns) = window.finish()?;
        }
        Ok(HistoryTranscript { session, started })
    }
}

fn unreadable(error: HistoryError) -> HistoryOpenError {
    HistoryOpenError::HistoryUnavailable(HistoryUnavailable(error.to_string()))
}

/// Collects the newest turns, or those before a given one, while the file is read.
struct TurnWindow<'a> {
    request: &'a HistoryWindow,
    /// The turns, each with its size.
    turns: VecDeque<(Arc<Turn>, usize)>,
    bytes: usize,
    has_older: bool,
    /// The given turn has been read.
    is_past: bool,
}

impl<'a> TurnWindow<'a> {
    fn new(request: &'a HistoryWindow) -> Self {
        Self { request, turns: VecDeque::new(), bytes: 0, has_older: false, is_past: false }
    }

    fn push(&mut self, turn: Turn) {
        self.is_past |= self.request.before.as_ref() == Some(&turn.id);
        if self.is_past {
            return;
        }
        let weight = json_size(&turn);
        self.bytes += weight;
        self.turns.push_back((Arc::new(turn), weight));
        while self.turns.len() > self.request.turns || (self.bytes > self.request.bytes && self.turns.len() > 1) {
            let Some((_, weight)) = self.turns.pop_front() else { return };
            self.bytes -= weight;
            self.has_older = true;
        }
    }

    fn finish(self) -> Result<(Vec<Arc<Turn>>, bool), HistoryOpenError> {
        match &self.request.before {
            Some(before) if !self.is_past => Err(HistoryOpenError::NoTurn(before.clone())),
            Some(_) | None => Ok((self.turns.into_iter().map(|(turn, _)| turn).collect(), self.has_older)),
        }
    }
}

/// Collects the chats of subagents while the file is read. Each gets a unique id.
struct Subagents {
    session: SessionId,
    modified_at: Timestamp,
    rows: Vec<ChatRow>,
    started: SpawningCalls,
    /// The ids that the subagents of one turn use for each other.
    of_turn: HashMap<ChatId, ChatId>,
}

impl Subagents {
    fn of(session: &Session) -> Self {
        Self {
            session: session.id.clone(),
            modified_at: session.modified_at,
            rows: Vec::new(),
            started: SpawningCalls::new(),
            of_turn: HashMap::new(),
        }
    }

    fn begin_turn(&mut self) {
        self.of_turn.clear();
    }

    /// The chat without its turns, and the turns. `None` if it has no valid name, or exceeds the limit.
    fn add(&mut self, child: ChildChat) -> Option<(Chat, Vec<Turn>)> {
        if self.rows.len() >= MAX_SUBAGENTS {
            return None;
        }
        let ChildChat { id: called, parent, call, title, turns } = child;
        let id = self.name(called.as_str())?;
        // A chat whose parent is missing belongs to the main one, which has its tool call.
        let parent = parent.and_then(|parent| self.of_turn.get(&parent).cloned());
        let by = SpawningCall { chat: parent.unwrap_or_else(|| Session::MAIN_CHAT.into()), call };
        let ended_at = turns.last().map_or(self.modified_at, |turn| turn.ended_at);
        let title = normalized_title(&title).unwrap_or_else(|| "subagent".to_owned());
        let chat = Chat {
            title,
            has_failed: turns.last().is_some_and(|turn| turn.outcome == Outcome::Error),
            touched_at: self.modified_at,
            ..Chat::new(id.clone(), ended_at)
        };
        self.rows.push(chat.row());
        self.of_turn.insert(called, id.clone());
        self.started.insert(id, by);
        Some((chat, turns))
    }

    /// A unique name: a subagent that is called again has another chat under the same name.
    fn name(&self, called: &str) -> Option<ChatId> {
        let is_free = |name: &ChatId| !self.started.contains_key(name);
        let numbered = |number| subagent_chat(&self.session, &format!("{called}-{number}"));
        let first = subagent_chat(&self.session, called)?;
        // The limit leaves a free number.
        if is_free(&first) { Some(first) } else { (2..=MAX_SUBAGENTS + 1).filter_map(numbered).find(is_free) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(id: &str, text: &str) -> Turn {
        let mut foreign = TranscriptTurn { id: id.into(), ..TranscriptTurn::default() };
        foreign.message.text = text.into();
        core_turn(&foreign, Timestamp(1)).turn
    }

    fn window(request: &HistoryWindow) -> Result<(Vec<String>, bool), HistoryOpenError> {
        let mut window = TurnWindow::new(request);
        for id in ["t1", "t2", "t3", "t4"] {
            window.push(turn(id, &"x".repeat(10_000)));
        }
        let (turns, has_older) = window.finish()?;
        Ok((turns.iter().map(|turn| turn.id.to_string()).collect(), has_older))
    }

    #[test]
    fn a_window_has_the_newest_turns_that_fit_and_the_newest_in_any_case() {
        let all = HistoryWindow { before: None, turns: 10, bytes: usize::MAX };
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(window(&all).unwrap(), (ids(&["t1", "t2", "t3", "t4"]), false));
        assert_eq!(window(&HistoryWindow { turns: 2, ..all.clone() }).unwrap(), (ids(&["t3", "t4"]), true));
        assert_eq!(window(&HistoryWindow { bytes: 25_000, ..all.clone() }).unwrap(), (ids(&["t3", "t4"]), true));
        assert_eq!(window(&HistoryWindow { bytes: 1, ..all.clone() }).unwrap(), (ids(&["t4"]), true));
        assert_eq!(window(&HistoryWindow { turns: 0, ..all.clone() }).unwrap(), (ids(&[]), true));
        let before = |id: &str| HistoryWindow { before: Some(id.into()), turns: 1, ..all.clone() };
        assert_eq!(window(&before("t3")).unwrap(), (ids(&["t2"]), true));
        assert_eq!(window(&before("t1")).unwrap(), (ids(&[]), false));
        assert!(matches!(window(&before("gone")), Err(HistoryOpenError::NoTurn(turn)) if turn.as_str() == "gone"));
    }

    #[test]
    fn every_subagent_has_an_id_of_its_own_and_there_are_only_so_many() {
        let mut subagents = Subagents {
            session: "claude.s".into(),
            modified_at: Timestamp(1),
            rows: Vec::new(),
            started: SpawningCalls::new(),
            of_turn: HashMap::new(),
        };
        let child = |parent: Option<&str>| ChildChat {
            id: "a".into(),
            parent: parent.map(Into::into),
            call: "c".into(),
            title: String::new(),
            turns: vec![turn("t", "go")],
        };
        let mut add = |parent| subagents.add(child(parent)).map(|(chat, _)| chat.id.to_string());
        assert_eq!(add(None).as_deref(), Some("claude.s.sub.a"));
        assert_eq!(add(Some("a")).as_deref(), Some("claude.s.sub.a-2"));
        let later = (0..MAX_SUBAGENTS).filter_map(|_| add(None)).count();
        assert_eq!(later, MAX_SUBAGENTS - 2);
        let by = |chat: &str| subagents.started[&ChatId::from(chat)].chat.to_string();
        assert_eq!((by("claude.s.sub.a").as_str(), by("claude.s.sub.a-2").as_str()), ("main", "claude.s.sub.a"));
    }
}
