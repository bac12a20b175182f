//! Versions: how they are written, which of them a connection agrees on, and what came with which.
//!
//! # From 0.9.0 to 1.0.0
//!
//! No field was renamed and nothing was taken away, so the same types serve both.
//!
//! | came | what |
//! |---|---|
//! | with 0.10.0, released as 1.0.0 | `chat/canvasesChanged`, `canvas/stateChanged`, `ChatState.canvases` |
//! | after 0.9.0 was out, counted to it | `session/chatsReordered` |
//! | – | `session/mcpServerBackgroundRequested`, with `blocking` of a server that starts |
//! | – | `chat/isReadChanged`, `chat/isArchivedChanged`, with `SessionChatSummary.status` |
//! | – | `chat/changesetsChanged`, with `ChatState.changesets` |
//! | – | `chat/backgroundWorkSet`, `chat/backgroundWorkRemoved`, with `ChatState.backgroundWork` |
//! | – | `chat/movableChanged`, with `movable` of chats, and the command `moveChat` |
//! | – | `SessionSummary.chats` and `.defaultChat`, `changes` of chats |
//! | – | `AuthenticateParams.expiresIn` |
//!
//! "Counted to it" is what the protocol's own list says: these joined in September and October 2026, while the list
//! still stood at 0.9.0. So a client of the first 0.9.0 may meet an action that it does not know, which it must ignore;
//! to hold such an action back would leave a newer 0.9 client waiting for the echo of what it dispatched. There is no
//! new notification.
//!
//! The renames that older notes speak of came *with* 0.9.0: lifecycle `failed` (was `creationFailed`), an annotation's
//! `origin`, a terminal's `lifecycle`, the `chat` of a terminal's session claim, errors as response parts.
//!
//! After 1.0 (1.1.0, not spoken here except for the second shape of `reconnect`): `channel/frame`, `channel/credit`,
//! `channel/ready`, `channel/reset`, `channel/snapshot`, `tcp/data`, `tcp/eof`, and a list of steering messages.

use std::fmt;
use std::str::FromStr;

/// A version of the protocol: three numbers, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
}

impl Version {
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch }
    }

    /// Whether this lies in the caret range that begins at `base`: not older, and the same up to the first number that
    /// is not zero.
    pub fn is_compatible_with(self, base: Version) -> bool {
        let same = match (base.major, base.minor) {
            (0, 0) => self == base,
            (0, minor) => (self.major, self.minor) == (0, minor),
            (major, _) => self.major == major,
        };
        same && self >= base
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version: it must be MAJOR.MINOR.PATCH")]
pub struct MalformedVersion(pub String);

impl FromStr for Version {
    type Err = MalformedVersion;

    /// Reads strictly: no sign, no leading zero, nothing after the third number. So what is read is written back as it
    /// came, which an answer to `initialize` relies on.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            if plain { part.parse().ok() } else { None }
        };
        let mut parts = text.split('.').map(number);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => Ok(Version::new(major, minor, patch)),
            _ => Err(MalformedVersion(text.to_owned())),
        }
    }
}

/// The newest version whose shapes these are.
pub const CURRENT: Version = Version::new(1, 0, 0);
/// The oldest version that is served.
pub const OLDEST: Version = Version::new(0, 9, 0);
/// Where the caret ranges begin that a host of this build serves, the preferred one first.
pub const SUPPORTED: [Version; 2] = [CURRENT, OLDEST];

/// The ranges that are served, as `data.supportedVersions` of a refusal names them.
pub fn supported_ranges() -> Vec<String> {
    SUPPORTED.iter().map(|base| format!("^{base}")).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    #[error(transparent)]
    Malformed(#[from] MalformedVersion),
    #[error("none of the offered versions is served; served are {}", supported_ranges().join(" and "))]
    Unsupported,
}

/// The version that a connection speaks: the highest offered one that is served. Its text is the text that was offered.
pub fn negotiate<S: AsRef<str>>(offered: &[S]) -> Result<Version, NegotiationError> {
    let offered = offered.iter().map(|text| text.as_ref().parse()).collect::<Result<Vec<Version>, _>>()?;
    offered
        .into_iter()
        .filter(|version| SUPPORTED.iter().any(|base| version.is_compatible_with(*base)))
        .max()
        .ok_or(NegotiationError::Unsupported)
}

/// What came after the oldest version that is served. Version 0.10.0 was never released under that number.
const LATER: &[(&str, Version)] =
    &[("chat/canvasesChanged", Version::new(0, 10, 0)), ("canvas/stateChanged", Version::new(0, 10, 0))];

/// The version that brought an action type or a notification. Everything that is as old as [`OLDEST`] counts to it.
pub fn introduced_in(name: &str) -> Version {
    LATER.iter().find(|(later, _)| *later == name).map_or(OLDEST, |(_, version)| *version)
}

/// Whether a connection that speaks `version` knows an action type or a notification. A host sends it nothing else.
pub fn knows(version: Version, name: &str) -> bool {
    introduced_in(name) <= version
}
