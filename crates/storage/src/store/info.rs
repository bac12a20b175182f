//! Entries about a fork: one of Grove's own in the new log, and one in its source's.

use grove_core::{ChatOrigin, LogScope, SessionId};
use grove_fs::copy::CopyReport;
use grove_tree::entries::{self, Stamp};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The files that are named; of more, the first.
const MAX_NAMED_FILES: usize = 100;

/// The id of such an entry. It is derived from the new session's, so that a retry after a crash adds it once.
pub fn id_of(direction: &str, fork: &SessionId) -> String {
    hex::encode(&Sha256::digest(format!("fork {direction} {fork}"))[..4])
}

/// The line in the new session's log. `copied` is the result of copying the artifacts.
pub(crate) fn forked_from(stamp: Stamp<'_>, origin: &ChatOrigin, copied: &Result<CopyReport, String>) -> Vec<u8> {
    let mut data = json!({
        "infoType": "fork",
        "message": format!("Forked from {}.", origin.session),
        "from": {"session": origin.session, "chat": origin.chat},
    });
    if origin.log.extent == LogScope::Branch {
        data["from"]["until"] = json!(origin.log.leaf);
    }
    match copied {
        Ok(copied) => {
            for (name, files) in [("leftOut", &copied.left_out), ("asOfNow", &copied.as_of_now)] {
                if !files.is_empty() {
                    data[name] = json!(files.iter().take(MAX_NAMED_FILES).collect::<Vec<_>>());
                }
            }
        }
        Err(error) => data["notCopied"] = json!(error),
    }
    entries::info(stamp, &data)
}

/// The line in the source's log.
pub fn forked_into(stamp: Stamp<'_>, fork: &SessionId, title: &str, origin: &ChatOrigin) -> Vec<u8> {
    let mut into = json!({"session": fork, "title": title});
    if let (Some(until), LogScope::Branch) = (&origin.log.leaf, origin.log.extent) {
        into["until"] = json!(until);
    }
    let message = format!("Forked this session into {title:?} ({fork}).");
    entries::info(stamp, &json!({"infoType": "fork", "message": message, "into": into}))
}

/// The fork's title according to a line of its source's log.
pub fn title_of(line: &[u8]) -> Option<String> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    line.pointer("/data/into/title")?.as_str().map(str::to_owned)
}
