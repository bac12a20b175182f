//! Mutation logs: a session as its initial state and its changes, one per line.
//!
//! For a log that VS Code can read, this gives the same state. Where VS Code gives up (a line that is not JSON, a log
//! without its beginning), this continues with the rest and reports the damage.

use std::io::{self, BufRead};

use grove_transcript::{Damage, DamageKind, DamageLocation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::request_ranges::{RequestRangeRecorder, items_of};
use crate::json::lenient;
use crate::limits::{MAX_GAP, MAX_JSON_ITEM, MAX_STATE};
use crate::line_reader::LineReader;
use crate::tail_index::{ByteRange, RequestOrigin};

/// A step of a path: a member of an object, or an item of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum PathSegment {
    Item(usize),
    Member(String),
}

/// A line. The relevant fields depend on the kind.
#[derive(Debug, Deserialize)]
struct Mutation {
    kind: u64,
    /// The path of a push or a set.
    #[serde(default)]
    k: Vec<PathSegment>,
    /// The value. Absent means undefined; `null` is a value.
    #[serde(default, deserialize_with = "present")]
    v: Option<Value>,
    /// The number of items that a list keeps before more are pushed.
    #[serde(default)]
    i: Option<usize>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// The maximum length of a path. Lines are bounded in depth as all JSON is; with this the state is as well.
const MAX_PATH: usize = 64;

const INITIAL: u64 = 0;
const SET: u64 = 1;
const PUSH: u64 = 2;
const DELETE: u64 = 3;

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOutcome {
    /// `None` if the log has no readable entry.
    pub state: Option<Value>,
    pub damage: Damage,
}

/// Replays a log.
pub fn replay(source: impl BufRead) -> io::Result<ReplayOutcome> {
    replay_with_ranges(source).map(|(replayed, _)| replayed)
}

/// Replays a log, and records the positions of its newest requests. There is no record for a log with damage.
pub(super) fn replay_with_ranges(source: impl BufRead) -> io::Result<(ReplayOutcome, Option<RequestRangeRecorder>)> {
    let mut request_ranges = RequestRangeRecorder::default();
    let mut is_whole = true;
    let mut lines = LineReader::new(source, MAX_JSON_ITEM, 0, 1);
    let mut log = ReplayState::default();
    // Damage at the very end is a torn tail: its writer may still be writing.
    let mut last_bad: Option<DamageLocation> = None;
    let mut empty = true;
    while let Some(line) = lines.next()? {
        let Some(bytes) = line.bytes else {
            let what = format!("a line of more than {MAX_JSON_ITEM} bytes");
            log.damage.add(DamageKind::TooLarge, DamageLocation { offset: line.offset, line: Some(line.number), what });
            continue;
        };
        let lead = bytes.len() - bytes.trim_ascii_start().len();
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            continue;
        }
        empty = false;
        if let Some(bad) = last_bad.take() {
            log.damage.add(DamageKind::Damaged, bad);
        }
        let place = |what: String| DamageLocation { offset: line.offset, line: Some(line.number), what };
        match lenient::read::<Mutation>(bytes) {
            Ok(entry) => {
                if entry.has_bad_bytes {
                    log.damage.add(DamageKind::Damaged, place("invalid UTF-8".to_owned()));
                }
                let touch = RequestEffect::of(&entry.value, log.requests());
                let applied = log.apply(entry.value, bytes.len());
                let range = ByteRange { at: line.offset + lead as u64, length: bytes.len() as u64 };
                touch.note(&mut request_ranges, log.requests(), range, bytes);
                if let Err(refused) = applied {
                    is_whole &= refused != MutationError::TooLarge;
                    let mark =
                        if refused == MutationError::TooLarge { DamageKind::TooLarge } else { DamageKind::Damaged };
                    log.damage.add(mark, place(refused.to_string()));
                }
            }
            Err(error) => {
                let bad = place(error.to_string());
                match line.ended {
                    true => log.damage.add(DamageKind::Damaged, bad),
                    false => last_bad = Some(bad),
                }
            }
        }
    }
    if let Some(bad) = last_bad {
        log.damage.add(DamageKind::TornTail, bad);
    }
    if empty {
        log.damage.mark(DamageKind::Empty);
    }
    is_whole &= !log.damage.marks.contains(&DamageKind::MissingStart);
    Ok((ReplayOutcome { state: log.state, damage: log.damage }, is_whole.then_some(request_ranges)))
}

