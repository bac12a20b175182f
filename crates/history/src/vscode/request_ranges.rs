//! Records the positions of a session's newest requests during a full read, and reads them there.

use std::collections::VecDeque;
use std::fs::File;
use std::io;

use grove_transcript::TranscriptTurn;
use serde_json::Value;

use super::mutation_log::{self, RequestReplay};
use super::session::SessionBuilder;
use crate::json::lenient;
use crate::json::stream::{StreamItem, stream_object};
use crate::limits::MAX_JSON_ITEM;
use crate::tail_index::{ByteRange, RequestOrigin, RequestRange, RequestRanges, TailLimit, TurnHeader, bytes_of};

/// The maximum number of recorded requests, the newest ones.
const MAX_REQUESTS: usize = 256;
/// The maximum number of ranges of a request. One with more changes is dropped, with the earlier ones.
const MAX_CHANGES: usize = 64;

/// The known positions of requests while a file is read.
#[derive(Debug, Default)]
pub(super) struct RequestRangeRecorder {
    /// The number of requests before the known ones.
    first: usize,
    requests: VecDeque<RequestRange>,
}

impl RequestRangeRecorder {
    /// Sets the number of requests, with unknown positions.
    pub(super) fn reset(&mut self, count: usize) {
        self.requests.clear();
        self.first = count;
    }

    /// Keeps the first `keep` requests.
    pub(super) fn cut(&mut self, keep: usize) {
        match keep.checked_sub(self.first) {
            Some(known) => self.requests.truncate(known),
            None => self.reset(keep),
        }
    }

    pub(super) fn add(&mut self, origin: RequestOrigin) {
        self.requests.push_back(RequestRange { turn: None, origin, changes: Vec::new() });
        if self.requests.len() > MAX_REQUESTS {
            self.requests.pop_front();
            self.first += 1;
        }
    }

    /// Records a line that changes a request.
    pub(super) fn change(&mut self, number: usize, line: ByteRange) {
        let Some(at) = number.checked_sub(self.first) else { return };
        let Some(RequestRange { changes, .. }) = self.requests.get_mut(at) else { return };
        // Consecutive lines are read at once; only their line ends are between them.
        if let Some(last) = changes.last_mut().filter(|last| last.at + last.length + 1 == line.at) {
            last.length = line.at + line.length - last.at;
        } else if changes.len() < MAX_CHANGES {
            changes.push(line);
        } else {
            self.requests.drain(..=at);
            self.first += at + 1;
        }
    }

    /// Records the turn of a request.
    pub(super) fn turn(&mut self, number: usize, turn: &TranscriptTurn) {
        let known = number.checked_sub(self.first).and_then(|at| self.requests.get_mut(at));
        if let Some(request) = known {
            request.turn = Some(TurnHeader::of(turn));
        }
    }

    /// The result, once all `turns` of the session were returned.
    pub(super) fn finish(self, turns: u32) -> Option<RequestRanges> {
        let requests: Vec<RequestRange> = self.requests.into();
        (!requests.is_empty()).then_some(RequestRanges { first: self.first, requests, turns, session: String::new() })
    }
}

/// The positions of the list items in a line: in `v`, or in `v`'s member `requests`. `at` is the line's offset.
pub(super) fn items_of(line: &[u8], at: u64, is_state: bool) -> Vec<ByteRange> {
    let mut found = Vec::new();
    let mut note = |offset: u64, bytes: Option<&[u8]>| {
        found.push(ByteRange { at: at + offset, length: bytes.map_or(0, <[u8]>::len) as u64 });
    };
    let list = if is_state { "" } else { "v" };
    // Items that cannot be separated make the count too low, which is noticed.
    let _ended = stream_object(line, list, MAX_JSON_ITEM, |piece, outer, bytes| match (piece, bytes) {
        (StreamItem::Item, bytes) => note(outer, bytes),
        (StreamItem::Member(name), Some(state)) if is_state && name == "v" => {
            let _ended = stream_object(state, "requests", MAX_JSON_ITEM, |piece, inner, bytes| {
                if piece == StreamItem::Item {
                    note(outer + inner, bytes);
                }
            });
        }
        _ => {}
    });
    found
}

/// Reads the newest turns at their positions. `None` if something does not match the record.
pub(super) fn read(
    file: &mut File,
    id: &str,
    request_ranges: &RequestRanges,
    amount: TailLimit,
    turns: &mut Vec<TranscriptTurn>,
) -> io::Result<Option<()>> {
    let Some((first, requests)) = request_ranges.newest(amount) else { return Ok(None) };
    let mut assembly = SessionBuilder::new(id);
    for (number, request) in (first..).zip(requests) {
        let Some(mark) = &request.turn else { continue };
        let origin = match request.origin {
            RequestOrigin::Value(range) => lenient::read::<Value>(&bytes_of(file, range)?).ok().map(|read| read.value),
            RequestOrigin::Line(range) => mutation_log::only_item(&bytes_of(file, range)?),
        };
        let Some(origin) = origin else { return Ok(None) };
        let mut replaying = RequestReplay::of(number, origin);
        for range in &request.changes {
            if replaying.change(&bytes_of(file, *range)?).is_none() {
                return Ok(None);
            }
        }
        let Some(value) = replaying.finish() else { return Ok(None) };
        let mut turn = assembly.turn(value);
        turn.id.clone_from(&mark.id);
        turns.push(turn);
    }
    Ok(Some(()))
}
