//! Ids. Each is a type of its own, so that a turn's id cannot be passed for a session's. They are shared strings: an
//! event names its session, chat and turn without copying them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines id types: each is a shared string, serialized as a string.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(::std::sync::Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

ids! {
    /// A session's id: the unique part of its URI, and the name of its folder.
    SessionId,
    /// The URI under which a session was created. Its last segment is the [`SessionId`].
    SessionUri,
    /// One conversation of a session.
    ChatId,
    /// One exchange of a chat.
    TurnId,
    /// A streamed part of a turn.
    PartId,
    /// A tool call of a turn.
    ToolCallId,
    /// A question put to a person: a permission or an input request.
    RequestId,
    /// A question of an input request.
    QuestionId,
    /// A queued or steering message.
    PendingId,
    /// A stored body, by the hash of its bytes.
    ContentId,
    /// A connected program, by the id that it gives itself.
    ClientId,
    /// An agent.
    AgentId,
    /// A model of an agent.
    ModelId,
    /// A store of sessions, by its name in the host's configuration.
    StoreName,
}

impl StoreName {
    /// The store that every host has. It is the default.
    pub const LOCAL: &'static str = "local";

    /// True for the store that every host has.
    pub fn is_local(&self) -> bool {
        self.as_str() == Self::LOCAL
    }
}

impl Default for StoreName {
    fn default() -> Self {
        Self::from(Self::LOCAL)
    }
}

impl SessionUri {
    /// The maximum length of a session's id: it is a folder's name as well.
    pub const MAX_ID_BYTES: usize = 128;
    /// The maximum length of a scheme: every list carries the URI.
    pub const MAX_SCHEME_BYTES: usize = 64;

    /// The scheme of the URI, which names the agent if nothing else does.
    pub fn scheme(&self) -> Option<&str> {
        self.as_str().split_once(":/").map(|(scheme, _)| scheme)
    }

    /// True if the scheme is reserved for channels, contents, files or pages. A session of this URI would hide such a
    /// resource or be confused with it.
    pub fn is_reserved(&self) -> bool {
        let scheme = self.scheme().unwrap_or_default().to_ascii_lowercase();
        scheme.starts_with("ahp-")
            || scheme.starts_with("x-grove")
            || matches!(
                scheme.as_str(),
                "agenthost" | "grove-content" | "file" | "http" | "https" | "ws" | "wss" | "data"
            )
    }

    /// The session's id, if the URI has the form `<scheme>:/<id>` and the id is a valid folder name: letters, digits,
    /// `.`, `_` and `-`, not beginning with a dot.
    pub fn id(&self) -> Option<SessionId> {
        let (scheme, id) = self.as_str().split_once(":/")?;
        let scheme_ok = scheme.len() <= Self::MAX_SCHEME_BYTES
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let id_ok = !id.is_empty()
            && id.len() <= Self::MAX_ID_BYTES
            && !id.starts_with('.')
            && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        (scheme_ok && id_ok).then(|| SessionId::from(id))
    }
}

/// Milliseconds since 1970. Core reads no clock: every time comes in from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The last millisecond of the year 9999. No clock shows a later time.
    pub const LATEST: Self = Self(253_402_300_799_999);

    /// Returns false for a time that no clock shows.
    pub fn is_plausible(self) -> bool {
        self <= Self::LATEST
    }
}

/// A number that is no time at all, such as a negative one, is read as a time that is not plausible: a damaged time must not
/// make everything unreadable that it stands in.
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Milliseconds;

        impl serde::de::Visitor<'_> for Milliseconds {
            type Value = Timestamp;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("milliseconds since 1970")
            }

            fn visit_u64<E>(self, milliseconds: u64) -> Result<Timestamp, E> {
                Ok(Timestamp(milliseconds))
            }

            fn visit_i64<E>(self, milliseconds: i64) -> Result<Timestamp, E> {
                Ok(Timestamp(u64::try_from(milliseconds).unwrap_or(u64::MAX)))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Timestamp, E> {
                Ok(Timestamp(u64::MAX))
            }
        }

        deserializer.deserialize_u64(Milliseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_that_means_something_else_is_no_sessions() {
        for reserved in ["agenthost:/root", "AgentHost:/root", "ahp-session:/s", "ahp-chat:/s", "file:/s", "https:/s"] {
            assert!(SessionUri::from(reserved).is_reserved(), "{reserved}");
        }
        for free in ["copilot:/s", "scripted:/root", "files:/s", "ahp:/s"] {
            assert!(!SessionUri::from(free).is_reserved(), "{free}");
        }
    }

    #[test]
    fn a_number_that_is_no_time_is_read_and_not_plausible() {
        let read = |text: &str| serde_json::from_str::<Timestamp>(text).unwrap();
        for odd in ["-1", "18446744073709551615", "18446744073709551616", "1e300", "9007199254740993", "0.5"] {
            assert!(!read(odd).is_plausible(), "{odd}");
        }
        assert_eq!(read("1700000000000"), Timestamp(1_700_000_000_000));
        assert!(read("253402300799999").is_plausible());
        assert!(serde_json::from_str::<Timestamp>(r#""1""#).is_err());
    }

    #[test]
    fn a_session_id_is_fit_to_name_a_folder() {
        let id = |uri: &str| SessionUri::from(uri).id().map(|id| id.to_string());
        assert_eq!(id(&format!("{}:/s", "a".repeat(64))), Some("s".into()));
        assert_eq!(id(&format!("{}:/s", "a".repeat(65))), None);
        assert_eq!(id("copilot:/0199-a_b.c"), Some("0199-a_b.c".into()));
        for bad in
            ["copilot:/", "copilot:/..", "copilot:/.x", "copilot:/a/b", "copilot:/a b", ":/a", "a", "1x:/a", "c:/é"]
        {
            assert_eq!(id(bad), None, "{bad}");
        }
        assert_eq!(id(&format!("c:/{}", "x".repeat(129))), None);
    }
}
