//! The newest output of a terminal, and the actions between it, for subscribers that read at their own pace.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use grove_wire::ahp::{ActionOrigin, TerminalAction, TerminalCleared, TerminalData};
use serde_json::value::{RawValue, to_raw_value};

use crate::sequencer::ConnectionId;

/// The output of a terminal that is kept, and sent to new subscribers. The oldest is dropped first.
pub const SCROLLBACK_BYTES: usize = 1 << 20;
/// The output that a subscriber may be behind before the terminal's command waits.
pub const WINDOW_BYTES: u64 = 256 << 10;
/// The output in one message.
pub const MESSAGE_BYTES: usize = 128 << 10;
/// The bytes of one piece of output.
const PIECE_BYTES: usize = 16 << 10;

/// A position in a terminal's output and actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    item: u64,
    offset: usize,
}

#[derive(Debug)]
enum ScreenItem {
    Text(String),
    Action(ScreenAction),
}

/// An action on a terminal, as it is sent.
#[derive(Clone, Debug)]
pub(super) struct ScreenAction {
    pub(super) action: Arc<RawValue>,
    /// The client's action that this is the echo of.
    pub(super) origin: Option<ActionOrigin>,
    /// Others are not told, since it changes nothing.
    pub(super) only: Option<ConnectionId>,
    /// Earlier output is no part of the terminal any longer.
    pub(super) clears: bool,
}

impl ScreenAction {
    /// An action of the host; `None` if it cannot be written, which plain data always can.
    pub(super) fn of_host(action: &TerminalAction) -> Option<Self> {
        let clears = matches!(action, TerminalAction::Cleared(TerminalCleared {}));
        Some(Self { action: to_raw_value(action).ok()?.into(), origin: None, only: None, clears })
    }

    pub(super) fn of_text(data: String) -> Option<Self> {
        Self::of_host(&TerminalAction::Data(TerminalData { data }))
    }
}

/// The next thing for a subscriber.
#[derive(Debug)]
pub(super) enum ScreenRead {
    Nothing,
    Action(ScreenAction),
    /// The subscriber is so far behind that the output it needs is dropped.
    Behind,
}

/// The progress of a subscriber.
#[derive(Debug)]
struct Progress {
    connection: ConnectionId,
    /// The bytes of output that it has been sent.
    bytes: u64,
    /// It did not read for so long that the command does not wait for it.
    is_stalled: bool,
}

/// The output and the actions of a terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    items: VecDeque<ScreenItem>,
    /// The number of the first item.
    first: u64,
    /// The item from which on output is part of the terminal.
    cleared: u64,
    /// The bytes of all items.
    bytes: usize,
    /// The bytes of all output so far.
    total: u64,
    subscribers: HashMap<u64, Progress>,
    last_subscriber: u64,
}

impl Screen {
    pub(super) fn push_text(&mut self, text: &str) {
        self.total += text.len() as u64;
        self.bytes += text.len();
        match self.items.back_mut() {
            Some(ScreenItem::Text(last)) if last.len() + text.len() <= PIECE_BYTES => last.push_str(text),
            _ => self.items.push_back(ScreenItem::Text(text.to_owned())),
        }
        self.trim();
    }

    pub(super) fn push_action(&mut self, action: ScreenAction) {
        self.bytes += weight(&action);
        if action.clears {
            self.cleared = self.end();
        }
        self.items.push_back(ScreenItem::Action(action));
        self.trim();
    }

