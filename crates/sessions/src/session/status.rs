//! The status of a session or chat.

use serde::{Deserialize, Serialize};

/// The status of a session or chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionStatus {
    /// It was created and nothing was sent yet.
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

/// The number that the released protocol uses: the status of a session, and two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusBits {
    /// The status.
    pub status: SessionStatus,
    /// All of it was read.
    pub is_read: bool,
    /// It is archived.
    pub is_archived: bool,
}

impl StatusBits {
    const ERROR: u32 = 2;
    const IN_PROGRESS: u32 = 8;
    /// Needing input includes being in progress: its own bit alone means nothing.
    const INPUT_NEEDED: u32 = Self::IN_PROGRESS | 16;
    const IS_READ: u32 = 32;
    const IS_ARCHIVED: u32 = 64;

    /// Decodes a number. Unknown bits are ignored.
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
