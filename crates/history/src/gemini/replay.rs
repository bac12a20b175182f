//! Replays a session's file to its messages, like the program does.
//!
//! The file is an object with all messages, or a log: messages, which are written again when they grow; `$set`, which
//! changes the session's data or replaces all messages; and `$rewindTo`, which removes a message and all later ones.
//! Removed messages are kept here: each message names its predecessor.

use std::collections::HashMap;
use std::io::{self, BufRead};

use grove_transcript::{Damage, DamageKind, DamageLocation};
use serde_json::Value;

use crate::json::stream::{ItemVerdict, StreamEnd, StreamItem, stream_damaged_object};
use crate::json::{JsonMembers, fragment};
use crate::json_lines::{JsonlReader, value_of};
use crate::limits::{MAX_JSON_ITEM, MAX_STATE};
use crate::tail_index::ByteRange;

/// A session as replayed from its file.
#[derive(Debug, Default)]
pub(super) struct ReplayedSession {
    /// The session's data.
    pub about: JsonMembers,
    pub messages: Vec<ReplayedMessage>,
    pub damage: Damage,
    /// The numbers of the messages that are not removed.
    path: Vec<usize>,
    numbers: HashMap<String, usize>,
    weight: usize,
}

#[derive(Debug)]
pub(super) struct ReplayedMessage {
    pub value: JsonMembers,
    /// The previous message.
    pub behind: Option<usize>,
    /// Its position, if it is stored alone there.
    pub range: Option<ByteRange>,
    /// Its place among the messages that are not removed.
    place: Option<usize>,
    weight: usize,
}

/// Replays a log.
pub(super) fn log(source: impl BufRead) -> io::Result<ReplayedSession> {
    let mut replayed = ReplayedSession::default();
    let mut damage = Damage::default();
    let mut records = JsonlReader::new(source, 0, 1);
    while let Some(record) = records.next(&mut damage)? {
        let (length, place) = (record.length, record.place(String::new()));
        match JsonMembers::of(record.value) {
            Ok(members) => replayed.take(members, length, place),
            Err(_) => {
                replayed.damage.add(DamageKind::Damaged, DamageLocation { what: "no record".to_owned(), ..place })
            }
        }
    }
    let own = std::mem::replace(&mut replayed.damage, damage);
    for mark in own.marks {
        replayed.damage.mark(mark);
    }
    replayed.damage.count += own.count;
    replayed.damage.places.extend(own.places);
    replayed.damage.places.truncate(grove_transcript::limits::MAX_DAMAGE_LOCATIONS);
    Ok(replayed)
}

/// The first key of a message, as the program writes them. After damage the next message is found by it.
const FIRST_KEY: &str = "id";

/// Distinguishes a message from a tool call, which begins with the same key.
fn is_message(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string) && value.get("timestamp").is_some()
}

/// Reads an object. Damage in a message affects only that message.
pub(super) fn object(source: impl BufRead) -> io::Result<ReplayedSession> {
    let mut replayed = ReplayedSession::default();
    let end = stream_damaged_object(source, "messages", FIRST_KEY, MAX_JSON_ITEM, |piece, offset, bytes| {
        let place = |what: String| DamageLocation { offset, line: None, what };
        let length = bytes.map_or(0, <[u8]>::len);
        let range = ByteRange { at: offset, length: length as u64 };
        match (piece, bytes.map(value_of)) {
            (StreamItem::Fragment { is_last }, _) => {
                if !is_last {
                    replayed
                        .damage
                        .add(DamageKind::Damaged, place("not JSON: the messages after it are read".to_owned()));
                }
                let message = bytes.and_then(fragment::value_of).filter(is_message);
                if let Some(Ok(message)) = message.map(JsonMembers::of) {
                    // It is incomplete, so it cannot be read alone.
                    replayed.message(message, length, &place(String::new()), None);
                }
            }
            (_, None) => {
                let what = format!("more than {MAX_JSON_ITEM} bytes in one piece");
                replayed.damage.add(DamageKind::TooLarge, place(what));
            }
            (StreamItem::Resumed, Some(Ok(value))) if !is_message(&value) => return ItemVerdict::Unsound,
            (StreamItem::Item | StreamItem::Resumed, Some(Ok(value))) => {
                if let Ok(message) = JsonMembers::of(value) {
                    replayed.message(message, length, &place(String::new()), Some(range));
                }
            }
            (StreamItem::Item | StreamItem::Resumed, Some(Err(_))) => return ItemVerdict::Unsound,
            (StreamItem::Member(name), Some(Ok(value))) => replayed.about.insert(&name, value),
            (StreamItem::Member(_), Some(Err(error))) => {
                replayed.damage.add(DamageKind::Damaged, place(error.to_string()))
            }
        }
        ItemVerdict::Sound
    })?;
    let place = |offset, what: &str| DamageLocation { offset, line: None, what: what.to_owned() };
    match end {
        StreamEnd::Whole | StreamEnd::Stopped => {}
        StreamEnd::Empty => replayed.damage.mark(DamageKind::Empty),
        StreamEnd::Torn(at) => {
            replayed.damage.add(DamageKind::TornTail, place(at, "the file ends in the middle of a value"))
        }
        StreamEnd::Broken(at) => {
            replayed.damage.add(DamageKind::Damaged, place(at, "not JSON: nothing after this is read"))
        }
    }
    Ok(replayed)
}

