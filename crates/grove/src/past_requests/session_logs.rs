//! Answered requests in the logs of Grove's sessions: every branch of every chat of every session of a store.

use std::path::{Path, PathBuf};

use grove_agents::call_subject;
use grove_core::{
    CancelReason, Confirmation, ConfirmationReason, POLICY_RULE, Part, Timestamp, ToolCall, ToolCallStatus,
};
use grove_policy::replay::Answer;
use serde_json::Value;

use super::{FoundRequest, PastRequests, RequestRecord, SameBy};

/// The name of these records.
const SOURCE: &str = "grove";
/// The largest log that is read.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// Collects the requests of the sessions in a store's folder, the newest session first.
pub(super) fn collect(store: &Path, since: Timestamp, past: &mut PastRequests<'_>) {
    let folders = std::fs::read_dir(store).into_iter().flatten().flatten();
    let mut sessions: Vec<(u64, PathBuf, Value)> = folders
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("session.json")).ok()?;
            let session: Value = serde_json::from_str(&text).ok()?;
            let modified = session.get("modifiedAt")?.as_u64()?;
            (modified >= since.0).then(|| (modified, entry.path(), session))
        })
        .collect();
    sessions.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    for (_, folder, session) in sessions {
        if past.is_full() {
            return;
        }
        let text = |name: &str| session.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let uri = session.get("workingDirectories").and_then(|folders| folders.get(0)?.as_str());
        let directory = uri.and_then(|uri| grove_work::local_path(uri).ok());
        let session = LoggedSession {
            id: text("id"),
            agent: text("provider"),
            directory: directory.map(|path| path.to_string_lossy().into_owned()),
            since,
        };
        let chats = std::fs::read_dir(folder.join("chats")).into_iter().flatten().flatten();
        let folders = std::iter::once(folder).chain(chats.map(|chat| chat.path()));
        folders.for_each(|folder| session.collect(&folder.join("events.jsonl"), past));
    }
}

/// A session, as far as its requests need it.
struct LoggedSession {
    id: String,
    agent: String,
    directory: Option<String>,
    since: Timestamp,
}

impl LoggedSession {
    /// Collects the requests of one chat.
    fn collect(&self, log: &Path, past: &mut PastRequests<'_>) {
        if std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
            return;
        }
        let Ok(bytes) = std::fs::read(log) else { return };
        let mut next = 0;
        let mut new_id = || {
            next += 1;
            format!("{next:08x}")
        };
        let Ok(log) = grove_tree::open(bytes, &mut new_id) else { return };
        for turn in grove_tree::turns::turns_of_all_branches(&log).iter().filter(|turn| turn.started_at >= self.since) {
            for part in &turn.parts {
                let Part::ToolCall(call) = part else { continue };
                let Some(answer) = person_answer(call) else { continue };
                let found = FoundRequest {
                    agent: self.agent.clone(),
                    call: call.id.to_string(),
                    action: call_subject(&self.agent, call, None, self.directory.as_deref()),
                    directory: self.directory.clone(),
                    answer,
                    record: RequestRecord { source: SOURCE, session: self.id.clone(), at: turn.started_at },
                };
                past.add(found, SameBy::Time);
            }
        }
    }
}

/// The answer that a person gave to a call's permission request. An answer by a rule is none.
fn person_answer(call: &ToolCall) -> Option<Answer> {
    match (&call.status, &call.confirmed) {
        (ToolCallStatus::Cancelled(cancellation), _) if cancellation.reason == CancelReason::Denied => {
            let is_by_rule = cancellation.extra.as_ref().is_some_and(|extra| extra.contains_key(POLICY_RULE));
            (!is_by_rule).then_some(Answer::Denied)
        }
        (_, Some(Confirmation { by: ConfirmationReason::Person, .. })) => Some(Answer::Approved),
        _ => None,
    }
}
