//! Counting arrived chunks, and checking that they are complete and in order.

use std::time::{SystemTime, UNIX_EPOCH};

/// The number of faults that are described.
const DESCRIBED: usize = 10;

/// The chunks that a client, or several together, got from all sessions.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The last chunk of each session, and the number of expected chunks.
    last: Vec<u64>,
    chunks: u64,
    /// The number of sessions with missing chunks.
    left: usize,
    pub(super) messages: u64,
    pub(super) faults: u64,
    pub(super) described: Vec<String>,
    /// Microseconds.
    latencies: Vec<u32>,
}

impl Tally {
    pub(super) fn new(sessions: usize, chunks: u64) -> Self {
        Self { last: vec![0; sessions], chunks, left: sessions, ..Self::default() }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.left == 0
    }

    /// Handles a text of a session: one chunk, or several merged ones.
    pub(super) fn take(&mut self, session: usize, text: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        for chunk in text.split_terminator(';') {
            let read =
                chunk.split_once(':').and_then(|(number, sent)| Some((number.parse().ok()?, sent.parse().ok()?)));
            match read {
                Some((number, sent)) => self.chunk(session, number, now.saturating_sub(sent)),
                None => self.fault(1, format!("session {session}: {chunk:?} is not a chunk")),
            }
        }
    }

    fn chunk(&mut self, session: usize, number: u64, micros: u64) {
        self.messages += 1;
        self.latencies.push(u32::try_from(micros).unwrap_or(u32::MAX));
        let Some(last) = self.last.get_mut(session) else { return };
        let before = *last;
        if number <= before {
            self.fault(1, format!("session {session}: {number} came after {before}"));
            return;
        }
        *last = number;
        if number == self.chunks {
            self.left -= 1;
        }
        if number > before + 1 {
            self.fault(number - before - 1, format!("session {session}: {number} came after {before}"));
        }
    }

    fn fault(&mut self, count: u64, description: String) {
        self.faults += count;
        if self.described.len() < DESCRIBED {
            self.described.push(description);
        }
    }

    /// Adds the chunks of another client.
    pub(super) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.faults += other.faults;
        self.described.extend(other.described);
        self.described.truncate(DESCRIBED);
        self.latencies.extend(other.latencies);
    }

    /// The median, the 99th percentile and the maximum, in milliseconds.
    pub(super) fn latencies(&mut self) -> (f64, f64, f64) {
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let index = ((self.latencies.len() as f64 * share) as usize).min(self.latencies.len().saturating_sub(1));
            self.latencies.get(index).map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
        };
        (at(0.50), at(0.99), at(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(texts: &[&str]) -> Tally {
        let mut tally = Tally::new(1, 4);
        texts.iter().for_each(|text| tally.take(0, text));
        tally
    }

    #[test]
    fn merged_chunks_count_each() {
        let tally = taken(&["1:0;", "2:0;3:0;", "4:0;"]);
        assert_eq!((tally.messages, tally.faults, tally.is_whole()), (4, 0, true));
    }

    #[test]
    fn a_chunk_that_is_lost_again_or_late_is_a_fault() {
        assert_eq!(taken(&["1:0;", "4:0;"]).faults, 2, "two are lost");
        assert_eq!(taken(&["1:0;", "1:0;"]).faults, 1, "one came twice");
        assert_eq!(taken(&["2:0;", "1:0;"]).faults, 2, "one came late, and was missed before");
        assert_eq!(taken(&["1:0;x;"]).faults, 1, "no chunk at all");
        assert!(!taken(&["1:0;2:0;3:0;"]).is_whole());
    }
}