impl ReplayedSession {
    /// Messages in memory, one after the other.
    pub(super) fn of(messages: Vec<JsonMembers>) -> Self {
        let messages = messages.into_iter();
        let messages =
            messages.map(|value| ReplayedMessage { value, behind: None, range: None, place: None, weight: 0 });
        Self { messages: messages.collect(), ..Self::default() }
    }

    fn take(&mut self, mut record: JsonMembers, length: usize, place: DamageLocation) {
        if let Some(id) = record.string("$rewindTo") {
            let at = self.numbers.get(&id).and_then(|number| self.messages.get(*number)?.place);
            // An unknown message removes everything, like in the program.
            self.take_back(at.unwrap_or(0));
        } else if let Some(mut set) = record.object("$set") {
            if set.peek("messages").is_some_and(Value::is_array) {
                self.take_back(0);
                self.all(set.list("messages"), length, &place);
            }
            self.know(set);
        } else if record.peek("id").is_some_and(Value::is_string) && record.has("type") {
            let range = ByteRange { at: place.offset, length: length as u64 };
            self.message(record, length, &place, Some(range));
        } else if record.has("sessionId") {
            let messages = record.list("messages");
            self.all(messages, length, &place);
            self.know(record);
        } else {
            self.damage.add(DamageKind::Damaged, DamageLocation { what: "no record".to_owned(), ..place });
        }
    }

    fn take_back(&mut self, from: usize) {
        for number in self.path.drain(from.min(self.path.len())..) {
            if let Some(message) = self.messages.get_mut(number) {
                message.place = None;
            }
        }
    }

    fn know(&mut self, set: JsonMembers) {
        for (key, value) in set.rest() {
            self.about.insert(&key, value);
        }
    }

    fn all(&mut self, messages: Vec<Value>, length: usize, place: &DamageLocation) {
        let each = length / messages.len().max(1);
        for message in messages {
            if let Ok(message) = JsonMembers::of(message) {
                self.message(message, each, place, None);
            }
        }
    }

    /// Adds a message, or replaces an earlier version of it.
    fn message(&mut self, value: JsonMembers, weight: usize, place: &DamageLocation, range: Option<ByteRange>) {
        let Some(id) = value.peek("id").and_then(Value::as_str).map(str::to_owned) else { return };
        let known = self.numbers.get(&id).copied();
        let before = known.and_then(|at| self.messages.get(at)).map_or(0, |message| message.weight);
        if self.weight - before + weight > MAX_STATE {
            let what = format!("a session of more than {MAX_STATE} bytes");
            return self.damage.add(DamageKind::TooLarge, DamageLocation { what, ..place.clone() });
        }
        self.weight = self.weight - before + weight;
        let number = known.unwrap_or(self.messages.len());
        match self.messages.get_mut(number) {
            Some(message) => (message.value, message.weight, message.range) = (value, weight, range),
            None => {
                self.messages.push(ReplayedMessage {
                    value,
                    behind: self.path.last().copied(),
                    range,
                    place: None,
                    weight,
                });
                self.numbers.insert(id, number);
            }
        }
        if let Some(message) = self.messages.get_mut(number).filter(|message| message.place.is_none()) {
            message.place = Some(self.path.len());
            self.path.push(number);
        }
    }
}
