//! Capturing every frame between the host and its agents in a file, for debugging.
//!
//! Each line is a JSON object: the time (seconds since 1970), the direction (`c->a`, `a->c`), the agent, its session
//! and the message. Secrets are left out.
//!
//! [`FrameFile`] writes the file: a slow disk costs lines of it and nothing else.

mod redact;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use grove_core::{AgentId, SessionId};
use grove_frames::{FrameFile, FrameRecord, Redaction};
use serde::Serialize;
use serde_json::value::RawValue;

/// A file of frames. Clones are the same file.
#[derive(Clone, Debug)]
pub(crate) struct Capture(FrameFile<CapturedFrame>);

#[derive(Debug)]
struct CapturedFrame {
    at: f64,
    direction: CaptureDirection,
    source: Arc<FrameSource>,
    text: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureDirection {
    ToAgent,
    FromAgent,
}

/// The agent and session that frames belong to.
#[derive(Debug)]
struct FrameSource {
    agent: AgentId,
    session: SessionId,
    redaction: Redaction,
}

/// The frames of one agent process on their way into the file.
#[derive(Clone, Debug)]
pub(crate) struct CaptureTap {
    capture: Capture,
    source: Arc<FrameSource>,
}

/// A line of the file.
#[derive(Serialize)]
struct CaptureLine<'a> {
    t: f64,
    dir: &'static str,
    agent: &'a AgentId,
    session: &'a SessionId,
    msg: &'a RawValue,
}

impl Capture {
    /// Appends to a file that only its owner can read: it holds the content of sessions.
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        FrameFile::append_to(path, "agent-capture").map(Self)
    }

    /// Waits until every frame that was recorded before is in the file.
    pub(crate) async fn written(&self) {
        self.0.written().await;
    }

    /// `secrets` are never written, wherever they occur.
    pub(crate) fn tap<'a>(
        &self,
        agent: AgentId,
        session: SessionId,
        secrets: impl IntoIterator<Item = &'a String>,
    ) -> CaptureTap {
        let redaction = Redaction::new(&redact::RULES).without_values(secrets);
        CaptureTap { capture: self.clone(), source: Arc::new(FrameSource { agent, session, redaction }) }
    }
}

impl CaptureTap {
    /// Records a copy of a frame if there is room for it.
    pub(crate) fn record(&self, direction: CaptureDirection, text: &str) {
        let copy = || CapturedFrame { at: now(), direction, source: self.source.clone(), text: text.into() };
        self.capture.0.record(text.len(), copy);
    }
}

fn now() -> f64 {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    millis as f64 / 1_000.0
}

impl FrameRecord for CapturedFrame {
    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn write_dropped(&self, dropped: u64, out: &mut String) {
        out.push_str(&format!("{{\"t\":{},\"dropped\":{dropped}}}\n", self.at));
    }

    fn write_lines(&self, out: &mut String) {
        let dir = match self.direction {
            CaptureDirection::ToAgent => "c->a",
            CaptureDirection::FromAgent => "a->c",
        };
        let FrameSource { agent, session, redaction } = self.source.as_ref();
        let mut msg = String::new();
        if !redaction.redact(&self.text, &mut msg) {
            // Text that is not JSON cannot be searched for secrets.
            msg = format!("{{\"unreadableBytes\":{}}}", self.text.len());
        }
        // Both are JSON; a line that is not would be left out.
        let line = RawValue::from_string(msg)
            .and_then(|msg| serde_json::to_string(&CaptureLine { t: self.at, dir, agent, session, msg: &msg }));
        if let Ok(line) = line {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn frames_are_lines_without_secrets_and_what_has_no_room_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.jsonl");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let capture = Capture::append_to(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let tap = capture.tap("a".into(), "s".into(), [&"hunter2-hunter2".to_owned()]);
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(32 << 20));
        tap.record(CaptureDirection::ToAgent, &large);
        tap.record(CaptureDirection::ToAgent, r#"{"id":1,"params":{"apiKey":"s","said":"it is hunter2-hunter2"}}"#);
        tap.record(CaptureDirection::FromAgent, "no JSON with hunter2-hunter2");
        capture.written().await;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("before\n") && !text.contains("hunter2"), "{text}");
        let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["dropped"], json!(1));
        let params = json!({"apiKey": "[redacted]", "said": "it is [redacted]"});
        assert_eq!(lines[1]["msg"], json!({"id": 1, "params": params}));
        assert_eq!(
            (&lines[1]["dir"], &lines[1]["agent"], &lines[1]["session"]),
            (&"c->a".into(), &"a".into(), &"s".into())
        );
        assert_eq!((&lines[2]["dir"], &lines[2]["msg"]), (&"a->c".into(), &json!({"unreadableBytes": 28})));
    }
}
