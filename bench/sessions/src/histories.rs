//! The sessions of two other tools: a home with their files, and its catalog.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use grove_history::StoreRoot;
use grove_history::catalog::{Catalog, ScanRequest};
use grove_transcript::TranscriptSource;
use serde_json::json;

/// The tools whose files are generated.
pub(crate) const TOOLS: [TranscriptSource; 2] = [TranscriptSource::Claude, TranscriptSource::CopilotCli];

/// Writes this many sessions of each tool, and their catalog.
pub(crate) fn make(folder: &Path, sessions: usize) -> Result<PathBuf> {
    for number in 0..sessions {
        claude(&folder.join("claude"), number)?;
        copilot(&folder.join("copilot"), number)?;
    }
    let root = |source, product: &str, name: &str| StoreRoot {
        source,
        product: product.to_owned(),
        folder: folder.join(name),
    };
    let roots = vec![
        root(TranscriptSource::Claude, "Claude Code", "claude"),
        root(TranscriptSource::CopilotCli, "Copilot CLI", "copilot"),
    ];
    let path = folder.join("history.db");
    let report = Catalog::open(&path)?.scan(&ScanRequest { roots, keep: None }, &mut |_| {})?;
    ensure!(report.sessions == 2 * sessions, "{} of {} sessions were found", report.sessions, 2 * sessions);
    Ok(path)
}

fn claude(folder: &Path, number: usize) -> Result<()> {
    let project = format!("project-{}", number % 40);
    let folder = folder.join(format!("-home-u-{project}"));
    fs::create_dir_all(&folder)?;
    let (id, cwd) = (format!("00000000-0000-4000-8000-{number:012}"), format!("/home/u/{project}"));
    let user = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "cwd": cwd, "gitBranch": "main",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": format!("Task {number}")}});
    let content = json!([{"type": "text", "text": "Done."}]);
    let answer = json!({"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": id, "cwd": cwd,
        "timestamp": "2026-01-01T00:00:05.000Z",
        "message": {"id": "m", "role": "assistant", "model": "a-model", "content": content, "stop_reason": "end_turn"}});
    Ok(fs::write(folder.join(format!("{id}.jsonl")), format!("{user}\n{answer}\n"))?)
}

fn copilot(folder: &Path, number: usize) -> Result<()> {
    let (id, at) = (format!("10000000-0000-4000-8000-{number:012}"), "2026-02-01T00:00:00.000Z");
    let folder = folder.join(&id);
    fs::create_dir_all(&folder)?;
    let name = format!("project-{}", number % 40);
    let context = json!({"cwd": format!("/home/u/{name}"), "branch": "main", "repository": format!("acme/{name}")});
    let start = json!({"id": "e0", "type": "session.start", "timestamp": at, "parentId": null,
        "data": {"sessionId": id, "version": 1, "startTime": at, "context": context}});
    let message = json!({"id": "e1", "type": "user.message", "timestamp": at, "parentId": "e0",
        "data": {"content": format!("Task {number}")}});
    Ok(fs::write(folder.join("events.jsonl"), format!("{start}\n{message}\n"))?)
}
