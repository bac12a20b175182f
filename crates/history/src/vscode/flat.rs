//! Flat files: a session, or an export of one, as a single JSON object. Its requests are read one by one, so that
//! memory depends on the largest of them and damage affects only one.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use grove_core::Extra;
use grove_transcript::DamageKind;
use serde_json::Value;

use super::request_ranges::RequestRangeRecorder;
use super::session::SessionBuilder;
use crate::json::stream::{ItemVerdict, StreamEnd, StreamItem, stream_damaged_object};
use crate::json::{fragment, lenient};
use crate::limits::MAX_JSON_ITEM;
use crate::reader::TurnSink;
use crate::tail_index::{ByteRange, RequestOrigin};

/// The first key of a request, as VS Code writes them. After damage the next request is found by it.
const FIRST_KEY: &str = "requestId";

/// Reads a flat file up to a break: turns go to `turns`, the members beside the requests are returned.
pub(crate) fn read(
    source: impl BufRead,
    assembly: &mut SessionBuilder,
    request_ranges: &mut RequestRangeRecorder,
    turns: &mut TurnSink<'_>,
) -> io::Result<Extra> {
    let mut root = Extra::new();
    let mut flow = ControlFlow::Continue(());
    let end = stream_damaged_object(source, "requests", FIRST_KEY, MAX_JSON_ITEM, |piece, offset, bytes| {
        // A damaged request cannot end the stream, so others may follow a break.
        if flow.is_break() {
            return ItemVerdict::Last;
        }
        let read = bytes.map(lenient::read::<Value>);
        if let Some(Ok(read)) = &read
            && read.has_bad_bytes
        {
            assembly.bad(DamageKind::Damaged, offset, "invalid UTF-8");
        }
        let mut tell = |assembly: &mut SessionBuilder, value: Value| {
            let number = assembly.session.turns as usize;
            let turn = assembly.turn(value);
            let length = bytes.map_or(0, <[u8]>::len) as u64;
            request_ranges.add(RequestOrigin::Value(ByteRange { at: offset, length }));
            request_ranges.turn(number, &turn);
            flow = turns(turn);
            if flow.is_break() { ItemVerdict::Last } else { ItemVerdict::Sound }
        };
        match (piece, read) {
            (StreamItem::Fragment { is_last }, _) => {
                if !is_last {
                    assembly.bad(DamageKind::Damaged, offset, "not JSON: the requests after it are read");
                }
                if let Some(request) = bytes.and_then(fragment::value_of).filter(says_something) {
                    return tell(assembly, request);
                }
            }
            (_, None) => {
                assembly.bad(DamageKind::TooLarge, offset, format!("more than {MAX_JSON_ITEM} bytes in one piece"));
            }
            (StreamItem::Item, Some(Ok(read))) => return tell(assembly, read.value),
            (StreamItem::Resumed, Some(Ok(read))) if is_request(&read.value) => return tell(assembly, read.value),
            (StreamItem::Item | StreamItem::Resumed, Some(_)) => return ItemVerdict::Unsound,
            (StreamItem::Member(name), Some(Ok(read))) => {
                root.insert(name, read.value);
            }
            (StreamItem::Member(name), Some(Err(error))) => {
                assembly.bad(DamageKind::Damaged, offset, format!("`{name}`: {error}"));
            }
        }
        ItemVerdict::Sound
    })?;
    match end {
        StreamEnd::Whole | StreamEnd::Stopped => {}
        StreamEnd::Empty => assembly.session.damage.mark(DamageKind::Empty),
        StreamEnd::Torn(offset) => assembly.bad(DamageKind::TornTail, offset, "the file ends in the middle of a value"),
        StreamEnd::Broken(offset) => assembly.bad(DamageKind::Damaged, offset, "not JSON: nothing after this is read"),
    }
    Ok(root)
}

/// True if any text of an incomplete request is left.
fn says_something(value: &Value) -> bool {
    let message = value.get("message").and_then(|message| message.as_str().or_else(|| message.get("text")?.as_str()));
    let response = value.get("response").and_then(Value::as_array);
    message.is_some_and(|message| !message.is_empty()) || response.is_some_and(|parts| !parts.is_empty())
}

/// True if a value found after damage is a request.
fn is_request(value: &Value) -> bool {
    ["message", "response"].iter().any(|key| value.get(key).is_some())
}
