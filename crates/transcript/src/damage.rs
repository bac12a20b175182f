//! Damage of a session's files. Damage is data and never an error: everything readable is read.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_DAMAGE_LOCATIONS;

/// A kind of damage, for the reader of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DamageKind {
    /// The file is cut off: its writer was interrupted, or is still writing.
    TornTail,
    /// An unreadable place in the middle of the file is left out.
    Damaged,
    /// The log lacks its beginning, so the session consists of the rest.
    MissingStart,
    /// The log was unusable, and an older file of the same session was read instead.
    FromOlderFile,
    /// The file is empty.
    Empty,
    /// A value above the memory limits is left out.
    TooLarge,
    /// The format has an unknown version: it is read as far as possible.
    NewerVersion { version: u64 },
}

impl DamageKind {
    /// True if the session is less than its tool once wrote.
    pub fn means_recovered(&self) -> bool {
        match self {
            Self::TornTail
            | Self::Damaged
            | Self::MissingStart
            | Self::FromOlderFile
            | Self::Empty
            | Self::TooLarge => true,
            Self::NewerVersion { .. } => false,
        }
    }
}

/// A place in a session's file that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageLocation {
    /// The offset in bytes.
    pub offset: u64,
    /// The line from 1, if the format has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub what: String,
}

/// All damage of a session, in bounded space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Damage {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<DamageKind>,
    /// The first [`MAX_DAMAGE_LOCATIONS`] places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<DamageLocation>,
    /// The total number of places.
    pub count: u64,
}

impl Damage {
    /// True if the session is less than its tool once wrote.
    pub fn is_recovered(&self) -> bool {
        self.marks.iter().any(DamageKind::means_recovered)
    }

    pub fn mark(&mut self, mark: DamageKind) {
        if !self.marks.contains(&mark) {
            self.marks.push(mark);
        }
    }

    pub fn add(&mut self, mark: DamageKind, place: DamageLocation) {
        self.mark(mark);
        self.count += 1;
        if self.places.len() < MAX_DAMAGE_LOCATIONS {
            self.places.push(place);
        }
    }
}
