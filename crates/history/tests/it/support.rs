//! Stores for tests, and our own cases.

use std::fs;
use std::path::{Path, PathBuf};

use grove_history::{SessionLocation, read_with_turns, reader_of};
use grove_transcript::{TranscriptPart, TranscriptSession, TranscriptSource, TranscriptToolCall, TranscriptTurn};
use serde_json::Value;
use tempfile::TempDir;

/// Returns a folder of the cases that we wrote ourselves.
pub(crate) fn cases(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder)
}

/// A folder with files in it, for one test.
pub(crate) struct TestStore(TempDir);

impl TestStore {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(name, content);
        self
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

/// Every file below a folder, with its bytes and modification time.
pub(crate) fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let written = fs::metadata(&path).unwrap().modified().unwrap();
                found.push((path.clone(), fs::read(&path).unwrap(), written));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn read_file(source: TranscriptSource, path: &Path) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let location = SessionLocation::of_file(source, path).unwrap();
    read_with_turns(reader_of(source), &location).unwrap()
}

/// Reads a flat VS Code session.
pub(crate) fn flat(session: &Value) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let store = TestStore::new();
    let path = store.put("s.json", session.to_string());
    read_file(TranscriptSource::VsCode, &path)
}

/// Reads one request of a VS Code session.
pub(crate) fn request(request: Value) -> TranscriptTurn {
    let (_, mut turns) = flat(&serde_json::json!({"version": 3, "sessionId": "s", "requests": [request]}));
    turns.pop().unwrap()
}

/// Reads a response of a VS Code request.
pub(crate) fn response(parts: Value) -> Vec<TranscriptPart> {
    request(serde_json::json!({"requestId": "r", "message": {"text": "x"}, "response": parts, "result": {}})).parts
}

/// Reads the events of a Copilot CLI session.
pub(crate) fn events(log: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let store = TestStore::new();
    let path = store.put("s/events.jsonl", log);
    read_file(TranscriptSource::CopilotCli, &path)
}

/// A log of values, one a line.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

pub(crate) fn calls(parts: &[TranscriptPart]) -> Vec<&TranscriptToolCall> {
    let calls = parts.iter().filter_map(|part| match part {
        TranscriptPart::ToolCall(call) => Some(&**call),
        _ => None,
    });
    calls.collect()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
