//! Actions with an invalid `clientSeq`, in both dialects.
//!
//! They are refused with the number that they came with, so that the client recognises its action.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::jsonrpc;

/// An action with a `clientSeq` that is negative, a fraction, or too large.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvalidSeqAction {
    /// The channel of the action; version 1 has none.
    #[serde(default)]
    channel: Option<String>,
    client_seq: Number,
    action: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectionEnvelope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    action: &'a RawValue,
    server_seq: u64,
    origin: RejectedOrigin<'a>,
    rejection_reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedOrigin<'a> {
    client_id: &'a str,
    client_seq: &'a Number,
}

impl InvalidSeqAction {
    /// Reads the params of a `dispatchAction` that could not be read otherwise. `None` if its number is not the reason,
    /// or is not a number at all: then the client would not recognise a refusal.
    pub fn read(params: &RawValue) -> Option<Self> {
        let action: Self = serde_json::from_str(params.get()).ok()?;
        (!action.client_seq.is_u64()).then_some(action)
    }

    /// True if the params of a `dispatchAction` have an action, and a `clientSeq` that is not a number.
    pub fn has_no_seq(params: &RawValue) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawParams {
            #[serde(default)]
            client_seq: serde_json::Value,
            action: Option<serde::de::IgnoredAny>,
        }
        let params = serde_json::from_str::<RawParams>(params.get());
        params.is_ok_and(|params| params.action.is_some() && !params.client_seq.is_number())
    }

    /// The refusal's frame, for its sender alone.
    pub fn refusal(&self, client_id: &str, server_seq: u64) -> Option<String> {
        jsonrpc::notification("action", &self.envelope(client_id, server_seq)).ok()
    }

    /// The same in version 1, which wraps the envelope.
    pub fn refusal_v1(&self, client_id: &str, server_seq: u64) -> Option<String> {
        #[derive(Serialize)]
        struct RawParams<'a> {
            envelope: RejectionEnvelope<'a>,
        }
        let envelope = RejectionEnvelope { channel: None, ..self.envelope(client_id, server_seq) };
        jsonrpc::notification("action", &RawParams { envelope }).ok()
    }

    fn envelope<'a>(&'a self, client_id: &'a str, server_seq: u64) -> RejectionEnvelope<'a> {
        RejectionEnvelope {
            channel: self.channel.as_deref(),
            action: &self.action,
            server_seq,
            origin: RejectedOrigin { client_id, client_seq: &self.client_seq },
            rejection_reason: format!(
                "`clientSeq` must be a whole number from 0 to {}, and {} is not: number the actions from 1 on",
                u64::MAX,
                self.client_seq
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    #[test]
    fn an_action_is_refused_under_the_number_that_it_came_with() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for number in ["-1", "1.5", "1e300"] {
            let params = raw(&format!(r#"{{"clientSeq":{number},"action":{{"type":"x",  "n":1}}}}"#));
            let action = InvalidSeqAction::read(&params).unwrap();
            let frame = action.refusal("c", 7).unwrap();
            let refusal: serde_json::Value = serde_json::from_str(&frame).unwrap();
            let sent: serde_json::Value = serde_json::from_str(number).unwrap();
            assert_eq!(refusal["params"]["origin"]["clientSeq"], sent);
            assert_eq!(refusal["params"]["serverSeq"], 7);
            assert!(frame.contains(r#"{"type":"x",  "n":1}"#), "{frame}");
            let wrapped: serde_json::Value = serde_json::from_str(&action.refusal_v1("c", 7).unwrap()).unwrap();
            assert_eq!(wrapped["params"], serde_json::json!({"envelope": refusal["params"]}));
        }
        assert!(InvalidSeqAction::has_no_seq(&raw(r#"{"clientSeq":"1","action":{}}"#)));
        assert!(InvalidSeqAction::has_no_seq(&raw(r#"{"action":{}}"#)));
        assert!(!InvalidSeqAction::has_no_seq(&raw(r#"{"clientSeq":1,"action":{}}"#)));
        assert!(!InvalidSeqAction::has_no_seq(&raw(r#"{"clientSeq":"1"}"#)));
        for other in [r#"{"clientSeq":1,"action":{}}"#, r#"{"clientSeq":"1","action":{}}"#, r#"{"clientSeq":-1}"#] {
            assert!(InvalidSeqAction::read(&raw(other)).is_none(), "{other}");
        }
    }
}
