//! Flat files: a session, or an export of one, as a single JSON object. Its requests are read one by one, so that
//! memory follows the largest of them and a broken one costs itself alone.

use std::io::{self, BufRead};

use grove_core::Extra;
use serde_json::Value;

use super::noted::Noted;
use super::session::Assembly;
use crate::damage::Mark;
use crate::ending::{Origin, Range};
use crate::json::pieces::{End, Piece, Verdict, recovered_pieces};
use crate::json::{fragment, lenient};
use crate::limits::MAX_PIECE;
use crate::normal::ForeignTurn;

/// The first key of a request, as VS Code writes them. Behind damage the next request is found by it.
const FIRST_KEY: &str = "requestId";

/// Reads a flat file: turns go to `turns`, what stands beside the requests is given back.
pub(crate) fn read(
    source: impl BufRead,
    assembly: &mut Assembly,
    noted: &mut Noted,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Extra> {
    let mut root = Extra::new();
    let end = recovered_pieces(source, "requests", FIRST_KEY, MAX_PIECE, |piece, offset, bytes| {
        let read = bytes.map(lenient::read::<Value>);
        if let Some(Ok(read)) = &read
            && read.has_bad_bytes
        {
            assembly.bad(Mark::Damaged, offset, "bytes that are no text");
        }
        let mut tell = |assembly: &mut Assembly, value: Value| {
            let number = assembly.session.turns as usize;
            let turn = assembly.turn(value);
            let length = bytes.map_or(0, <[u8]>::len) as u64;
            noted.add(Origin::Value(Range { at: offset, length }));
            noted.turn(number, &turn);
            turns(turn);
        };
        match (piece, read) {
            (Piece::Fragment { is_last }, _) => {
                if !is_last {
                    assembly.bad(Mark::Damaged, offset, "no JSON: the requests behind it are read");
                }
                if let Some(request) = bytes.and_then(fragment::value_of).filter(says_something) {
                    tell(assembly, request);
                }
            }
            (_, None) => {
                assembly.bad(Mark::TooLarge, offset, format!("more than {MAX_PIECE} bytes in one piece"));
            }
            (Piece::Item, Some(Ok(read))) => tell(assembly, read.value),
            (Piece::Resumed, Some(Ok(read))) if is_request(&read.value) => tell(assembly, read.value),
            (Piece::Item | Piece::Resumed, Some(_)) => return Verdict::Unsound,
            (Piece::Member(name), Some(Ok(read))) => {
                root.insert(name, read.value);
            }
            (Piece::Member(name), Some(Err(error))) => {
                assembly.bad(Mark::Damaged, offset, format!("`{name}`: {error}"));
            }
        }
        Verdict::Sound
    })?;
    match end {
        End::Whole => {}
        End::Empty => assembly.session.damage.mark(Mark::Empty),
        End::Torn(offset) => assembly.bad(Mark::TornTail, offset, "the file ends before what begins here"),
        End::Broken(offset) => assembly.bad(Mark::Damaged, offset, "no JSON: nothing behind this is read"),
    }
    Ok(root)
}

/// Whether of a request that is not whole anything was said is left.
fn says_something(value: &Value) -> bool {
    let message = value.get("message").and_then(|message| message.as_str().or_else(|| message.get("text")?.as_str()));
    let response = value.get("response").and_then(Value::as_array);
    message.is_some_and(|message| !message.is_empty()) || response.is_some_and(|parts| !parts.is_empty())
}

/// Whether a value that was found behind damage is a request.
fn is_request(value: &Value) -> bool {
    ["message", "response"].iter().any(|key| value.get(key).is_some())
}