    /// Drops the oldest items. The newest one stays.
    fn trim(&mut self) {
        while self.bytes > SCROLLBACK_BYTES && self.items.len() > 1 {
            self.bytes -= match self.items.pop_front() {
                Some(ScreenItem::Text(text)) => text.len(),
                Some(ScreenItem::Action(action)) => weight(&action),
                None => 0,
            };
            self.first += 1;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// The kept output since it was last cleared.
    pub(super) fn text(&self) -> String {
        let skipped = usize::try_from(self.cleared.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let texts = self.items.iter().skip(skipped).filter_map(|item| match item {
            ScreenItem::Text(text) => Some(text.as_str()),
            ScreenItem::Action(_) => None,
        });
        texts.collect()
    }

    /// Adds a subscriber that has everything so far.
    pub(super) fn subscribe(&mut self, connection: ConnectionId) -> (u64, Cursor) {
        self.last_subscriber += 1;
        let progress = Progress { connection, bytes: self.total, is_stalled: false };
        self.subscribers.insert(self.last_subscriber, progress);
        let end = match self.items.back() {
            Some(ScreenItem::Text(text)) => Cursor { item: self.end() - 1, offset: text.len() },
            Some(ScreenItem::Action(_)) | None => Cursor { item: self.end(), offset: 0 },
        };
        (self.last_subscriber, end)
    }

    pub(super) fn unsubscribe(&mut self, subscriber: u64) {
        self.subscribers.remove(&subscriber);
    }

    /// Says whether a connection subscribes.
    pub(super) fn is_read_by(&self, connection: ConnectionId) -> bool {
        self.subscribers.values().any(|progress| progress.connection == connection)
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// The next thing behind a cursor, which moves on.
    pub(super) fn read(&mut self, subscriber: u64, connection: ConnectionId, cursor: &mut Cursor) -> ScreenRead {
        let mut data = String::new();
        loop {
            let Some(at) = cursor.item.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else {
                return ScreenRead::Behind;
            };
            match self.items.get(at) {
                Some(ScreenItem::Text(text)) => {
                    let rest = text.get(cursor.offset..).unwrap_or_default();
                    // A piece is small, so that the first one always fits.
                    if !data.is_empty() && data.len() + rest.len() > MESSAGE_BYTES {
                        break;
                    }
                    data.push_str(rest);
                    // The last piece may still grow.
                    if at + 1 == self.items.len() {
                        cursor.offset = text.len();
                        break;
                    }
                    *cursor = Cursor { item: cursor.item + 1, offset: 0 };
                }
                Some(ScreenItem::Action(_)) if !data.is_empty() => break,
                Some(ScreenItem::Action(action)) => {
                    *cursor = Cursor { item: cursor.item + 1, offset: 0 };
                    if action.only.is_none_or(|only| only == connection) {
                        return ScreenRead::Action(action.clone());
                    }
                }
                None => break,
            }
        }
        if data.is_empty() {
            return ScreenRead::Nothing;
        }
        if let Some(progress) = self.subscribers.get_mut(&subscriber) {
            progress.bytes += data.len() as u64;
            progress.is_stalled &= self.total.saturating_sub(progress.bytes) > WINDOW_BYTES;
        }
        ScreenAction::of_text(data).map_or(ScreenRead::Nothing, ScreenRead::Action)
    }

    /// Says whether the command should wait for a subscriber.
    pub(super) fn must_wait(&self) -> bool {
        self.waited_for().next().is_some()
    }

    /// Waits for the subscribers no longer that are too far behind now.
    pub(super) fn give_up(&mut self) {
        let behind: Vec<u64> = self.waited_for().collect();
        for subscriber in behind {
            if let Some(progress) = self.subscribers.get_mut(&subscriber) {
                progress.is_stalled = true;
            }
        }
    }

    fn waited_for(&self) -> impl Iterator<Item = u64> {
        let is_behind =
            |progress: &Progress| !progress.is_stalled && self.total.saturating_sub(progress.bytes) > WINDOW_BYTES;
        self.subscribers.iter().filter(move |(_, progress)| is_behind(progress)).map(|(subscriber, _)| *subscriber)
    }
}

/// The bytes that an action counts for.
fn weight(action: &ScreenAction) -> usize {
    const ENTRY: usize = 128;
    ENTRY + action.action.get().len()
}

/// Output as text: characters that come in two parts are put together, and what is no text becomes `U+FFFD`.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    /// The beginning of a character, three bytes at most.
    begun: Vec<u8>,
}

impl TextDecoder {
    pub(super) fn read(&mut self, bytes: &[u8]) -> String {
        let all = [std::mem::take(&mut self.begun), bytes.to_vec()].concat();
        let mut text = String::with_capacity(all.len());
        let mut rest = &all[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, invalid) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.begun = invalid.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &invalid[length..];
                }
            }
        }
    }

