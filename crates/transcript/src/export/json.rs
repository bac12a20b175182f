//! The normal form as one JSON object: `{"session": …, "turns": […]}`.

use std::io::{self, Write};

use serde_json::Value;

use super::{Heading, TurnWriter};
use crate::normal::TranscriptTurn;

/// Writes a turn per line, so that a large session can be read with line tools.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    turns: usize,
}

impl<W: Write> Json<W> {
    pub fn begin(mut out: W, heading: Heading<'_>) -> io::Result<Self> {
        let mut session = serde_json::to_value(heading.session)?;
        if let Value::Object(members) = &mut session {
            // The host's own sessions have a source that no reader has.
            members.insert("source".to_owned(), heading.source.into());
            if let Some(allow_all) = heading.allow_all {
                members.insert("allowAll".to_owned(), allow_all.into());
            }
        }
        write!(out, "{{\"session\":{session},\n\"turns\":[")?;
        Ok(Self { out, turns: 0 })
    }
}

impl<W: Write> TurnWriter for Json<W> {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()> {
        self.out.write_all(if self.turns == 0 { b"\n" } else { b",\n" })?;
        self.turns += 1;
        Ok(serde_json::to_writer(&mut self.out, turn)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}