/// The effect of an entry on the list of requests.
#[derive(Debug)]
enum RequestEffect {
    Nothing,
    /// It changes one of them.
    One(usize),
    /// It adds this many, after the kept ones.
    Adds {
        keep: usize,
        more: usize,
    },
    /// It replaces the state.
    State,
    /// Anything else: the earlier positions are not valid any more.
    Other,
}

impl RequestEffect {
    /// The effect of an entry on this many requests.
    fn of(entry: &Mutation, requests: Option<usize>) -> Self {
        let is_requests = |step: &PathSegment| matches!(step, PathSegment::Member(name) if name == "requests");
        match (entry.kind, entry.k.as_slice(), requests) {
            (INITIAL, ..) => Self::State,
            (SET..=DELETE, [first, PathSegment::Item(at), ..], Some(count)) if is_requests(first) && *at < count => {
                Self::One(*at)
            }
            (PUSH, [first], Some(count)) if is_requests(first) && entry.i.is_none_or(|keep| keep <= count) => {
                match &entry.v {
                    Some(Value::Array(items)) => Self::Adds { keep: entry.i.unwrap_or(count), more: items.len() },
                    None => Self::Adds { keep: entry.i.unwrap_or(count), more: 0 },
                    Some(_) => Self::Nothing,
                }
            }
            (SET..=DELETE, [first, ..], _) if is_requests(first) => Self::Other,
            _ => Self::Nothing,
        }
    }

    /// Records the effect of the line in `range`; there are `requests` of them now.
    fn note(self, request_ranges: &mut RequestRangeRecorder, requests: Option<usize>, range: ByteRange, line: &[u8]) {
        let count = requests.unwrap_or(0);
        match self {
            Self::Nothing => {}
            Self::One(at) => request_ranges.change(at, range),
            // A refused entry has changed nothing.
            Self::Adds { keep, more } if keep.checked_add(more) == requests => {
                request_ranges.cut(keep);
                if more == 1 {
                    request_ranges.add(RequestOrigin::Line(range));
                } else if more > 1 {
                    add_items(request_ranges, items_of(line, range.at, false), more, count);
                }
            }
            Self::State => {
                request_ranges.reset(0);
                if count > 0 {
                    add_items(request_ranges, items_of(line, range.at, true), count, count);
                }
            }
            Self::Adds { .. } | Self::Other => request_ranges.reset(count),
        }
    }
}

fn add_items(request_ranges: &mut RequestRangeRecorder, items: Vec<ByteRange>, wanted: usize, count: usize) {
    if items.len() == wanted {
        items.into_iter().for_each(|range| request_ranges.add(RequestOrigin::Value(range)));
    } else {
        request_ranges.reset(count);
    }
}

/// The only request that a line adds.
pub(super) fn only_item(line: &[u8]) -> Option<Value> {
    match lenient::read::<Mutation>(line).ok()?.value {
        Mutation { kind: PUSH, v: Some(Value::Array(mut items)), .. } if items.len() == 1 => items.pop(),
        _ => None,
    }
}

/// A request that is replayed on its own.
#[derive(Debug)]
pub(super) struct RequestReplay {
    number: usize,
    log: ReplayState,
}

impl RequestReplay {
    /// The request of this number, in its first form.
    pub(super) fn of(number: usize, origin: Value) -> Self {
        let requests = [("requests".to_owned(), Value::Array(vec![origin]))];
        Self {
            number,
            log: ReplayState { state: Some(Value::Object(requests.into_iter().collect())), ..ReplayState::default() },
        }
    }

