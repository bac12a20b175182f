//! The record of a conversation that another host needs to continue it: a small file in the shim's folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;
use grove_core::{FrameCursor, TurnId};
use serde::{Deserialize, Serialize};

use super::choices::ReportedSettings;

const FILE: &str = "session.json";
const BESIDE: &str = "session.json.new";
/// A larger file was not written here.
const MOST_BYTES: u64 = 16 << 20;

/// A conversation with an agent's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionRecord {
    /// The id of the process, as in a [`FrameCursor`].
    pub(super) process: u64,
    pub(super) session: acp::SessionId,
    pub(super) capabilities: acp::AgentCapabilities,
    pub(super) said: ReportedSettings,
    pub(super) turn: PromptRecord,
}

/// The last prompt that was sent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptRecord {
    pub(super) turn: TurnId,
    /// The last frame from before the prompt.
    pub(super) frame: u64,
    /// The number of the prompt's line: it was sent if the shim has taken it.
    pub(super) line: u64,
    /// Its outcome, if the agent was ended after it: the host may have stopped before that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<TurnOutcome>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum TurnOutcome {
    Well,
    Failed(String),
}

impl SessionRecord {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads the record in a shim's folder, if there is a readable one.
    pub(super) async fn read(folder: &Path) -> Option<Self> {
        let path = Self::path(folder);
        let read = tokio::task::spawn_blocking(move || {
            if fs::metadata(&path).ok()?.len() > MOST_BYTES {
                return None;
            }
            let session_record: Self = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            if session_record.is_plausible() {
                return Some(session_record);
            }
            tracing::warn!(
                file = %path.display(),
                "it names positions that no agent comes to, and is not used: the turn is not gone on with"
            );
            None
        });
        read.await.ok().flatten()
    }

    fn is_plausible(&self) -> bool {
        [self.process, self.turn.frame, self.turn.line].iter().all(|number| *number <= FrameCursor::MOST)
    }

    /// If it cannot be written, this turn does not outlive the host, which is logged.
    pub(super) async fn write(self, folder: &Path) {
        let folder = folder.to_owned();
        let written = tokio::task::spawn_blocking(move || {
            let beside = folder.join(BESIDE);
            // The settings in it may be confidential.
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.write_all(&serde_json::to_vec(&self)?)?;
            // It need not survive a reboot: the agent's process does not.
            fs::rename(&beside, Self::path(&folder))
        });
        if let Err(error) = written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!(%error, "cannot write an agent's session record: its turn cannot survive a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_read_again_and_nonsense_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SessionRecord::read(folder.path()).await.is_none());
        let session_record = SessionRecord {
            process: 7,
            session: "s".into(),
            capabilities: acp::AgentCapabilities::new().load_session(true),
            said: ReportedSettings::default(),
            turn: PromptRecord { turn: "t".into(), frame: 3, line: 4, ended: None },
        };
        session_record.write(folder.path()).await;
        let path = folder.path().join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let session_record = SessionRecord::read(folder.path()).await.unwrap();
        assert_eq!((session_record.turn.turn, session_record.turn.frame, session_record.turn.line), ("t".into(), 3, 4));
        assert!(session_record.capabilities.load_session && session_record.process == 7);
        let text = fs::read_to_string(&path).unwrap();
        for (name, value) in [("process", "7"), ("frame", "3"), ("line", "4")] {
            for odd in ["18446744073709551615", "9007199254740993", "-1"] {
                let odd = text.replace(&format!(r#""{name}":{value}"#), &format!(r#""{name}":{odd}"#));
                assert_ne!(odd, text);
                fs::write(&path, odd).unwrap();
                assert!(
                    SessionRecord::read(folder.path()).await.is_none(),
                    "{name}: a position that no agent comes to"
                );
            }
        }
        fs::write(&path, "{}").unwrap();
        assert!(SessionRecord::read(folder.path()).await.is_none());
    }
}
