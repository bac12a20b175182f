//! A log of every frame, for debugging.
//!
//! Each line is a JSON object: the message as it went over the wire, with a member `_ahpLog` for its time, its
//! direction (`c2s`, `s2c`) and its connection. Inspectors of the protocol read this format. Secrets are left out.
//!
//! A connection only puts a copy into a bounded channel and a thread does the rest. So a slow disk costs lines of this
//! file and nothing else; a line in their place says how many.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use grove_core::Timestamp;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::env::Clock;
use crate::sequencer::ConnectionId;

/// Frames that may wait to be written; more are counted and left out.
const FRAMES: usize = 8_192;
/// Bytes of frames that may wait, likewise.
const BYTES: usize = 32 << 20;

/// A file of frames. Clones are the same file.
#[derive(Clone, Debug)]
pub struct FrameLog {
    entries: mpsc::Sender<FrameLogEntry>,
    waiting: Arc<FrameLogBacklog>,
}

#[derive(Debug, Default)]
struct FrameLogBacklog {
    bytes: AtomicUsize,
    /// Frames left out since the last line that counted them.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum FrameLogEntry {
    Frame(RecordedFrame),
    /// Signals that everything before it is in the file.
    Written(oneshot::Sender<()>),
}

#[derive(Debug)]
struct RecordedFrame {
    at: Timestamp,
    direction: FrameDirection,
    connection: ConnectionId,
    text: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameDirection {
    FromClient,
    ToClient,
}

/// The sender of one connection's frames to the log.
pub(super) struct FrameTap {
    log: FrameLog,
    connection: ConnectionId,
    clock: Arc<dyn Clock>,
}

impl FrameLog {
    /// Appends to a file that only its owner can read: it holds conversations.
    pub fn append_to(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // An existing file may have other permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let (entries, receiver) = mpsc::channel(FRAMES);
        let waiting = Arc::new(FrameLogBacklog::default());
        let writer =
            FrameLogWriter { entries: receiver, waiting: waiting.clone(), file: BufWriter::new(file), failed: false };
        std::thread::Builder::new().name("frame-log".to_owned()).spawn(move || writer.run())?;
        Ok(Self { entries, waiting })
    }

    /// Waits until every frame recorded so far is in the file.
    pub async fn written(&self) {
        let (done, written) = oneshot::channel();
        // A writer that has ended has nothing left to write.
        if self.entries.send(FrameLogEntry::Written(done)).await.is_ok() {
            written.await.ok();
        }
    }

