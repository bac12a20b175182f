//! What is wrong in a log that can be read all the same.

use serde::Serialize;

/// How many pieces of damage are told one by one. Beyond them they are only counted.
pub const MAX_DAMAGE: usize = 10_000;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The line, counted from 1.
    pub line: u64,
    /// The line's first byte.
    pub offset: u64,
    pub kind: DamageKind,
    /// In words, for a person.
    pub message: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// What is wrong.
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
    /// The file has no bytes: whoever made it did not come to write the header.
    Empty = 0,
    /// The last line ends in the middle: whoever wrote it was cut off.
    TornTail = 1,
    /// The last line is whole, and only its line feed is missing.
    NoFinalNewline = 2,
    /// A line is not JSON.
    BadLine = 3,
    /// A line is JSON but no object, so it is no entry.
    NotAnObject = 4,
    /// An object has no id, so it is no entry.
    NoId = 5,
    /// A line has bytes that are no text. They are read as replacement characters.
    NotText = 6,
    /// A line is longer than any reader takes.
    TooLong = 7,
    /// Another header. The first one counts.
    SecondHeader = 8,
    /// An id was used before. The last entry with it counts.
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
    /// How many more there were.
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
