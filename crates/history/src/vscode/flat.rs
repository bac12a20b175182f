//! Flat files: a session, or an export of one, as a single JSON object. Its requests are read one by one, so that
//! memory follows the largest of them and a broken one costs itself alone.

use std::io::{self, BufRead};

use grove_core::Extra;
use serde_json::Value;

use super::noted::Noted;
use super::session::Assembly;
use crate::damage::Mark;
use crate::ending::{Origin, Range};
use crate::json::lenient;
use crate::json::pieces::{End, Piece, pieces};
use crate::limits::MAX_PIECE;
use crate::normal::ForeignTurn;

/// Reads a flat file: turns go to `turns`, what stands beside the requests is given back.
pub(crate) fn read(
    source: impl BufRead,
    assembly: &mut Assembly,
    noted: &mut Noted,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Extra> {
    let mut root = Extra::new();
    let end = pieces(source, "requests", MAX_PIECE, |piece, offset, bytes| {
        let Some(bytes) = bytes else {
            assembly.bad(Mark::TooLarge, offset, format!("more than {MAX_PIECE} bytes in one piece"));
            return;
        };
        let read = lenient::read::<Value>(bytes);
        if read.as_ref().is_ok_and(|read| read.has_bad_bytes) {
            assembly.bad(Mark::Damaged, offset, "bytes that are no text");
        }
        match (piece, read) {
            (Piece::Item, Ok(read)) => {
                let number = assembly.session.turns as usize;
                let turn = assembly.turn(read.value);
                noted.add(Origin::Value(Range { at: offset, length: bytes.len() as u64 }));
                noted.turn(number, &turn);
                turns(turn);
            }
            (Piece::Member(name), Ok(read)) => {
                root.insert(name, read.value);
            }
            (Piece::Item, Err(error)) => assembly.bad(Mark::Damaged, offset, format!("a request: {error}")),
            (Piece::Member(name), Err(error)) => assembly.bad(Mark::Damaged, offset, format!("`{name}`: {error}")),
        }
    })?;
    match end {
        End::Whole => {}
        End::Empty => assembly.session.damage.mark(Mark::Empty),
        End::Torn(offset) => assembly.bad(Mark::TornTail, offset, "the file ends before what begins here"),
        End::Broken(offset) => assembly.bad(Mark::Damaged, offset, "no JSON: nothing behind this is read"),
    }
    Ok(root)
}
