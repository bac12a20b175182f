//! A log of every frame, for debugging.
//!
//! Each line is a JSON object: the message as it went over the wire, with a member `_ahpLog` for its time, its
//! direction (`c2s`, `s2c`) and its connection. Inspectors of the protocol read this format. Secrets are left out.
//!
//! [`FrameFile`] writes the file: a slow disk costs lines of it and nothing else.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grove_core::Timestamp;
use grove_frames::{FrameFile, FrameRecord, Redaction, RedactionRules, SecretMark, is_secret_name};
use grove_host::Clock;
use grove_host::sequencer::ConnectionId;
use serde_json::value::RawValue;

/// A file of frames. Clones are the same file.
#[derive(Clone, Debug)]
pub struct FrameLog(FrameFile<RecordedFrame>);

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
        FrameFile::append_to(path, "frame-log").map(Self)
    }

    /// Waits until every frame recorded so far is in the file.
    pub async fn written(&self) {
        self.0.written().await;
    }

    pub(super) fn tap(&self, connection: ConnectionId, clock: Arc<dyn Clock>) -> FrameTap {
        FrameTap { log: self.clone(), connection, clock }
    }
}

impl FrameTap {
    /// Copies a frame into the log, if there is room.
    pub(super) fn record(&self, direction: FrameDirection, text: &str) {
        let (at, connection) = (self.clock.now(), self.connection);
        self.log.0.record(text.len(), || RecordedFrame { at, direction, connection, text: text.into() });
    }
}

impl FrameRecord for RecordedFrame {
    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn write_dropped(&self, dropped: u64, out: &mut String) {
        out.push_str(&format!("{{\"_ahpLog\":{{\"ts\":\"{}\",\"dropped\":{dropped}}}}}\n", iso(self.at)));
    }

    /// Writes the frame as a line; a batch as one line for each message.
    fn write_lines(&self, out: &mut String) {
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
            let start = out.len();
            let is_object = message.trim_start().starts_with('{');
            if is_object && REDACTION.redact(message, out) {
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

/// The secrets in the messages of clients.
static RULES: RedactionRules = RedactionRules {
    is_secret_name: |name| is_secret_name(name) || OWN_SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret)),
    environment: Some("env"),
    marks: &[
        SecretMark { text: "bearer ", min_bytes: 8, is_header: true },
        SecretMark { text: "token=", min_bytes: 16, is_header: false },
        SecretMark { text: "ticket=", min_bytes: 16, is_header: false },
        SecretMark { text: "tkn=", min_bytes: 16, is_header: false },
    ],
    shows_missing: false,
};
/// The names of Grove's own secrets, beside those that every protocol has.
const OWN_SECRETS: [&str; 2] = ["ticket", "tkn"];

static REDACTION: Redaction = Redaction::new(&RULES);

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use super::*;

    fn redacted(json: &str) -> String {
        let mut out = String::new();
        assert!(REDACTION.redact(json, &mut out), "{json}");
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
        recorded.write_lines(&mut out);
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
            (
                r#"{"apiKey":"s","password":"s","client_secret":"s"}"#,
                r#"{"apiKey":"[redacted]","password":"[redacted]","client_secret":"[redacted]"}"#,
            ),
            (
                r#"{"env":[{"name":"A","value":"s"}],"b":{"env":{"A":"s"}}}"#,
                r#"{"env":[{"name":"A","value":"[redacted]"}],"b":{"env":{"A":"[redacted]"}}}"#,
            ),
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
        let tap = log.tap(ConnectionId(1), Arc::new(grove_host::SystemClock));
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(32 << 20));
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
    }
}