    /// Applies lines that change it; `None` if one of them does something else.
    pub(super) fn change(&mut self, lines: &[u8]) -> Option<()> {
        for line in lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            let mut entry = lenient::read::<Mutation>(line).ok()?.value;
            match entry.k.get_mut(1) {
                Some(PathSegment::Item(at)) if *at == self.number => *at = 0,
                _ => return None,
            }
            // An entry refused here was refused there.
            self.log.apply(entry, line.len()).ok();
        }
        Some(())
    }

    pub(super) fn finish(self) -> Option<Value> {
        let Some(Value::Object(mut state)) = self.log.state else { return None };
        let Some(Value::Array(requests)) = state.get_mut("requests") else { return None };
        requests.pop().filter(|request| !request.is_null())
    }
}

/// The reason why an entry was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum MutationError {
    #[error("an entry of an unknown kind")]
    UnknownKind,
    #[error("an initial entry without a value")]
    NoValue,
    #[error("a path to a missing value")]
    NoPlace,
    #[error("a path of more than {MAX_PATH} steps")]
    TooDeep,
    #[error("a push to a value that is not a list")]
    NoList,
    #[error("an item far beyond the end of its list")]
    Gap,
    #[error("the session is larger than {MAX_STATE} bytes")]
    TooLarge,
}

#[derive(Debug, Default)]
struct ReplayState {
    state: Option<Value>,
    /// True if the state began without an initial entry. Then missing containers of paths are created.
    made_up: bool,
    /// An upper bound of the state's size as text.
    weight: usize,
    damage: Damage,
}

impl ReplayState {
    /// The number of requests, if there is a list of them.
    fn requests(&self) -> Option<usize> {
        self.state.as_ref()?.get("requests")?.as_array().map(Vec::len)
    }

    fn apply(&mut self, entry: Mutation, length: usize) -> Result<(), MutationError> {
        let Mutation { kind, k: path, v: value, i: keep } = entry;
        if kind > DELETE {
            return Err(MutationError::UnknownKind);
        }
        if kind == INITIAL {
            self.state = Some(value.ok_or(MutationError::NoValue)?);
            (self.weight, self.made_up) = (length, false);
            return Ok(());
        }
        self.make_room(length)?;
        if self.state.is_none() {
            self.damage.mark(DamageKind::MissingStart);
            self.made_up = true;
        }
        let state = self.state.get_or_insert_with(|| Value::Object(Map::new()));
        let Some((last, way)) = path.split_last() else {
            // VS Code ignores these.
            return Ok(());
        };
        if way.len() >= MAX_PATH {
            return Err(MutationError::TooDeep);
        }
        let parent = walk(state, way, self.made_up.then_some(last)).ok_or(MutationError::NoPlace)?;
        match kind {
            SET => set(parent, last, value),
            PUSH => {
                let items = match value {
                    Some(Value::Array(items)) => items,
                    Some(_) => return Err(MutationError::NoList),
                    None => Vec::new(),
                };
                push(parent, last, keep, items)
            }
            _ => set(parent, last, None),
        }
    }

    /// The sizes of lines are added up, which is more than the state if they replaced others. So the state itself is
    /// measured only if the sum is too large.
    fn make_room(&mut self, length: usize) -> Result<(), MutationError> {
        self.weight = self.weight.saturating_add(length);
        if self.weight > MAX_STATE {
            let real = self.state.as_ref().map_or(0, weight_of);
            self.weight = real.saturating_add(length);
            if self.weight > MAX_STATE {
                self.weight = real;
                return Err(MutationError::TooLarge);
            }
            // Measuring costs as much as reading: it is repeated only after half of the room is filled.
            self.weight = self.weight.min(MAX_STATE / 2);
        }
        Ok(())
    }
}

/// The approximate size of a value as text. Its depth is bounded like that of all JSON.
fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight_of(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + weight_of(value) + 4).sum::<usize>() + 2
        }
    }
}

