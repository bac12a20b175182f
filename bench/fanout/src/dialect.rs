//! The protocols of subscribers, and the session's URI in each.

use serde::{Deserialize, Serialize};

use crate::shape::{self, Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Dialect {
    V1,
    /// AHP 1.0, with URIs that clients compute.
    Ahp,
    /// AHP 0.9, with the protocol's own URIs.
    AhpPlain,
    Opencode,
    Codex,
}

impl Dialect {
    /// The offered version of AHP, for AHP.
    pub(crate) fn ahp_version(self) -> Option<&'static str> {
        match self {
            Self::Ahp => Some("1.0.0"),
            Self::AhpPlain => Some("0.9.0"),
            Self::V1 | Self::Opencode | Self::Codex => None,
        }
    }

    pub(crate) fn session(self) -> &'static str {
        match self {
            Self::AhpPlain => "ahp-session:/bench",
            Self::V1 | Self::Ahp | Self::Opencode | Self::Codex => shape::SESSION,
        }
    }

    /// The channel of a stream's messages: the session, or its main chat.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Self::Ahp => shape::CHAT,
            Self::AhpPlain => "ahp-chat:/bench",
            Self::V1 | Self::Opencode | Self::Codex => shape::SESSION,
        }
    }

    pub(crate) fn words(self) -> Words {
        match self {
            Self::V1 => shape::V1,
            Self::Ahp | Self::AhpPlain => shape::AHP,
            // No model streams behind these, so only the event is sent.
            Self::Opencode => Words { event: Some(r#""type":"session.updated""#), ..shape::V1 },
            Self::Codex => Words { event: Some(r#""thread/name/updated""#), ..shape::V1 },
        }
    }
}
