//! Where the newest turns of a session lie in its file, so that they can be read without the rest.
//!
//! Whoever reads a session notes this on the way, and the catalog keeps it for long ones. A log that only grows is read on
//! from one of several bookmarks ([`ResumePointRecorder`]); a file in which anything may change anything has the ranges that each of its
//! newest requests was made of ([`RequestRanges`]). What is read in this way is what reading everything gives; where the file is
//! not as it was, or something does not fit, everything is read.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::limits::MAX_JSON_ITEM;
use crate::normal::{TranscriptTurn, TurnParent};
use crate::reader::{Bookmark, FileMark};

/// Where the newest turns of a session lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TailIndex {
    /// The file, as it was read.
    pub(crate) mark: FileMark,
    /// By which a file that is longer now is known to have grown.
    #[serde(default)]
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) places: TailLayout,
}

impl TailIndex {
    /// How many bytes have to be read for so much of the end; `None` where it is not known.
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

/// How much of a session's end is wanted: whole turns, until there are as many turns, or as many entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailLimit {
    Turns(usize),
    /// What was said, and each part of what came of it, is an entry.
    Entries(usize),
}

impl TailLimit {
    /// Whether so many are enough.
    pub(crate) fn is_met(self, turns: u64, entries: u64) -> bool {
        match self {
            Self::Turns(wanted) => turns >= wanted as u64,
            Self::Entries(wanted) => entries >= wanted as u64,
        }
    }
}

/// How many entries a turn is.
pub(crate) fn entries_of(turn: &TranscriptTurn) -> u64 {
    1 + turn.parts.len() as u64
}

/// Places in a log from which it can be read on, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumePoints {
    pub steps: Vec<ResumePoint>,
    /// What lines behind the first step ask for of what lies before them, in order.
    pub asked: Vec<ParentLookup>,
    /// How many turns and entries the session has.
    pub turns: u32,
    pub entries: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumePoint {
    pub bookmark: Bookmark,
    /// How many entries lie before it.
    pub entries: u64,
}

/// An entry that a line hangs from, and the turn that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParentLookup {
    /// Where the line begins.
    pub at: u64,
    pub entry: u64,
    pub turn: Option<u32>,
}

impl ResumePoints {
    /// The newest step behind which there is enough.
    pub(crate) fn before(&self, amount: TailLimit) -> Option<&ResumePoint> {
        let is_enough = |step: &&ResumePoint| {
            let turns = u64::from(self.turns.saturating_sub(step.bookmark.turns));
            amount.is_met(turns, self.entries.saturating_sub(step.entries))
        };
        self.steps.iter().rev().find(is_enough)
    }

    /// What is asked for behind a step.
    pub(crate) fn asked_behind(&self, step: &ResumePoint) -> impl Iterator<Item = ParentLookup> {
        self.asked.iter().copied().filter(move |asked| asked.at > step.bookmark.offset)
    }

    /// The steps of a log that was read on from the one at `from`: `more` is what the later reading noted.
    fn with(mut self, mut more: Self, from: u64) -> Self {
        let is_anew = more.steps.first().is_some_and(|step| step.bookmark.offset < from);
        let met = self.steps.iter().position(|step| step.bookmark.offset == from).filter(|_| !is_anew);
        let Some(met) = met else { return more };
        let before = self.steps.get(met).map_or(0, |step| step.entries);
        self.steps.truncate(met);
        self.asked.retain(|asked| asked.at < from);
        for step in &mut more.steps {
            step.entries += before;
        }
        self.steps.append(&mut more.steps);
        self.asked.append(&mut more.asked);
        (self.turns, self.entries) = (more.turns, more.entries + before);
        let all: Vec<_> = self.steps.iter().map(|step| (step.bookmark.turns, step.entries)).collect();
        let mut kept = kept(&all).into_iter();
        self.steps.retain(|_| kept.next() == Some(true));
        if let Some(first) = self.steps.first().map(|step| step.bookmark.offset) {
            self.asked.retain(|asked| asked.at > first);
        }
        self
    }
}