/// The value at a path. With `make_for`, missing containers are created, fit for the next segment.
fn walk<'a>(mut value: &'a mut Value, way: &[PathSegment], make_for: Option<&PathSegment>) -> Option<&'a mut Value> {
    for (at, step) in way.iter().enumerate() {
        let next = make_for.map(|last| way.get(at + 1).unwrap_or(last));
        if let Some(next) = next {
            make(value, step, next);
        }
        value = match (value, step) {
            (Value::Array(items), PathSegment::Item(at)) => items.get_mut(*at)?,
            (Value::Object(members), PathSegment::Member(name)) => members.get_mut(name)?,
            (Value::Object(members), PathSegment::Item(at)) => members.get_mut(&at.to_string())?,
            _ => return None,
        };
    }
    Some(value)
}

/// Makes sure that a segment leads to a container for the next one.
fn make(value: &mut Value, step: &PathSegment, next: &PathSegment) {
    let fresh = || match next {
        PathSegment::Item(_) => Value::Array(Vec::new()),
        PathSegment::Member(_) => Value::Object(Map::new()),
    };
    match (value, step) {
        (Value::Array(items), PathSegment::Item(at)) if *at <= items.len().saturating_add(MAX_GAP) => {
            if items.len() <= *at {
                items.resize(*at + 1, Value::Null);
            }
            if let Some(item @ Value::Null) = items.get_mut(*at) {
                *item = fresh();
            }
        }
        (Value::Object(members), PathSegment::Member(name)) => {
            let member = members.entry(name.clone()).or_insert(Value::Null);
            if member.is_null() {
                *member = fresh();
            }
        }
        _ => {}
    }
}

/// Assigns like JavaScript. Without a value it is undefined: a member is removed, an item is emptied.
fn set(parent: &mut Value, step: &PathSegment, value: Option<Value>) -> Result<(), MutationError> {
    match (parent, step) {
        (Value::Array(items), PathSegment::Item(at)) => {
            if *at > items.len().saturating_add(MAX_GAP) {
                return Err(MutationError::Gap);
            }
            if items.len() <= *at {
                items.resize(*at + 1, Value::Null);
            }
            items[*at] = value.unwrap_or(Value::Null);
            Ok(())
        }
        (Value::Object(members), step) => {
            let name = match step {
                PathSegment::Member(name) => name.clone(),
                PathSegment::Item(at) => at.to_string(),
            };
            match value {
                Some(value) => members.insert(name, value),
                None => members.shift_remove(&name),
            };
            Ok(())
        }
        _ => Err(MutationError::NoPlace),
    }
}

