//! What is wrong with a session's files. Damage is data and never an error: whatever can be read is read.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_DAMAGE_LOCATIONS;

/// What a person should know of how a session was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DamageKind {
    /// The file ends in the middle of something: its writer was cut off, or is still writing.
    TornTail,
    /// Something in the middle of the file was not readable and is left out.
    Damaged,
    /// The log lacks its beginning, so the session is put together from what came after it.
    MissingStart,
    /// The log was of no use, and an older file of the same session took its place.
    FromOlderFile,
    /// The file is empty.
    Empty,
    /// Something was larger than what is held in memory, and is left out.
    TooLarge,
    /// The format has a version that is not known here: it is read as far as it is understood.
    NewerVersion { version: u64 },
}

impl DamageKind {
    /// Whether the session is less than what its tool once wrote.
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
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its line, where the format has lines, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub what: String,
}

/// All that is wrong with a session, in bounded space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Damage {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<DamageKind>,
    /// The first [`MAX_DAMAGE_LOCATIONS`] of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<DamageLocation>,
    /// How many there are in all.
    pub count: u64,
}

impl Damage {
    /// Whether the session is less than what its tool once wrote.
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