/// The newest steps lie some entries apart, those before them sixteen turns: reading a few more turns than are wanted costs
/// less than keeping a step for each.
const NEAR: u64 = 256;
const NEAR_STRIDE: u64 = 16;
const FAR: u32 = 256;
const FAR_STRIDE: u32 = 16;
/// How many entries may be asked for behind a step. With more of them the older steps are given up.
const MAX_PARENT_LOOKUPS: usize = 2_048;

/// Which of the steps are kept, each given by its turn and by how many entries lie before it.
fn kept(steps: &[(u32, u64)]) -> Vec<bool> {
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

/// Files that are smaller are read whole: nothing is noted for them.
#[cfg(not(test))]
const MIN_INDEXED_BYTES: u64 = 1024 * 1024;
#[cfg(test)]
const MIN_INDEXED_BYTES: u64 = 1;

/// Notes steps while a log is read. `K` is what is known at one.
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

    /// A turn was told.
    pub(crate) fn told(&mut self, turn: &TranscriptTurn) {
        self.entries += entries_of(turn);
    }

    /// A turn begins, from which reading can go on.
    pub(crate) fn begins(&mut self, offset: u64, number: u32, known: &K) {
        // The newest one is there until the next comes.
        self.steps.push_back((offset, number, self.entries, known.clone()));
        let all: Vec<_> = self.steps.iter().map(|(_, turn, entries, _)| (*turn, *entries)).collect();
        let mut kept = kept(&all).into_iter();
        self.steps.retain(|_| kept.next() == Some(true));
    }

    /// A turn begins from which reading cannot go on.
    pub(crate) fn reset(&mut self) {
        self.steps.clear();
    }

    /// A line hangs from an entry of another turn.
    pub(crate) fn asked(&mut self, asked: ParentLookup) {
        self.asked.push_back(asked);
        if self.asked.len() > MAX_PARENT_LOOKUPS
            && let Some(lost) = self.asked.pop_front()
        {
            self.steps.retain(|(offset, ..)| *offset >= lost.at);
        }
    }

    /// The newest step, and all of them where the log is long: it ended at `end`, with so many turns in all.
    pub(crate) fn finish(mut self, end: u64, turns: u32) -> (Option<Bookmark>, Option<ResumePoints>) {
        let bookmark = |offset, turns, known: &K| {
            // What cannot be written down is read anew.
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

/// Where the newest requests of a file lie, oldest first. Each is put together from what lies there alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRanges {
    /// The number of the first of them among all.
    pub first: usize,
    pub requests: Vec<RequestRange>,
    /// How many turns the session has.
    pub turns: u32,
    /// How the session calls itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRange {
    /// `None` where nothing is in its place.
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

/// What is known of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnHeader {
    /// Its id, which depends on all turns before it where the file has none, or the same twice.
    pub id: String,
    pub entries: u64,
    #[serde(default, skip_serializing_if = "crate::normal::is_default")]
    pub follows: TurnParent,
}

impl TurnHeader {
    pub(crate) fn of(turn: &TranscriptTurn) -> Self {
        Self { id: turn.id.clone(), entries: entries_of(turn), follows: turn.follows }
    }
}

/// Where a request is told first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RequestOrigin {
    /// These bytes are the request.
    Value(ByteRange),
    /// These bytes are a line that adds it, and nothing else.
    Line(ByteRange),
}

/// The bytes of a range.
pub(crate) fn bytes_of(file: &mut File, range: ByteRange) -> io::Result<Vec<u8>> {
    // Lines that stand one behind the other are one range.
    let length = usize::try_from(range.length).ok().filter(|length| *length <= 2 * MAX_JSON_ITEM);
    let length = length.ok_or_else(|| io::Error::other("a range that is too long"))?;
    file.seek(SeekFrom::Start(range.at))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteRange {
    pub at: u64,
    pub length: u64,
}

impl RequestRanges {
    /// The newest requests, as many as give enough, with the number of the first; `None` where they do not.
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
    /// The ending of a file that has grown and was read on from a bookmark: `self` is what was known of it before, `more`
    /// what the later reading noted.
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
