//! Turns that are kept until the end of their session is known.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::Serialize;

use crate::TranscriptTurn;

/// The size of the turns in memory, as JSON. In memory they take several times as much.
const MAX_IN_MEMORY: usize = 32 << 20;

/// The turns of a session, for a second look without a second parse: in memory up to a limit, the rest in an unnamed
/// temporary file.
#[derive(Debug)]
pub struct TurnBuffer {
    turns: Vec<TranscriptTurn>,
    /// The bytes that still fit into memory.
    room: usize,
    spilled: Option<SpilledTurns>,
}

/// The later turns, as JSON.
#[derive(Debug)]
struct SpilledTurns {
    file: File,
    /// The end of each turn.
    ends: Vec<u64>,
}

impl Default for TurnBuffer {
    fn default() -> Self {
        Self::with_room(MAX_IN_MEMORY)
    }
}

impl TurnBuffer {
    /// A buffer that holds turns of at most `room` bytes of JSON in memory.
    pub fn with_room(room: usize) -> Self {
        Self { turns: Vec::new(), room, spilled: None }
    }

    pub fn len(&self) -> usize {
        self.turns.len() + self.spilled.as_ref().map_or(0, |spilled| spilled.ends.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a turn at the end.
    pub fn push(&mut self, turn: TranscriptTurn) -> io::Result<()> {
        let room = self.room.checked_sub(json_size(&turn)).filter(|_| self.spilled.is_none());
        if let Some(room) = room {
            self.room = room;
            self.turns.push(turn);
            return Ok(());
        }
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(SpilledTurns { file: tempfile::tempfile()?, ends: Vec::new() }),
        };
        spilled.push(&turn)
    }

    /// The turn with this number, from 0.
    pub fn get(&self, number: usize) -> io::Result<TranscriptTurn> {
        let none = || io::Error::new(io::ErrorKind::NotFound, format!("there is no turn {number}"));
        match (self.turns.get(number), &self.spilled) {
            (Some(turn), _) => Ok(turn.clone()),
            (None, Some(spilled)) => spilled.get(number - self.turns.len())?.ok_or_else(none),
            (None, None) => Err(none()),
        }
    }
}

impl SpilledTurns {
    fn push(&mut self, turn: &TranscriptTurn) -> io::Result<()> {
        let json = serde_json::to_vec(turn)?;
        let start = self.ends.last().copied().unwrap_or(0);
        // A read may have moved the position.
        self.file.seek(SeekFrom::Start(start))?;
        self.file.write_all(&json)?;
        self.ends.push(start + json.len() as u64);
        Ok(())
    }

    fn get(&self, at: usize) -> io::Result<Option<TranscriptTurn>> {
        let Some(end) = self.ends.get(at) else { return Ok(None) };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut json = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut json)?;
        Ok(Some(serde_json::from_slice(&json)?))
    }
}

/// The size of a value as JSON.
pub fn json_size(value: &impl Serialize) -> usize {
    struct ByteCounter(usize);

    impl Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = ByteCounter(0);
    // Counting cannot fail, and plain data always serializes.
    serde_json::to_writer(&mut counter, value).ok();
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: usize) -> TranscriptTurn {
        let mut turn = TranscriptTurn { id: format!("t{number}"), ..TranscriptTurn::default() };
        turn.message.text = "é\n".repeat(number);
        turn
    }

    #[test]
    fn turns_come_back_from_memory_and_from_the_file() {
        let size = json_size(&turn(0));
        for room in [0, size, 3 * size, usize::MAX] {
            let mut buffer = TurnBuffer::with_room(room);
            for number in 0..10 {
                buffer.push(turn(number)).unwrap();
                // Reading in between disturbs nothing.
                assert_eq!(buffer.get(0).unwrap(), turn(0));
            }
            assert_eq!(buffer.len(), 10);
            assert_eq!(buffer.spilled.is_some(), room != usize::MAX);
            for number in (0..10).rev() {
                assert_eq!(buffer.get(number).unwrap(), turn(number), "with room for {room} bytes");
            }
            assert!(buffer.get(10).is_err());
        }
    }
}
