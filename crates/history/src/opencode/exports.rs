//! The output of `opencode export`: a session, and its messages with their parts, as one object.

use std::collections::{BTreeMap, HashSet};

use grove_transcript::{DamageKind, DamageLocation, TranscriptSession, TranscriptTurn};
use serde_json::{Deserializer, Value};

use super::{MessageSink, MessageStore, StoredMessage, tell};
use crate::error::HistoryError;
use crate::json::JsonMembers;
use crate::limits::MAX_JSON_ITEM;
use crate::reader::{TurnSink, every};

/// Exported sessions, by their ids.
#[derive(Debug, Default)]
struct ExportedSessions(BTreeMap<String, Value>);

/// Reads an export in memory. Others may follow it: sessions of its subagents are found among them. One without an id
/// gets `id`.
pub fn read_exports(
    bytes: &[u8],
    id: &str,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> Result<TranscriptSession, HistoryError> {
    read_until(bytes, id, &mut every(turns))
}

/// The same up to a break of `turns`.
pub(super) fn read_until(bytes: &[u8], id: &str, turns: &mut TurnSink<'_>) -> Result<TranscriptSession, HistoryError> {
    let mut exports = ExportedSessions::default();
    let mut first: Option<String> = None;
    let mut bad = None;
    for export in Deserializer::from_slice(bytes).into_iter::<Value>() {
        match export {
            Ok(export) => {
                let own = export.pointer("/info/id").and_then(Value::as_str).unwrap_or(id).to_owned();
                first.get_or_insert_with(|| own.clone());
                exports.0.entry(own).or_insert(export);
            }
            // The rest is not readable any more.
            Err(error) => {
                let mark = if error.is_eof() { DamageKind::TornTail } else { DamageKind::Damaged };
                bad = Some((mark, DamageLocation { what: error.to_string(), ..DamageLocation::default() }));
                break;
            }
        }
    }
    let mut session = tell(&exports, first.as_deref().unwrap_or(id), 0, &mut HashSet::new(), turns)?;
    if let Some((mark, place)) = bad {
        session.damage.add(mark, place);
    }
    Ok(session)
}

impl MessageStore for ExportedSessions {
    fn session_info(&self, id: &str) -> Result<Option<JsonMembers>, HistoryError> {
        let info = self.0.get(id).and_then(|export| export.get("info"));
        Ok(info.and_then(|info| JsonMembers::of(info.clone()).ok()))
    }

    fn messages(&self, id: &str, each: &mut MessageSink<'_>) -> Result<(), HistoryError> {
        let messages = self.0.get(id).and_then(|export| export.get("messages")).and_then(Value::as_array);
        for (at, message) in messages.into_iter().flatten().enumerate() {
            let own = message.pointer("/info/id").and_then(Value::as_str).filter(|id| !id.is_empty());
            let id = own.map_or_else(|| format!("{id}-{at}"), str::to_owned);
            let info = message.get("info").cloned().map(JsonMembers::of);
            let Some(Ok(info)) = info else {
                let _goes_on = each(Err(format!("message {id}: no object")));
                continue;
            };
            let weight = message.to_string().len();
            if weight > MAX_JSON_ITEM {
                let _goes_on = each(Err(format!("message {id}: more than {MAX_JSON_ITEM} bytes")));
                continue;
            }
            let parts = message.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
            if each(Ok(StoredMessage { id, message: info, parts, weight })).is_break() {
                break;
            }
        }
        Ok(())
    }
}