    /// The rest, when no more comes.
    pub(super) fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.begun).is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    const HERE: ConnectionId = ConnectionId(1);

    fn next(screen: &mut Screen, subscriber: u64, cursor: &mut Cursor) -> Option<String> {
        match screen.read(subscriber, HERE, cursor) {
            ScreenRead::Action(action) => Some(action.action.get().to_owned()),
            ScreenRead::Nothing => None,
            ScreenRead::Behind => Some("behind".into()),
        }
    }

    #[test]
    fn a_subscriber_reads_everything_after_its_snapshot_in_order_and_once() {
        let mut screen = Screen::default();
        screen.push_text("before");
        assert_eq!(screen.text(), "before");
        let (me, mut cursor) = screen.subscribe(HERE);
        screen.push_text("a");
        screen.push_text("b");
        let echo = ScreenAction { only: Some(ConnectionId(2)), ..ScreenAction::of_text("not mine".into()).unwrap() };
        screen.push_action(echo);
        screen.push_text("c");
        screen.push_action(ScreenAction::of_host(&TerminalAction::Cleared(TerminalCleared {})).unwrap());
        screen.push_text("d");
        let data = |text: &str| Some(format!(r#"{{"type":"terminal/data","data":"{text}"}}"#));
        assert_eq!(next(&mut screen, me, &mut cursor), data("ab"));
        assert_eq!(next(&mut screen, me, &mut cursor), data("c"));
        assert_eq!(next(&mut screen, me, &mut cursor), Some(r#"{"type":"terminal/cleared"}"#.into()));
        assert_eq!(next(&mut screen, me, &mut cursor), data("d"));
        assert_eq!(next(&mut screen, me, &mut cursor), None);
        screen.push_text("e");
        assert_eq!(next(&mut screen, me, &mut cursor), data("e"));
        assert_eq!(screen.text(), "de", "what was cleared is not in a snapshot");
    }

    #[test]
    fn the_scrollback_is_bounded_and_a_subscriber_that_needs_more_is_told() {
        let mut screen = Screen::default();
        let (me, mut cursor) = screen.subscribe(HERE);
        let line = "x".repeat(1_000);
        for _ in 0..4_000 {
            screen.push_text(&line);
        }
        assert!(screen.text().len() <= SCROLLBACK_BYTES && screen.bytes <= SCROLLBACK_BYTES);
        assert!(screen.must_wait());
        screen.give_up();
        assert!(!screen.must_wait());
        assert_eq!(next(&mut screen, me, &mut cursor).as_deref(), Some("behind"));
        // Actions are bounded as well.
        for _ in 0..100_000 {
            screen.push_action(ScreenAction::of_text("x".into()).unwrap());
        }
        assert!(screen.bytes <= SCROLLBACK_BYTES);
    }

    #[test]
    fn the_command_waits_for_a_subscriber_until_that_has_read() {
        let mut screen = Screen::default();
        let (me, mut cursor) = screen.subscribe(HERE);
        let most = usize::try_from(WINDOW_BYTES).unwrap() + 1;
        (0..most).for_each(|_| screen.push_text("x"));
        assert!(screen.must_wait());
        assert!(next(&mut screen, me, &mut cursor).unwrap().len() <= MESSAGE_BYTES + PIECE_BYTES);
        assert!(!screen.must_wait());
        (0..most).for_each(|_| screen.push_text("x"));
        screen.unsubscribe(me);
        assert!(!screen.must_wait());
    }

    #[test]
    fn output_in_any_parts_is_the_same_text() {
        const PIECES: [&[u8]; 6] = [b"a", "\u{e4}".as_bytes(), "\u{1f600}".as_bytes(), b"\xff", b"\xe2\x82", b"\x80"];
        for seed in 0..2_000_u32 {
            let picks = (0..12).map(|at| (seed.wrapping_mul(2_654_435_761) >> at) as usize % PIECES.len());
            let bytes: Vec<u8> = picks.flat_map(|pick| PIECES[pick].iter().copied()).collect();
            let mut decoder = TextDecoder::default();
            let parts = bytes.chunks(1 + seed as usize % 5).map(|part| decoder.read(part)).collect::<String>();
            assert_eq!(parts + decoder.end(), String::from_utf8_lossy(&bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn characters_that_come_in_parts_are_put_together() {
        let mut decoder = TextDecoder::default();
        let text = "aä€😀".as_bytes();
        let read: String = text.iter().map(|byte| decoder.read(&[*byte])).collect();
        assert_eq!(read, "aä€😀");
        assert_eq!(decoder.read(b"\xff\xf0\x9f"), "\u{fffd}");
        assert_eq!(decoder.end(), "\u{fffd}");
        assert_eq!(decoder.end(), "");
    }
}
