//! Records of the journal: one per line, each with a checksum of its own.
//!
//! A line is `<crc32 of the JSON, 8 hex digits> <JSON>\n`, so a line alone shows if it is complete. Each record of a
//! group but the last has `more`.

use std::io;

use grove_core::{ChatId, ClientId, Event, Extra, FrameCursor, SessionId};
use serde::{Deserialize, Serialize};

use super::MAX_SEQ;

/// The client's action that caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionOrigin {
    pub client: ClientId,
    pub client_seq: u64,
    /// Unknown members of the client's action, which are echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// A record, as it is read.
#[expect(clippy::large_enum_variant, reason = "nearly every record is an event, and none is kept")]
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum JournalRecord {
    /// An event.
    Event {
        seq: u64,
        origin: Option<ActionOrigin>,
        event: Event,
        #[serde(default)]
        more: bool,
    },
    /// The cursor of a chat's agent: its frames up to here are processed.
    #[serde(rename = "mark")]
    FrameCursor {
        session: SessionId,
        chat: ChatId,
        mark: FrameCursor,
        #[serde(default)]
        more: bool,
    },
    /// Sequence numbers up to here may be in use, for events without a record: those of sessions that clients store.
    /// Earlier versions also reserved numbers for refusals.
    Reserved(u64),
    /// A client's id, the version that it speaks, and its token.
    Client {
        id: ClientId,
        #[serde(flatten)]
        profile: ClientProfile,
    },
    /// A host started: sequence numbers above `from` and below `to` were never used.
    Jump { from: u64, to: u64 },
    /// The start of a segment, with the length of the one before it, so that a missing end is noticed.
    Segment { after: Option<SegmentEnd> },
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEnd {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
}

/// A record, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum JournalRecordRef<'a> {
    Event {
        seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<&'a ActionOrigin>,
        event: &'a Event,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
    #[serde(rename = "mark")]
    FrameCursor {
        session: &'a SessionId,
        chat: &'a ChatId,
        mark: &'a FrameCursor,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
    Reserved(u64),
    Client {
        id: &'a ClientId,
        #[serde(flatten)]
        profile: &'a ClientProfile,
    },
    Jump {
        from: u64,
        to: u64,
    },
    Segment {
        after: Option<SegmentEnd>,
    },
}

/// The data of a client that a journal keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProfile {
    pub version: ClientVersion,
    /// The public id of the named token that the client's id belongs to; none for the owner of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// The version that a client speaks: a number in the first dialect, a name in the second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClientVersion {
    V1(u32),
    Ahp(String),
}

/// The length of the checksum and the space after it.
const HEAD: usize = 9;

impl JournalRecordRef<'_> {
    /// Appends the record's line to a batch.
    pub(crate) fn write(&self, batch: &mut Vec<u8>) -> io::Result<()> {
        let start = batch.len();
        batch.extend_from_slice(b"00000000 ");
        if let Err(error) = serde_json::to_writer(&mut *batch, self) {
            batch.truncate(start);
            return Err(io::Error::other(error));
        }
        let checksum = format!("{:08x}", crc32fast::hash(&batch[start + HEAD..]));
        batch[start..start + HEAD - 1].copy_from_slice(checksum.as_bytes());
        batch.push(b'\n');
        Ok(())
    }
}

/// The reason why a line is not a record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRecord {
    #[error("it is cut off")]
    Short,
    #[error("its checksum does not match")]
    Checksum,
    #[error("it cannot be parsed: {0}")]
    Unknown(#[from] serde_json::Error),
    #[error("its sequence number {0} is too large to be valid")]
    Number(u64),
    #[error(
        "it says that the agent of chat {chat} of session {session} was heard up to a frame that no agent comes to"
    )]
    FrameCursor { session: SessionId, chat: ChatId },
}

impl JournalRecord {
    /// Says whether the next record belongs to the same group.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            JournalRecord::Event { more, .. } | JournalRecord::FrameCursor { more, .. } => *more,
            JournalRecord::Reserved(_)
            | JournalRecord::Client { .. }
            | JournalRecord::Jump { .. }
            | JournalRecord::Segment { .. } => false,
        }
    }

    /// The highest sequence number in it.
    fn number(&self) -> u64 {
        match self {
            JournalRecord::Event { seq, .. } => *seq,
            JournalRecord::Reserved(upto) => *upto,
            JournalRecord::Jump { from, to } => *from.max(to),
            JournalRecord::FrameCursor { .. } | JournalRecord::Client { .. } | JournalRecord::Segment { .. } => 0,
        }
    }

    /// Reads a line, without its newline.
    pub(crate) fn read(line: &[u8]) -> Result<Self, BadRecord> {
        let Some((head, json)) = line.split_at_checked(HEAD) else { return Err(BadRecord::Short) };
        let expected = std::str::from_utf8(&head[..HEAD - 1]).ok().and_then(|text| u32::from_str_radix(text, 16).ok());
        if expected != Some(crc32fast::hash(json)) || head[HEAD - 1] != b' ' {
            return Err(BadRecord::Checksum);
        }
        let record: Self = serde_json::from_slice(json)?;
        match record {
            JournalRecord::FrameCursor { session, chat, mark, .. } if !mark.is_plausible() => {
                Err(BadRecord::FrameCursor { session, chat })
            }
            record if record.number() > MAX_SEQ => Err(BadRecord::Number(record.number())),
            record => Ok(record),
        }
    }
}
