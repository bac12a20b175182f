//! Protocol versions: format, negotiation, and the additions of each.
//!
//! # From 0.9.0 to 1.0.0
//!
//! No field was renamed or removed, so the same types serve both.
//!
//! | came | what |
//! |---|---|
//! | with 0.10.0, released as 1.0.0 | `chat/canvasesChanged`, `canvas/stateChanged`, `ChatState.canvases` |
//! | after 0.9.0 was released, counted to it | `session/chatsReordered` |
//! | – | `session/mcpServerBackgroundRequested`, with `blocking` of a starting server |
//! | – | `chat/isReadChanged`, `chat/isArchivedChanged`, with `SessionChatSummary.status` |
//! | – | `chat/changesetsChanged`, with `ChatState.changesets` |
//! | – | `chat/backgroundWorkSet`, `chat/backgroundWorkRemoved`, with `ChatState.backgroundWork` |
//! | – | `chat/movableChanged`, with `movable` of chats, and the command `moveChat` |
//! | – | `SessionSummary.chats` and `.defaultChat`, `changes` of chats |
//! | – | `AuthenticateParams.expiresIn` |
//!
//! "Counted to it" follows the protocol's own list: these were added in September and October 2026, while the list
//! still stood at 0.9.0. So a client of the first 0.9.0 may get an unknown action, which it must ignore; without that
//! action, a newer 0.9 client would wait for the echo of its own. There is no new notification.
//!
//! The renames in older notes came *with* 0.9.0: lifecycle `failed` (was `creationFailed`), an annotation's `origin`, a
//! terminal's `lifecycle`, the `chat` of a terminal's session claim, errors as response parts.
//!
//! After 1.0 (1.1.0, not supported except for the second form of `reconnect`): `channel/frame`, `channel/credit`,
//! `channel/ready`, `channel/reset`, `channel/snapshot`, `tcp/data`, `tcp/eof`, and a list of steering messages.

use std::fmt;
use std::str::FromStr;

/// A version of the protocol: three numbers.
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

    /// True if this is in the caret range of `base`: not older, and equal up to the first number that is not zero.
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
#[error("{0:?} is not a version: it must be MAJOR.MINOR.PATCH")]
pub struct MalformedVersion(pub String);

impl FromStr for Version {
    type Err = MalformedVersion;

    /// Reads strictly: no sign, no leading zero, nothing after the third number. So a version is written back as it was
    /// read, which the result of `initialize` relies on.
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

/// The newest version that these types describe.
pub const CURRENT: Version = Version::new(1, 0, 0);
/// The oldest supported version.
pub const OLDEST: Version = Version::new(0, 9, 0);
/// The starts of the supported caret ranges, the preferred one first.
pub const SUPPORTED: [Version; 2] = [CURRENT, OLDEST];

/// The supported ranges, for `data.supportedVersions` of a refusal.
pub fn supported_ranges() -> Vec<String> {
    SUPPORTED.iter().map(|base| format!("^{base}")).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    #[error(transparent)]
    Malformed(#[from] MalformedVersion),
    #[error("none of the offered versions is supported; supported are {}", supported_ranges().join(" and "))]
    Unsupported,
}

/// The version of a connection: the highest offered one that is supported, in the client's spelling.
pub fn negotiate<S: AsRef<str>>(offered: &[S]) -> Result<Version, NegotiationError> {
    let offered = offered.iter().map(|text| text.as_ref().parse()).collect::<Result<Vec<Version>, _>>()?;
    offered
        .into_iter()
        .filter(|version| SUPPORTED.iter().any(|base| version.is_compatible_with(*base)))
        .max()
        .ok_or(NegotiationError::Unsupported)
}

/// Additions after the oldest supported version. Version 0.10.0 was never released under that number.
const LATER: &[(&str, Version)] =
    &[("chat/canvasesChanged", Version::new(0, 10, 0)), ("canvas/stateChanged", Version::new(0, 10, 0))];

/// The version that introduced an action type or a notification; [`OLDEST`] for older ones.
pub fn introduced_in(name: &str) -> Version {
    LATER.iter().find(|(later, _)| *later == name).map_or(OLDEST, |(_, version)| *version)
}

/// True if `version` has an action type or a notification. A host sends nothing else.
pub fn knows(version: Version, name: &str) -> bool {
    introduced_in(name) <= version
}