/// Cuts a list to `keep` items, then appends. A missing list is created.
fn push(parent: &mut Value, step: &PathSegment, keep: Option<usize>, more: Vec<Value>) -> Result<(), MutationError> {
    let present = match (&*parent, step) {
        (Value::Array(items), PathSegment::Item(at)) => items.get(*at),
        (Value::Object(members), PathSegment::Member(name)) => members.get(name),
        (Value::Object(members), PathSegment::Item(at)) => members.get(&at.to_string()),
        _ => return Err(MutationError::NoPlace),
    };
    // A falsy value in JavaScript is not a list yet.
    let is_missing = match present {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::Bool(true) | Value::Array(_) | Value::Object(_)) => false,
    };
    if is_missing {
        set(parent, step, Some(Value::Array(Vec::new())))?;
    }
    let Some(Value::Array(items)) = walk(parent, std::slice::from_ref(step), None) else {
        return Err(MutationError::NoList);
    };
    if let Some(keep) = keep {
        if keep > items.len().saturating_add(MAX_GAP) {
            return Err(MutationError::Gap);
        }
        items.resize(keep, Value::Null);
    }
    items.extend(more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replayed(log: &str) -> (Option<Value>, Vec<DamageKind>) {
        let replayed = replay(log.as_bytes()).unwrap();
        (replayed.state, replayed.damage.marks)
    }

    #[test]
    fn all_kinds_of_entries_are_replayed_as_their_writer_means_them() {
        let log = r#"{"kind":0,"v":{"title":"old","requests":[],"input":{"text":""}}}
            {"kind":1,"k":["input","text"],"v":"fix it"}
            {"kind":2,"k":["requests"],"v":[{"id":"r1","response":[]}]}
            {"kind":2,"k":["requests",0,"response"],"v":["a","Hel"]}
            {"kind":2,"k":["requests",0,"response"],"i":1,"v":["Hello"]}
            {"kind":1,"k":["requests",0,"state"],"v":{"value":1}}
            {"kind":1,"k":["requests",0,"vote"],"v":null}
            {"kind":1,"k":["title"]}
            {"kind":3,"k":["input"]}
            {"kind":1,"k":[],"v":"ignored"}"#;
        let expected =
            json!({"requests": [{"id": "r1", "response": ["a", "Hello"], "state": {"value": 1}, "vote": null}]});
        assert_eq!(replayed(log), (Some(expected), vec![]));
    }

    #[test]
    fn a_later_initial_entry_takes_the_place_of_everything() {
        let log = "{\"kind\":0,\"v\":{\"a\":1}}\n{\"kind\":1,\"k\":[\"b\"],\"v\":2}\n{\"kind\":0,\"v\":{\"c\":3}}\n";
        assert_eq!(replayed(log), (Some(json!({"c": 3})), vec![]));
    }

    #[test]
    fn a_push_makes_the_list_that_is_missing_and_cuts_before_it_appends() {
        let log = "{\"kind\":0,\"v\":{\"x\":{}}}\n{\"kind\":2,\"k\":[\"x\",\"l\"],\"v\":[1,2,3]}\n{\"kind\":2,\"k\":[\"x\",\"l\"],\"i\":1}\n\
            {\"kind\":2,\"k\":[\"x\",\"l\"],\"i\":2,\"v\":[9]}\n";
        assert_eq!(replayed(log), (Some(json!({"x": {"l": [1, null, 9]}})), vec![]));
    }

    #[test]
    fn a_torn_last_line_costs_itself_alone() {
        let log = "{\"kind\":0,\"v\":{\"a\":1}}\n{\"kind\":1,\"k\":[\"a\"],\"v";
        assert_eq!(replayed(log), (Some(json!({"a": 1})), vec![DamageKind::TornTail]));
        assert_eq!(replayed(""), (None, vec![DamageKind::Empty]));
        assert_eq!(replayed("\n \n"), (None, vec![DamageKind::Empty]));
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_listed_and_passed_over() {
        let log = "{\"kind\":0,\"v\":{\"a\":1}}\nnonsense\n{\"kind\":9}\n{\"kind\":1,\"k\":[\"x\",\"y\"],\"v\":1}\n{\"kind\":1,\"k\":[\"a\"],\"v\":2}\n";
        let replayed = replay(log.as_bytes()).unwrap();
        assert_eq!(replayed.state, Some(json!({"a": 2})));
        assert_eq!(replayed.damage.marks, [DamageKind::Damaged]);
        let places: Vec<_> = replayed.damage.places.iter().map(|place| (place.line, place.offset)).collect();
        assert_eq!(places, [(Some(2), 23), (Some(3), 32), (Some(4), 43)]);
    }

    #[test]
    fn a_log_without_its_beginning_is_put_together_from_the_rest() {
        let log = r#"{"kind":2,"k":["requests",1,"response"],"v":["x"]}
            {"kind":1,"k":["requests",1,"id"],"v":"r2"}
            {"kind":1,"k":["requests",99999999999],"v":"far"}"#;
        let (state, marks) = replayed(log);
        assert_eq!(state, Some(json!({"requests": [null, {"response": ["x"], "id": "r2"}]})));
        assert_eq!(marks, [DamageKind::MissingStart, DamageKind::Damaged]);
    }

    #[test]
    fn a_state_that_grows_too_large_takes_no_more() {
        let mut log =
            ReplayState { state: Some(json!({"a": "x".repeat(1_000)})), weight: MAX_STATE, ..ReplayState::default() };
        log.make_room(1_000).unwrap();
        assert_eq!(log.weight, 2_009, "what was overwritten does not count");
        assert_eq!(log.make_room(MAX_STATE), Err(MutationError::TooLarge));
    }
}
