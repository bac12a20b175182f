//! A session in the format of VS Code's Copilot Chat: a flat object of version 3, which can also be imported.
//!
//! Every member that the format always has is written, so that programs can rely on them. A member with an unknown
//! value gets the emptiest value of its type. Ids of requests and responses have VS Code's form; they are derived from
//! the session's and the turn's own, so the same session is written the same way each time.

mod call;
mod parts;
mod request;
mod uri;

use std::io::{self, Write};

use grove_core::{Extra, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Heading, TurnWriter};
use crate::normal::{TranscriptSource, TranscriptTurn, TranscriptWorkspace};
use uri::uri_of;

/// The version of the format.
const VERSION: u32 = 3;
/// The responder that VS Code continues with.
const RESPONDER: &str = "GitHub Copilot";

/// Writes a session of Copilot Chat.
#[derive(Debug)]
pub struct CopilotChat<W> {
    out: W,
    export_context: ExportContext,
    turns: usize,
    /// The members after the requests.
    rest: Extra,
}

/// The session's data that each request needs.
#[derive(Clone, Debug)]
struct ExportContext {
    id: String,
    /// The time of turns without one.
    began: Timestamp,
    /// The URIs of the workspace's folders.
    cache_key: String,
    /// The agent's name for display.
    agent: String,
    /// True if raw parts are VS Code's own.
    is_native: bool,
}

impl<W: Write> CopilotChat<W> {
    pub fn begin(mut out: W, heading: Heading<'_>) -> io::Result<Self> {
        let session = heading.session;
        let folders: Vec<Value> = session.workspace.folders.iter().map(uri_of).collect();
        let keys: Vec<&str> = folders.iter().filter_map(|folder| folder.get("external")?.as_str()).collect();
        let began = session.created_at.unwrap_or_default();
        let export_context = ExportContext {
            id: session.source_id.clone(),
            began,
            cache_key: keys.join(","),
            agent: session.agent.clone().unwrap_or_else(|| heading.source.to_owned()),
            is_native: heading.source == TranscriptSource::VsCode.name(),
        };
        let mut rest = json!({
            "sessionId": export_context.id,
            "creationDate": began,
            "lastMessageDate": session.modified_at.unwrap_or(began),
            "isImported": true,
        });
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                rest[name] = value;
            }
        };
        add("customTitle", session.title.as_deref().map(Value::from));
        add("workingDirectory", folders.first().cloned());
        add("repoData", repository(&session.workspace));
        let head = json!({
            "version": VERSION,
            "requesterUsername": "",
            "requesterAvatarIconUri": {"$mid": 1, "path": "", "scheme": "https"},
            "responderUsername": RESPONDER,
            "responderAvatarIconUri": {"id": "copilot"},
            "initialLocation": "panel",
        });
        let head = head.to_string();
        // The requests come one by one, so the object is assembled by hand.
        write!(out, "{},\n\"requests\":[", head.trim_end_matches('}'))?;
        let rest = match rest {
            Value::Object(rest) => rest,
            _ => Extra::new(),
        };
        Ok(Self { out, export_context, turns: 0, rest })
    }
}

impl<W: Write> TurnWriter for CopilotChat<W> {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()> {
        self.out.write_all(if self.turns == 0 { b"\n" } else { b",\n" })?;
        self.turns += 1;
        let request = request::request(turn, self.turns, &self.export_context);
        Ok(serde_json::to_writer(&mut self.out, &request)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n],\n")?;
        let rest = Value::Object(std::mem::take(&mut self.rest)).to_string();
        writeln!(self.out, "{}", rest.trim_start_matches('{'))?;
        self.out.flush()
    }
}

fn repository(workspace: &TranscriptWorkspace) -> Option<Value> {
    let known = [
        ("remoteUrl", &workspace.repository),
        ("localBranch", &workspace.branch),
        ("localHeadCommit", &workspace.commit),
    ];
    let known: Extra =
        known.into_iter().filter_map(|(name, value)| Some((name.into(), value.clone()?.into()))).collect();
    if known.is_empty() {
        return None;
    }
    let mut repository: Extra =
        [("workspaceType".to_owned(), "local-git".into()), ("diffsStatus".to_owned(), "notCaptured".into())]
            .into_iter()
            .collect();
    repository.extend(known);
    Some(Value::Object(repository))
}

/// An id in VS Code's form: the known one, or one derived from its subject.
fn id_of(kind: &str, known: &str, export_context: &ExportContext, what: &str) -> String {
    let head = format!("{kind}_");
    if known.strip_prefix(&head).is_some_and(is_uuid) {
        return known.to_owned();
    }
    let hash = Sha256::digest(format!("{kind}\n{}\n{what}\n{known}", export_context.id));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // Earlier exports have no bit of the hash beside the variant, and the same session keeps its ids.
    bytes[8] &= 0x0f;
    format!("{head}{}", uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn is_uuid(text: &str) -> bool {
    text.parse::<uuid::fmt::Hyphenated>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_right_form_stays_and_any_other_makes_way_for_one_that_follows_from_it() {
        let export_context = ExportContext {
            id: "s".into(),
            began: Timestamp(0),
            cache_key: String::new(),
            agent: "a".into(),
            is_native: false,
        };
        let own = "request_0f1829d1-3b2e-44e8-a246-7896319d11be";
        assert_eq!(id_of("request", own, &export_context, "1"), own);
        let made = id_of("request", "t1", &export_context, "1");
        assert!(made.strip_prefix("request_").is_some_and(is_uuid), "{made}");
        assert_eq!(made, id_of("request", "t1", &export_context, "1"));
        assert_ne!(made, id_of("request", "t1", &export_context, "2"));
    }
}
