//! The envelopes of a followed chat, as they arrive.

use grove_client::{FrameDirection, FrameLog};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::chat_client::any::EnvelopeReceiver;

/// The output of a followed chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// The conversation, for people.
    Shown,
    /// The envelopes, for programs.
    Json,
}

impl OutputFormat {
    pub(crate) fn json(json: bool) -> Self {
        if json { OutputFormat::Json } else { OutputFormat::Shown }
    }
}

/// The frame log and the receiver of envelopes, if they are printed.
pub(crate) fn output(wanted: OutputFormat, of: EnvelopeDialect) -> (Option<FrameLog>, EnvelopeReceiver) {
    match wanted {
        OutputFormat::Shown => (None, None),
        OutputFormat::Json => {
            let (log, arriving) = envelopes(of);
            (Some(log), Some(arriving))
        }
    }
}

/// The dialect of the envelopes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EnvelopeDialect {
    Ahp,
    V1,
}

/// A frame log that passes on received envelopes.
///
/// The thread that reads them prints them, so no more of them queue up than arrive at once.
fn envelopes(of: EnvelopeDialect) -> (FrameLog, mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let log = FrameLog::new(move |direction, frame| {
        if direction == FrameDirection::FromHost {
            for envelope in envelopes_in(frame, of) {
                // The receiver is gone.
                sender.send(envelope.get().to_owned()).ok();
            }
        }
    });
    (log, receiver)
}

/// The envelopes in a frame: one in a notification, any number in a replay. Those of the root channel are left out.
fn envelopes_in(frame: &str, of: EnvelopeDialect) -> Vec<&RawValue> {
    #[derive(Deserialize)]
    struct RawFrame<'a> {
        #[serde(borrow)]
        method: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct ActionParams<'a> {
        #[serde(borrow)]
        envelope: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct ReplayResult<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        actions: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct EnvelopeChannel<'a> {
        #[serde(borrow)]
        channel: std::borrow::Cow<'a, str>,
    }
    let Ok(frame) = serde_json::from_str::<RawFrame<'_>>(frame) else { return Vec::new() };
    let envelopes = match (frame.method.as_deref(), frame.params, frame.result) {
        (Some("action"), Some(params), _) => match of {
            EnvelopeDialect::Ahp => vec![params],
            EnvelopeDialect::V1 => serde_json::from_str::<ActionParams<'_>>(params.get())
                .map(|params| params.envelope)
                .into_iter()
                .collect(),
        },
        (None, None, Some(result)) => match serde_json::from_str::<ReplayResult<'_>>(result.get()) {
            Ok(replay) if replay.kind == "replay" => replay.actions,
            Ok(_) | Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    };
    let is_root = |envelope: &&RawValue| {
        serde_json::from_str::<EnvelopeChannel<'_>>(envelope.get()).is_ok_and(|of| of.channel == grove_wire::ahp::ROOT)
    };
    envelopes.into_iter().filter(|envelope| !is_root(envelope)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(frame: &str, of: EnvelopeDialect) -> Vec<String> {
        envelopes_in(frame, of).into_iter().map(|envelope| envelope.get().to_owned()).collect()
    }

    #[test]
    fn envelopes_are_taken_out_of_frames_as_they_came() {
        let envelope = r#"{"channel":"a:/1",  "serverSeq":1,"x":{}}"#;
        let action = format!(r#"{{"jsonrpc":"2.0","method":"action","params":{envelope}}}"#);
        assert_eq!(found(&action, EnvelopeDialect::Ahp), [envelope]);
        let action = format!(r#"{{"method":"action","params":{{"envelope":{envelope}}}}}"#);
        assert_eq!(found(&action, EnvelopeDialect::V1), [envelope]);
        let replay =
            format!(r#"{{"id":1,"result":{{"type":"replay","actions":[{envelope},{envelope}],"missing":[]}}}}"#);
        assert_eq!(found(&replay, EnvelopeDialect::Ahp), [envelope, envelope]);
        for other in [
            r#"{"id":1,"result":{"type":"snapshot","snapshots":[]}}"#,
            r#"{"method":"root/sessionAdded","params":{}}"#,
            r#"{"method":"action","params":{"channel":"ahp-root://","serverSeq":1}}"#,
            "nonsense",
        ] {
            assert_eq!(found(other, EnvelopeDialect::Ahp), Vec::<String>::new(), "{other}");
        }
    }
}
