//! What a session or chat is doing.

use serde::{Deserialize, Serialize};

/// What a session or chat is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionStatus {
    /// It was made and nothing was sent yet.
    #[default]
    Untitled,
    /// A turn runs.
    InProgress,
    /// A turn waits for a person.
    NeedsInput,
    /// The last turn ended.
    Completed,
    /// The last turn failed.
    Error,
}

/// What the released protocol packs into one number: what a session does, and two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusBits {
    /// What it does.
    pub status: SessionStatus,
    /// Whether all of it was read.
    pub is_read: bool,
    /// Whether it was put away.
    pub is_archived: bool,
}

impl StatusBits {
    const ERROR: u32 = 2;
    const IN_PROGRESS: u32 = 8;
    /// Waiting for input is a kind of being in progress: its own bit alone says nothing.
    const INPUT_NEEDED: u32 = Self::IN_PROGRESS | 16;
    const IS_READ: u32 = 32;
    const IS_ARCHIVED: u32 = 64;

    /// What a number says. Bits that are not known are left alone.
    pub fn from_bits(bits: u32) -> Self {
        let has = |mask: u32| bits & mask == mask;
        let status = if has(Self::INPUT_NEEDED) {
            SessionStatus::NeedsInput
        } else if has(Self::IN_PROGRESS) {
            SessionStatus::InProgress
        } else if has(Self::ERROR) {
            SessionStatus::Error
        } else {
            SessionStatus::Completed
        };
        Self { status, is_read: has(Self::IS_READ), is_archived: has(Self::IS_ARCHIVED) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_bits_are_tested_from_the_most_urgent_down() {
        let cases = [
            (24 | 32, SessionStatus::NeedsInput, true, false),
            (16, SessionStatus::Completed, false, false),
            (2 | 8, SessionStatus::InProgress, false, false),
            (2 | 64, SessionStatus::Error, false, true),
            (1, SessionStatus::Completed, false, false),
            (0, SessionStatus::Completed, false, false),
        ];
        for (bits, status, is_read, is_archived) in cases {
            assert_eq!(StatusBits::from_bits(bits), StatusBits { status, is_read, is_archived }, "{bits}");
        }
    }
}