    pub(super) fn tap(&self, connection: ConnectionId, clock: Arc<dyn Clock>) -> FrameTap {
        FrameTap { log: self.clone(), connection, clock }
    }
}

impl FrameTap {
    /// Copies a frame into the channel, if there is room.
    pub(super) fn record(&self, direction: FrameDirection, text: &str) {
        let FrameLog { entries, waiting } = &self.log;
        let fits = waiting.bytes.fetch_add(text.len(), Ordering::Relaxed) + text.len() <= BYTES;
        let recorded =
            || RecordedFrame { at: self.clock.now(), direction, connection: self.connection, text: text.into() };
        if !fits || entries.try_send(FrameLogEntry::Frame(recorded())).is_err() {
            waiting.bytes.fetch_sub(text.len(), Ordering::Relaxed);
            waiting.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct FrameLogWriter {
    entries: mpsc::Receiver<FrameLogEntry>,
    waiting: Arc<FrameLogBacklog>,
    file: BufWriter<File>,
    /// The file could not be written, and that was logged.
    failed: bool,
}

impl FrameLogWriter {
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
                FrameLogEntry::Frame(recorded) => {
                    let dropped = self.waiting.dropped.swap(0, Ordering::Relaxed);
                    let mut lines = String::new();
                    if dropped > 0 {
                        lines = format!("{{\"_ahpLog\":{{\"ts\":\"{}\",\"dropped\":{dropped}}}}}\n", iso(recorded.at));
                    }
                    recorded.lines(&mut lines);
                    self.write(|file| file.write_all(lines.as_bytes()));
                    self.waiting.bytes.fetch_sub(recorded.text.len(), Ordering::Relaxed);
                }
                FrameLogEntry::Written(done) => {
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
            tracing::warn!(%error, "the log of frames cannot be written: frames are missing from it");
        }
    }
}

impl RecordedFrame {
    /// Writes the frame as a line; a batch as one line for each message.
    fn lines(&self, out: &mut String) {
        let direction = match self.direction {
            FrameDirection::FromClient => "c2s",
            FrameDirection::ToClient => "s2c",
        };
        let (at, connection) = (iso(self.at), self.connection.0);
        let about =
            format!("\"ts\":\"{at}\",\"dir\":\"{direction}\",\"connectionId\":\"{connection}\",\"transport\":\"ws\"");
        let batch = serde_json::from_str::<Vec<&RawValue>>(&self.text);
        let messages = match &batch {
            Ok(messages) if !messages.is_empty() => messages.iter().map(|message| message.get()).collect(),
            Ok(_) | Err(_) => vec![&*self.text],
        };
        for message in messages {
            let is_object =
                message.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(message).is_ok();
            if is_object {
                let start = out.len();
                redact(message, out);
                // Drops the closing brace to add a member. It comes last: of two with one name readers take the last,
                // and a client may have sent one of this name.
                out.pop();
                if out.len() > start + 1 {
                    out.push(',');
                }
            } else {
                // A message that cannot be parsed cannot be searched for secrets.
                out.push_str(&format!("{{\"unreadableBytes\":{},", message.len()));
            }
            out.push_str(&format!("\"_ahpLog\":{{{about}}}}}\n"));
        }
    }
}

fn iso(at: Timestamp) -> String {
    let at = i64::try_from(at.0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok()).unwrap_or_default();
    format!("{at:.3}")
}

/// The replacement of a secret.
const REDACTED: &str = "[redacted]";
/// The names of members whose values are secrets.
const SECRET_NAMES: [&str; 4] = ["token", "authorization", "ticket", "tkn"];
/// The marks before secrets inside a text, and the shortest length of a secret after each.
const SECRET_MARKS: [(&str, usize); 4] = [("bearer ", 8), ("token=", 16), ("ticket=", 16), ("tkn=", 16)];

/// Copies valid JSON in one line without its secrets. Everything else stays as it is, digit by digit.
fn redact(json: &str, out: &mut String) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            b'"' => {
                let end = value_end(bytes, at);
                let text = &json[at..end];
                at = skip_space(bytes, end);
                if bytes.get(at) != Some(&b':') {
                    out.push_str(&without_secrets(text));
                    continue;
                }
                out.push_str(text);
                out.push(':');
                at = skip_space(bytes, at + 1);
                if is_secret_name(text) {
                    at = value_end(bytes, at);
                    out.push('"');
                    out.push_str(REDACTED);
                    out.push('"');
                }
            }
            _ => {
                // Outside of strings everything is ASCII.
                out.push(char::from(*byte));
                at += 1;
            }
        }
    }
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The place after the JSON value that begins here.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut values = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(IgnoredAny)) => start + values.byte_offset(),
        // The text is valid JSON, so there is a value here.
        Some(Err(_)) | None => bytes.len(),
    }
}

/// A JSON string's text. Text that cannot be unescaped (half a surrogate pair) stays escaped.
fn unescaped(json: &str) -> Cow<'_, str> {
    let inner = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return inner.into();
    }
    serde_json::from_str::<String>(json).map_or(inner.into(), Cow::Owned)
}

fn is_secret_name(json: &str) -> bool {
    let name = unescaped(json);
    SECRET_NAMES.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// A JSON string without the secrets after marks.
fn without_secrets(json: &str) -> Cow<'_, str> {
    let text = unescaped(json);
    // Only ASCII changes, so indices stay the same.
    let lower = text.to_ascii_lowercase();
    let mut cut: Vec<(usize, usize)> = Vec::new();
    for (mark, least) in SECRET_MARKS {
        for (place, _) in lower.match_indices(mark) {
            let start = place + mark.len();
            let length = text[start..].bytes().take_while(|byte| is_secret_byte(*byte)).count();
            // A text that begins with the mark is a header: nothing in it is prose.
            if length >= least || (place == 0 && mark == "bearer " && length > 0) {
                cut.push((start, start + length));
            }
        }
    }
    if cut.is_empty() {
        return json.into();
    }
    cut.sort_unstable();
    let (mut kept, mut from) = (String::new(), 0);
    for (start, end) in cut {
        if start >= from {
            kept.push_str(&text[from..start]);
            kept.push_str(REDACTED);
        }
        from = from.max(end);
    }
    kept.push_str(&text[from..]);
    serde_json::Value::String(kept).to_string().into()
}

