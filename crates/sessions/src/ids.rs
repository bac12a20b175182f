//! Ids and names. They are shared strings: ten thousand sessions of one provider store its name once.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

macro_rules! shown {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

grove_core::ids! {
    /// A URI: of a session, a chat, a folder, a repository. Two are equal if they are spelled the same.
    Uri,
    /// An icon, by its name in the theme of the client.
    Icon,
    /// The id of a session type, which names an agent backend. Several providers may have the same.
    SessionTypeId,
    /// The id of a browse action, unique within its provider.
    BrowseActionId,
    /// Text in Markdown.
    Markdown,
}

impl Uri {
    /// The scheme, or empty.
    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// The authority before the path, or empty.
    pub fn authority(&self) -> &str {
        let rest = self.0.split_once(':').map_or("", |(_, rest)| rest);
        let rest = rest.strip_prefix("//").unwrap_or_default();
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    }

    /// The path: the part after scheme and authority, without query and fragment.
    pub fn path(&self) -> &str {
        let rest = self.0.split_once(':').map_or(self.as_str(), |(_, rest)| rest);
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.find('/').map_or("", |start| &rest[start..]),
            None => rest,
        };
        path.split(['?', '#']).next().unwrap_or(path)
    }

    /// The parts of the path that are not empty, percent-decoded.
    pub fn segments(&self) -> Vec<String> {
        let parts = self.path().split('/').filter(|part| !part.is_empty());
        parts.map(|part| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()).collect()
    }

    /// The last part of the path, or empty.
    pub fn basename(&self) -> String {
        self.segments().pop().unwrap_or_default()
    }
}

/// The id of one provider instance, such as `local` or `host-dev-box`. It is not empty and holds no `:`, since that
/// ends it in the ids of its sessions.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProviderId(Arc<str>);

shown!(ProviderId);

impl ProviderId {
    /// Checks a text as an id.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadId> {
        let text = text.as_ref();
        if text.is_empty() || text.contains(':') {
            return Err(BadId::Provider(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of this provider's session with a local id, which must not be empty.
    pub fn session(&self, local: impl AsRef<str>) -> Result<SessionId, BadId> {
        SessionId::parse(format!("{self}:{}", local.as_ref()))
    }
}

impl TryFrom<String> for ProviderId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        Self::new(text)
    }
}

impl From<ProviderId> for String {
    fn from(id: ProviderId) -> Self {
        id.as_str().to_owned()
    }
}

/// The id of a session, unique over all providers: `providerId:localId`, split at the first `:`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId {
    text: Arc<str>,
    /// The offset of the first `:`, so that splitting the id cannot fail.
    colon: usize,
}

shown!(SessionId);

impl SessionId {
    /// Parses an id.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, BadId> {
        let text = text.as_ref();
        match text.find(':') {
            Some(colon) if colon > 0 && colon + 1 < text.len() => Ok(Self { text: text.into(), colon }),
            _ => Err(BadId::Session(text.to_owned())),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The session's provider.
    pub fn provider(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The provider's own id of it.
    pub fn local(&self) -> &str {
        &self.text[self.colon + 1..]
    }
}

impl TryFrom<String> for SessionId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        Self::parse(text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.as_str().to_owned()
    }
}

/// The error for a text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadId {
    /// It cannot identify a provider.
    #[error("{0:?} cannot be the id of a provider: choose one that is not empty and has no ':'")]
    Provider(String),
    /// It cannot identify a session.
    #[error("{0:?} is not a session id: it must have the form provider:id")]
    Session(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_parted_at_its_first_colon() {
        let id = SessionId::parse("host-a:copilot:/1:2").unwrap();
        assert_eq!((id.provider(), id.local()), ("host-a", "copilot:/1:2"));
        assert_eq!(ProviderId::new("host-a").unwrap().session("copilot:/1:2").unwrap(), id);
        for bad in ["", ":", "a", "a:", ":b"] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_provider_id_has_no_colon() {
        assert!(ProviderId::new("a:b").is_err() && ProviderId::new("").is_err());
        assert!(serde_json::from_str::<ProviderId>("\"a:b\"").is_err());
        assert!(serde_json::from_str::<SessionId>("\"ab\"").is_err());
    }

    #[test]
    fn a_uri_gives_its_parts() {
        let uri = Uri::from("file:///home/u/my%20app/?x#y");
        assert_eq!((uri.scheme(), uri.path(), uri.basename().as_str()), ("file", "/home/u/my%20app/", "my app"));
        assert_eq!(Uri::from("unknown:///").basename(), "");
        assert_eq!(Uri::from("copilot:/abc").basename(), "abc");
        assert_eq!((Uri::from("").path(), Uri::from("a//").path()), ("", "a//"));
    }
}
