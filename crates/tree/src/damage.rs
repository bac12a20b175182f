//! Damage in a log that can still be read.

use serde::Serialize;

/// The maximum number of listed damages. Further ones are only counted.
pub const MAX_DAMAGE: usize = 10_000;

/// A damaged place in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The line, counted from 1.
    pub line: u64,
    /// The offset of the line's first byte.
    pub offset: u64,
    pub kind: DamageKind,
    /// A description for a person.
    pub message: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// The kind of damage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "camelCase")]
        #[repr(u8)]
        pub enum DamageKind {
            $($(#[$doc])* $name = $number),*
        }

        impl DamageKind {
            pub(crate) fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(DamageKind::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// The file is empty: its writer stopped before writing the header.
    Empty = 0,
    /// The last line is incomplete: its writer was interrupted.
    TornTail = 1,
    /// The last line is complete, except for its line feed.
    NoFinalNewline = 2,
    /// A line is not JSON.
    BadLine = 3,
    /// A line is JSON but not an object, so it is not an entry.
    NotAnObject = 4,
    /// An object has no id, so it is not an entry.
    NoId = 5,
    /// A line has invalid UTF-8. It is read as replacement characters.
    NotText = 6,
    /// A line is longer than any reader accepts.
    TooLong = 7,
    /// Another header. The first one counts.
    SecondHeader = 8,
    /// An id is used twice. The last entry with it counts.
    DuplicateId = 9,
    /// The parent is not in the file. The entry is a root.
    Orphan = 10,
    /// The entry is its own parent. It is a root.
    SelfParent = 11,
    /// The entry is its own ancestor.
    Cycle = 12,
    /// A leaf mark names an entry that is not in the file. The last entry is the leaf.
    UnknownLeaf = 13,
}

/// A bounded list of damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DamageList {
    pub(crate) listed: Vec<Damage>,
    /// The number of unlisted ones.
    pub(crate) unlisted: u64,
}

impl DamageList {
    pub(crate) fn add(&mut self, line: u64, offset: u64, kind: DamageKind, message: impl FnOnce() -> String) {
        if self.listed.len() < MAX_DAMAGE {
            self.listed.push(Damage { line, offset, kind, message: message() });
        } else {
            self.unlisted += 1;
        }
    }
}
