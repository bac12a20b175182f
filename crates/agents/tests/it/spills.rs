//! Command output that is too large for the agent.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use grove_agents::{CloseReason, SpillStore, SpillWriter};
use grove_core::Extra;
use grove_testkit::acp::AgentBehavior;
use serde_json::{Value, json};

use crate::fixture::{AgentFixture, TestSession};

const LIMIT: usize = 64 << 10;
const MEBIBYTE: usize = 1 << 20;

/// Stores every output in a file.
#[derive(Clone, Debug)]
struct FolderSpills(PathBuf);

#[derive(Debug)]
struct FileSpillWriter {
    path: PathBuf,
    size: usize,
}

#[async_trait]
impl SpillStore for FolderSpills {
    fn begin(&self) -> Box<dyn SpillWriter> {
        let number = std::fs::read_dir(&self.0).unwrap().count();
        let path = self.0.join(format!("{number}.txt"));
        std::fs::write(&path, "").unwrap();
        Box::new(FileSpillWriter { path, size: 0 })
    }

    async fn read(&self, path: &Path, most: usize) -> Option<Result<Vec<u8>, String>> {
        if path.parent() != Some(&self.0) {
            return None;
        }
        let read = std::fs::read(path).map_err(|error| error.to_string());
        Some(read.map(|bytes| bytes[..bytes.len().min(most)].to_vec()))
    }
}

#[async_trait]
impl SpillWriter for FileSpillWriter {
    async fn write(&mut self, bytes: &[u8]) {
        // A store that is slow now and then.
        if self.size >> 14 != (self.size + bytes.len()) >> 14 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        self.size += bytes.len();
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
    }

    async fn notice(&mut self) -> Option<String> {
        (self.size > LIMIT).then(|| format!("{} bytes are in {}.", self.size, self.path.display()))
    }
}

async fn turn(steps: Value) -> (String, PathBuf, AgentFixture) {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let folder = fixture.root().join("spills");
    std::fs::create_dir(&folder).unwrap();
    let spills = Arc::new(FolderSpills(folder.clone()));
    let (agent, work) = (fixture.agent(&fixture.pool()), vec![fixture.work.display().to_string()]);
    let mut session = TestSession::open_spilling(&agent, "s", work, None, Extra::new(), spills).await;
    session.turn("t", steps).await.unwrap();
    session.agent.close(CloseReason::Removed).await;
    (session.stored.text, folder, fixture)
}

fn run(command: &str) -> Value {
    json!({"terminal": {"create": {"command": "sh", "args": ["-c", command]}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_a_large_output_is_kept_exactly_and_the_agent_is_told_where() {
    // One line, and many: a terminal changes the line ends.
    let line = format!("head -c {MEBIBYTE} /dev/zero | tr '\\0' x");
    let lines = "test -t 1 && seq -w 1 200000 | head -c 1048576";
    let (text, folder, _place) = turn(json!([run(&line), run(lines), "complaints"])).await;
    assert!(text.contains("complaints: none"), "{text}");
    assert_eq!(std::fs::read(folder.join("0.txt")).unwrap(), vec![b'x'; MEBIBYTE]);
    let numbers: String = (1..=200_000).map(|number| format!("{number:06}\n")).collect();
    let kept = std::fs::read_to_string(folder.join("1.txt")).unwrap();
    assert!(kept == numbers[..MEBIBYTE], "{} bytes", kept.len());
    for file in ["0.txt", "1.txt"] {
        let told = format!("exit 0: {MEBIBYTE} bytes are in {}.", folder.join(file).display());
        assert!(text.contains(&told), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_output_is_given_as_it_is() {
    let (text, ..) = turn(json!([run("echo small; printf 'no end'"), "complaints"])).await;
    assert!(text.contains("exit 0: small\nno end") && !text.contains("bytes are in"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_killed_in_the_middle_has_shown_what_it_had() {
    let command = "head -c 100000 /dev/zero | tr '\\0' y; sleep 600";
    let create = json!({"command": "sh", "args": ["-c", command]});
    let (text, folder, _place) = turn(json!([{"terminal": {"create": create, "kill_after_ms": 1500}}])).await;
    assert!(text.contains("100000 bytes are in"), "{text}");
    assert_eq!(std::fs::read(folder.join("0.txt")).unwrap(), vec![b'y'; 100_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_was_told_of_it_may_read_and_nothing_beside_it() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.program.files = grove_agents::acp::FileScope::Workspace;
    let folder = fixture.root().join("spills");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("told.txt"), "one\ntwo\n").unwrap();
    std::fs::write(fixture.root().join("other.txt"), "secret").unwrap();
    let (agent, work) = (fixture.agent(&fixture.pool()), vec![fixture.work.display().to_string()]);
    let spills = Arc::new(FolderSpills(folder.clone()));
    let mut session = TestSession::open_spilling(&agent, "s", work, None, Extra::new(), spills).await;
    let steps = json!([
        {"read": {"path": folder.join("told.txt"), "line": 2}},
        {"read": {"path": fixture.root().join("other.txt")}},
        {"write": {"path": folder.join("told.txt"), "content": "x"}},
    ]);
    session.turn("t", steps).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("read: two") && !text.contains("secret"), "{text}");
    assert_eq!(std::fs::read_to_string(folder.join("told.txt")).unwrap(), "one\ntwo\n");
    session.agent.close(CloseReason::Removed).await;
}
