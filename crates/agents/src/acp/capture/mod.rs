//! Capturing every frame between the host and its agents in a file, for debugging.
//!
//! Each line is a JSON object: the time (seconds since 1970), the direction (`c->a`, `a->c`), the agent, its session
//! and the message. Secrets are left out.
//!
//! A connection only puts a copy into a bounded channel, and a separate thread writes the file. A slow disk therefore
//! costs lines of this file and nothing else; a line in their place says how many are missing.

mod redact;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use grove_core::{ProviderId, SessionId};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use self::redact::{Secrets, redact};

/// The number of frames that may wait to be written; more are counted and left out.
const FRAMES: usize = 8_192;
/// The bytes of frames that may wait, likewise.
const BYTES: usize = 32 << 20;

/// A file of frames. Clones are the same file.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    entries: mpsc::Sender<CaptureEntry>,
    backlog: Arc<CaptureBacklog>,
}

#[derive(Debug, Default)]
struct CaptureBacklog {
    bytes: AtomicUsize,
    /// Frames left out since the last line that reported them.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum CaptureEntry {
    Frame(CapturedFrame),
    /// Notified when everything before it is in the file.
    Written(oneshot::Sender<()>),
}

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
    agent: ProviderId,
    session: SessionId,
    secrets: Secrets,
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
    agent: &'a ProviderId,
    session: &'a SessionId,
    msg: Value,
}

impl Capture {
    /// Appends to a file that only its owner can read: it holds the content of sessions.
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // The file may have existed already.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let (entries, receiver) = mpsc::channel(FRAMES);
        let backlog = Arc::new(CaptureBacklog::default());
        let writer = CaptureWriter {
            entries: receiver,
            backlog: Arc::clone(&backlog),
            file: BufWriter::new(file),
            failed: false,
        };
        std::thread::Builder::new().name("agent-capture".to_owned()).spawn(move || writer.run())?;
        Ok(Self { entries, backlog })
    }

    /// Waits until every frame that was recorded before is in the file.
    pub(crate) async fn written(&self) {
        let (done, written) = oneshot::channel();
        // A writer that has ended has nothing left to write.
        if self.entries.send(CaptureEntry::Written(done)).await.is_ok() {
            written.await.ok();
        }
    }

    /// `secrets` are never written, wherever they occur.
    pub(crate) fn tap<'a>(
        &self,
        agent: ProviderId,
        session: SessionId,
        secrets: impl IntoIterator<Item = &'a String>,
    ) -> CaptureTap {
        CaptureTap {
            capture: self.clone(),
            source: Arc::new(FrameSource { agent, session, secrets: Secrets::new(secrets) }),
        }
    }
}

impl CaptureTap {
    /// Records a copy of a frame if there is room for it.
    pub(crate) fn record(&self, direction: CaptureDirection, text: &str) {
        let Capture { entries, backlog } = &self.capture;
        let fits = backlog.bytes.fetch_add(text.len(), Ordering::Relaxed) + text.len() <= BYTES;
        let recorded = || CapturedFrame { at: now(), direction, source: Arc::clone(&self.source), text: text.into() };
        if !fits || entries.try_send(CaptureEntry::Frame(recorded())).is_err() {
            backlog.bytes.fetch_sub(text.len(), Ordering::Relaxed);
            backlog.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn now() -> f64 {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    millis as f64 / 1_000.0
}

struct CaptureWriter {
    entries: mpsc::Receiver<CaptureEntry>,
    backlog: Arc<CaptureBacklog>,
    file: BufWriter<File>,
    /// Writing the file failed, and that was logged.
    failed: bool,
}

impl CaptureWriter {
    fn run(mut self) {
        loop {
            let entry = match self.entries.try_recv() {
                Ok(entry) => entry,
                Err(TryRecvError::Empty) => {
                    self.write(|file| file.flush());
                    match self.entries.blocking_recv() {
                        Some(entry) => entry,
                        None => return,
                    }
                }
                Err(TryRecvError::Disconnected) => {
                    self.write(|file| file.flush());
                    return;
                }
            };
            match entry {
                CaptureEntry::Frame(recorded) => {
                    let dropped = self.backlog.dropped.swap(0, Ordering::Relaxed);
                    let mut lines = String::new();
                    if dropped > 0 {
                        lines = format!("{{\"t\":{},\"dropped\":{dropped}}}\n", recorded.at);
                    }
                    recorded.line(&mut lines);
                    self.write(|file| file.write_all(lines.as_bytes()));
                    self.backlog.bytes.fetch_sub(recorded.text.len(), Ordering::Relaxed);
                }
                CaptureEntry::Written(done) => {
                    self.write(|file| file.flush());
                    done.send(()).ok();
                }
            }
        }
    }

    fn write(&mut self, how: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Err(error) = how(&mut self.file)
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::warn!(%error, "cannot write the agents' frames: some are missing from the capture file");
        }
    }
}

impl CapturedFrame {
    fn line(&self, out: &mut String) {
        let dir = match self.direction {
            CaptureDirection::ToAgent => "c->a",
            CaptureDirection::FromAgent => "a->c",
        };
        let FrameSource { agent, session, secrets } = self.source.as_ref();
        let msg = match serde_json::from_str(&self.text) {
            Ok(message) => redact(message, secrets),
            // Text that is not JSON cannot be searched for secrets.
            Err(_) => serde_json::json!({"unreadableBytes": self.text.len()}),
        };
        // A value always serializes; a line that did not would be left out.
        if let Ok(line) = serde_json::to_string(&CaptureLine { t: self.at, dir, agent, session, msg }) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use serde_json::json;

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
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(BYTES));
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
        assert_eq!(capture.backlog.bytes.load(Ordering::Relaxed), 0);
    }
}
