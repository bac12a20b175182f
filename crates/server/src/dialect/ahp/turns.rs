//! Older turns.

use std::sync::Arc;

use grove_core::TurnId;
use grove_host::sequencer::{DirectReply, ReplySink, SubscriptionTarget};
use grove_host::subscriber::Encode;
use grove_host::turns::{self, TurnPage, TurnsError};
use grove_wire::ahp::{self, project};
use grove_wire::jsonrpc::{ErrorObject, Id};
use serde_json::value::RawValue;

use super::{Peer, not_found, shown};
use crate::dialect::answer::{encode, read_params, stopped};
use crate::dialect::history::unavailable;
use crate::dialect::turns::newest;

/// The turns in one answer to `fetchTurns`.
pub const TURNS_AT_ONCE: usize = 50;

impl Peer {
    /// Loads older turns into the client's state before it is answered.
    ///
    /// Other clients have them, or fetch them themselves.
    pub(super) async fn fetch_turns(
        &self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let answer = encode(&id, &ahp::EmptyResult {});
        match self.older_turns(params).await {
            Ok(None) => reply(Encode::Text(answer)),
            Ok(Some((channel, action))) => {
                let frame = move |seq| {
                    let action = RawValue::from_string(action).ok()?;
                    ahp::encode::direct_reply(&channel, &action, seq, None, None).map(Arc::from)
                };
                let answer = Encode::Text(answer);
                let loaded = DirectReply { connection: self.id, frame: Box::new(frame), answer: None, permit: None };
                // A stopping host closes the connection; that is the answer.
                self.host.sequencer().send_with_answer(loaded, (reply, answer)).await.ok();
            }
            Err(error) => return Err((reply, error)),
        }
        Ok(())
    }

    /// The channel and the action that loads the turns before a cursor; `None` if none is older.
    async fn older_turns(&self, params: Option<&RawValue>) -> Result<Option<(String, String)>, ErrorObject> {
        let params: ahp::FetchTurnsParams = read_params(params)?;
        let missing = || not_found(&params.channel);
        let wanted = self.wanted(&params.channel).await.ok_or_else(missing)?;
        if !matches!(wanted, SubscriptionTarget::Chat(_)) {
            return Err(missing());
        }
        let Some(cursor) = &params.cursor else { return Ok(None) };
        // The empty cursor belongs to a client that wanted no turns at first: it gets the last ones.
        let before = Some(TurnId::from(cursor.as_str())).filter(|_| !cursor.is_empty());
        let found = turns::find(&self.host, wanted, before, TURNS_AT_ONCE).await.map_err(|error| match error {
            TurnsError::NoChat => missing(),
            TurnsError::NoTurn(_) => {
                ErrorObject::invalid_params(format!("{} is not a cursor of this chat", shown(cursor)))
            }
            TurnsError::Unreadable(error) => ErrorObject::invalid_params(error.to_string()),
            TurnsError::History(error) => unavailable(&error),
            TurnsError::HostStopped(error) => stopped(error),
        })?;
        let TurnPage { session, turns, older } = found;
        let window =
            newest(&turns, |turn| project::turn_json(&session, turn), self.host.config().limits.snapshot_bytes);
        let first = turns.get(turns.len() - window.len());
        let cursor = first.filter(|_| older || window.len() < turns.len()).map(|turn| turn.id.as_str());
        let cursor = cursor.and_then(|cursor| serde_json::to_string(cursor).ok());
        let cursor = cursor.map(|cursor| format!(r#","turnsNextCursor":{cursor}"#)).unwrap_or_default();
        let action = format!(r#"{{"type":"chat/turnsLoaded","turns":[{}]{cursor}}}"#, window.join(","));
        Ok(Some((params.channel, action)))
    }
}