/// The bytes that tokens consist of, in headers and addresses.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn redacted(json: &str) -> String {
        let mut out = String::new();
        redact(json, &mut out);
        out
    }

    fn lines(text: &str) -> Vec<Value> {
        let mut out = String::new();
        let recorded = RecordedFrame {
            at: Timestamp(1_700_000_000_123),
            direction: FrameDirection::ToClient,
            connection: ConnectionId(7),
            text: text.into(),
        };
        recorded.lines(&mut out);
        assert!(out.ends_with('\n'));
        out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    #[test]
    fn secrets_are_taken_out_at_any_depth() {
        let cases = [
            (r#"{"token":"s"}"#, r#"{"token":"[redacted]"}"#),
            (r#"{"a":[{"Token" : "s" , "b":1}]}"#, r#"{"a":[{"Token":"[redacted]","b":1}]}"#),
            (r#"{"tok\u0065n":"s\"}"}"#, r#"{"tok\u0065n":"[redacted]"}"#),
            (r#"{"authorization":{"a":["]"]},"b":2}"#, r#"{"authorization":"[redacted]","b":2}"#),
            (r#"{"ticket":[1,{"a":2}]}"#, r#"{"ticket":"[redacted]"}"#),
            (r#"{"tkn":17,"ticket":null}"#, r#"{"tkn":"[redacted]","ticket":"[redacted]"}"#),
            (r#"["Bearer s","xbearer s"]"#, r#"["Bearer [redacted]","xbearer s"]"#),
            (
                r#"{"h":"a: \u0042earer 0123456789\n","p":"the bearer of news"}"#,
                r#"{"h":"a: Bearer [redacted]\n","p":"the bearer of news"}"#,
            ),
            (
                r#"["ws://h/ws?tkn=0123456789abcdef&a=b","/#token=0123456789abcdef","token=x"]"#,
                r#"["ws://h/ws?tkn=[redacted]&a=b","/#token=[redacted]","token=x"]"#,
            ),
            (
                r#"["Bearer bearer 0123456789abcdef tkn=tkn=0123456789abcdef"]"#,
                r#"["Bearer [redacted] [redacted] tkn=[redacted]"]"#,
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(redacted(given), expected);
            serde_json::from_str::<Value>(expected).unwrap();
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for json in [
            r#"{"progressToken":"s","tokens":3,"n":12345678901234567890.50,"e":"é\ud800\u00e9\\\""}"#,
            r#"{}"#,
            r#"[]"#,
            r#"{"a":"token","b":["tkn"]}"#,
        ] {
            assert_eq!(redacted(json), json);
        }
    }

    #[test]
    fn a_line_is_the_message_and_where_it_came_from() {
        let about = json!({"ts": "2023-11-14T22:13:20.123Z", "dir": "s2c", "connectionId": "7", "transport": "ws"});
        assert_eq!(
            lines("{\"jsonrpc\":\"2.0\",\n\"id\": 1, \"result\": null }"),
            [json!({"jsonrpc": "2.0", "id": 1, "result": null, "_ahpLog": about})]
        );
        assert_eq!(lines(" { } "), [json!({"_ahpLog": about})]);
        let forged = lines(r#"{"_ahpLog":{"ts":"x","dir":"c2s"}}"#);
        assert_eq!(forged, [json!({"_ahpLog": about})], "nobody else can say where it came from");
        let batch = lines(r#"[{"id":1},{"id":2,"token":"s"},3]"#);
        assert_eq!(
            batch,
            [
                json!({"id": 1, "_ahpLog": about}),
                json!({"id": 2, "token": "[redacted]", "_ahpLog": about}),
                json!({"unreadableBytes": 1, "_ahpLog": about}),
            ]
        );
        for unreadable in ["", "[]", "nonsense", r#"{"token":"s""#, "42", r#""Bearer s""#] {
            assert_eq!(lines(unreadable), [json!({"unreadableBytes": unreadable.len(), "_ahpLog": about})]);
        }
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.jsonl");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let log = FrameLog::append_to(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let tap = log.tap(ConnectionId(1), Arc::new(crate::env::SystemClock));
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(BYTES));
        tap.record(FrameDirection::FromClient, &large);
        tap.record(FrameDirection::FromClient, &large);
        tap.record(FrameDirection::FromClient, "{\"id\":1}");
        log.written().await;
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once('\n').unwrap();
        assert_eq!(before, "before", "what was there stays");
        let lines: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["_ahpLog"]["dropped"], &lines[1]["id"]), (&json!(2), &json!(1)));
        assert_eq!(log.waiting.bytes.load(Ordering::Relaxed), 0);
    }
}
