//! The positions of a session's newest turns in its file, for reading them without the rest.
//!
//! A read of a session records them, and the catalog keeps them for long sessions. An append-only log is read on from
//! one of several bookmarks ([`ResumePointRecorder`]); a file in which anything may change earlier data has the ranges
//! of each of its newest requests ([`RequestRanges`]). The result equals that of a full read; if the file has changed,
//! or something does not fit, everything is read.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use grove_transcript::{TranscriptTurn, TurnParent};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::limits::MAX_JSON_ITEM;
use crate::reader::{Bookmark, FileMark};

/// The positions of a session's newest turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TailIndex {
    /// The file's mark at the read.
    pub(crate) mark: FileMark,
    /// Verifies that a longer file has grown, and was not rewritten.
    #[serde(default)]
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) places: TailLayout,
}

impl TailIndex {
    /// The number of bytes to read for this much of the end; `None` if it is not known.
    pub fn bytes(&self, amount: TailLimit) -> Option<u64> {
        match &self.places {
            TailLayout::ResumePoints(steps) => {
                Some(self.mark.size.saturating_sub(steps.before(amount)?.bookmark.offset))
            }
            TailLayout::RequestRanges(requests) => {
                let (_, newest) = requests.newest(amount)?;
                Some(newest.iter().map(RequestRange::bytes).sum())
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum TailLayout {
    #[serde(rename = "steps")]
    ResumePoints(ResumePoints),
    #[serde(rename = "requests")]
    RequestRanges(RequestRanges),
}

/// The wanted part of a session's end: complete turns, up to a number of turns or of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailLimit {
    Turns(usize),
    /// A message, and each part of its results, is an entry.
    Entries(usize),
}

impl TailLimit {
    /// True if the limit is reached.
    pub(crate) fn is_met(self, turns: u64, entries: u64) -> bool {
        match self {
            Self::Turns(wanted) => turns >= wanted as u64,
            Self::Entries(wanted) => entries >= wanted as u64,
        }
    }
}

/// The number of entries of a turn.
pub(crate) fn entries_of(turn: &TranscriptTurn) -> u64 {
    1 + turn.parts.len() as u64
}

/// Positions in a log for reading on, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumePoints {
    pub steps: Vec<ResumePoint>,
    /// The lookups of lines after the first resume point in earlier ones, in order.
    pub asked: Vec<ParentLookup>,
    /// The session's number of turns and entries.
    pub turns: u32,
    pub entries: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumePoint {
    pub bookmark: Bookmark,
    /// The number of entries before it.
    pub entries: u64,
}

/// An entry that a line names as its parent, and that entry's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParentLookup {
    /// The offset of the line.
    pub at: u64,
    pub entry: u64,
    pub turn: Option<u32>,
}

impl ResumePoints {
    /// The newest resume point with enough after it.
    pub(crate) fn before(&self, amount: TailLimit) -> Option<&ResumePoint> {
        let is_enough = |step: &&ResumePoint| {
            let turns = u64::from(self.turns.saturating_sub(step.bookmark.turns));
            amount.is_met(turns, self.entries.saturating_sub(step.entries))
        };
        self.steps.iter().rev().find(is_enough)
    }

    /// The lookups after a resume point.
    pub(crate) fn asked_behind(&self, step: &ResumePoint) -> impl Iterator<Item = ParentLookup> {
        self.asked.iter().copied().filter(move |lookup| lookup.at > step.bookmark.offset)
    }

    /// The resume points of a log that was read on from `from`: `more` are those of the later read.
    fn with(mut self, mut more: Self, from: u64) -> Self {
        let is_anew = more.steps.first().is_some_and(|step| step.bookmark.offset < from);
        let met = self.steps.iter().position(|step| step.bookmark.offset == from).filter(|_| !is_anew);
        let Some(met) = met else { return more };
        let before = self.steps.get(met).map_or(0, |step| step.entries);
        self.steps.truncate(met);
        self.asked.retain(|lookup| lookup.at < from);
        for step in &mut more.steps {
            step.entries += before;
        }
        self.steps.append(&mut more.steps);
        self.asked.append(&mut more.asked);
        (self.turns, self.entries) = (more.turns, more.entries + before);
        let all: Vec<_> = self.steps.iter().map(|step| (step.bookmark.turns, step.entries)).collect();
        let mut keep = steps_to_keep(&all).into_iter();
        self.steps.retain(|_| keep.next() == Some(true));
        if let Some(first) = self.steps.first().map(|step| step.bookmark.offset) {
            self.asked.retain(|lookup| lookup.at > first);
        }
        self
    }
}

/// The newest resume points are some entries apart, earlier ones sixteen turns: reading a few more turns than needed
/// costs less than keeping a point for each.
const NEAR: u64 = 256;
const NEAR_STRIDE: u64 = 16;
const FAR: u32 = 256;
const FAR_STRIDE: u32 = 16;
/// The maximum number of lookups after a resume point. With more of them the older points are dropped.
const MAX_PARENT_LOOKUPS: usize = 2_048;

/// Marks the resume points to keep, each given by its turn and the number of entries before it.
fn steps_to_keep(steps: &[(u32, u64)]) -> Vec<bool> {
    let Some(&(newest, all)) = steps.last() else { return Vec::new() };
    let mut last: Option<u64> = None;
    let mut keep = |at: usize, turn: u32, entries: u64| {
        let is_near = all - entries.min(all) < NEAR;
        let is_apart = last.is_none_or(|last| entries >= last + NEAR_STRIDE);
        let is_far = turn.is_multiple_of(FAR_STRIDE) && newest.saturating_sub(turn) < FAR;
        let keep = at + 1 == steps.len() || (is_near && is_apart) || is_far;
        if keep {
            last = Some(entries);
        }
        keep
    };
    steps.iter().enumerate().map(|(at, (turn, entries))| keep(at, *turn, *entries)).collect()
}

/// Smaller files are read completely: nothing is recorded for them.
#[cfg(not(test))]
const MIN_INDEXED_BYTES: u64 = 1024 * 1024;
#[cfg(test)]
const MIN_INDEXED_BYTES: u64 = 1;

/// Records resume points while a log is read. `K` is the state at one.
#[derive(Debug)]
pub(crate) struct ResumePointRecorder<K> {
    steps: VecDeque<(u64, u32, u64, K)>,
    asked: VecDeque<ParentLookup>,
    entries: u64,
}

impl<K: Clone + Serialize> ResumePointRecorder<K> {
    pub(crate) fn new() -> Self {
        Self { steps: VecDeque::new(), asked: VecDeque::new(), entries: 0 }
    }

    /// Counts a returned turn.
    pub(crate) fn add_turn(&mut self, turn: &TranscriptTurn) {
        self.entries += entries_of(turn);
    }

    /// Records the start of a turn at which reading can resume.
    pub(crate) fn begins(&mut self, offset: u64, number: u32, known: &K) {
        // The newest one stays until the next comes.
        self.steps.push_back((offset, number, self.entries, known.clone()));
        let all: Vec<_> = self.steps.iter().map(|(_, turn, entries, _)| (*turn, *entries)).collect();
        let mut keep = steps_to_keep(&all).into_iter();
        self.steps.retain(|_| keep.next() == Some(true));
    }

    /// Records the start of a turn at which reading cannot resume.
    pub(crate) fn reset(&mut self) {
        self.steps.clear();
    }

    /// Records a line with a parent in another turn.
    pub(crate) fn add_lookup(&mut self, lookup: ParentLookup) {
        self.asked.push_back(lookup);
        if self.asked.len() > MAX_PARENT_LOOKUPS
            && let Some(lost) = self.asked.pop_front()
        {
            self.steps.retain(|(offset, ..)| *offset >= lost.at);
        }
    }

    /// The newest resume point, and all of them if the log is long: it ended at `end`, with `turns` turns in all.
    pub(crate) fn finish(mut self, end: u64, turns: u32) -> (Option<Bookmark>, Option<ResumePoints>) {
        let bookmark = |offset, turns, known: &K| {
            // A state that cannot be serialized means a full read.
            let carried = serde_json::to_value(known).ok()?;
            Some(Bookmark { offset, turns, carried, fingerprint: None, asked: Vec::new() })
        };
        if end < MIN_INDEXED_BYTES {
            let newest = self.steps.pop_back();
            return (newest.and_then(|(offset, turn, _, known)| bookmark(offset, turn, &known)), None);
        }
        let step =
            |(offset, turn, entries, known)| Some(ResumePoint { bookmark: bookmark(offset, turn, &known)?, entries });
        let steps: Vec<ResumePoint> = self.steps.into_iter().filter_map(step).collect();
        let Some(newest) = steps.last().map(|step| step.bookmark.clone()) else { return (None, None) };
        let first = steps.first().map_or(0, |step| step.bookmark.offset);
        let asked = self.asked.into_iter().filter(|asked| asked.at > first).collect();
        (Some(newest), Some(ResumePoints { steps, asked, turns, entries: self.entries }))
    }
}

/// The positions of a file's newest requests, oldest first. Each is assembled from these ranges alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRanges {
    /// The number of the first of them among all.
    pub first: usize,
    pub requests: Vec<RequestRange>,
    /// The session's number of turns.
    pub turns: u32,
    /// The session's own id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRange {
    /// `None` if there is no turn in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnHeader>,
    pub origin: RequestOrigin,
    /// Lines that change it, or messages that belong to it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ByteRange>,
}

impl RequestRange {
    fn bytes(&self) -> u64 {
        let (RequestOrigin::Value(origin) | RequestOrigin::Line(origin)) = self.origin;
        origin.length + self.changes.iter().map(|change| change.length).sum::<u64>()
    }
}

/// The header of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnHeader {
    /// Its id, which depends on all earlier turns if the file has none, or duplicates.
    pub id: String,
    pub entries: u64,
    #[serde(default, skip_serializing_if = "TurnParent::is_previous")]
    pub follows: TurnParent,
}

impl TurnHeader {
    pub(crate) fn of(turn: &TranscriptTurn) -> Self {
        Self { id: turn.id.clone(), entries: entries_of(turn), follows: turn.follows }
    }
}

/// The first appearance of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RequestOrigin {
    /// These bytes are the request.
    Value(ByteRange),
    /// These bytes are a line that only adds it.
    Line(ByteRange),
}

/// The bytes of a range.
pub(crate) fn bytes_of(file: &mut File, range: ByteRange) -> io::Result<Vec<u8>> {
    // Consecutive lines are one range.
    let length = usize::try_from(range.length).ok().filter(|length| *length <= 2 * MAX_JSON_ITEM);
    let length = length.ok_or_else(|| io::Error::other("a range that is too long"))?;
    file.seek(SeekFrom::Start(range.at))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A range of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteRange {
    pub at: u64,
    pub length: u64,
}

impl RequestRanges {
    /// The newest requests that reach the limit, with the number of the first; `None` if they do not.
    pub(crate) fn newest(&self, amount: TailLimit) -> Option<(usize, &[RequestRange])> {
        let (mut turns, mut entries) = (0, 0);
        for (at, request) in self.requests.iter().enumerate().rev() {
            if amount.is_met(turns, entries) {
                return Some((self.first + at + 1, &self.requests[at + 1..]));
            }
            turns += u64::from(request.turn.is_some());
            entries += request.turn.as_ref().map_or(0, |turn| turn.entries);
        }
        (amount.is_met(turns, entries) || turns == u64::from(self.turns)).then_some((self.first, &self.requests))
    }
}

impl TailIndex {
    /// The tail index of a file that was read on from a bookmark: `self` is the earlier one, `more` that of the later
    /// read.
    pub(crate) fn grown(self, more: Self, from: &Bookmark) -> Self {
        let of_more = Self {
            mark: more.mark,
            fingerprint: more.fingerprint,
            places: TailLayout::RequestRanges(RequestRanges::default()),
        };
        match (self.places, more.places) {
            (TailLayout::ResumePoints(before), TailLayout::ResumePoints(after)) => {
                Self { places: TailLayout::ResumePoints(before.with(after, from.offset)), ..of_more }
            }
            (_, places) => Self { places, ..of_more },
        }
    }
}
