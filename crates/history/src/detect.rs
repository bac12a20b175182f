//! Detects the tool that wrote a file, by its name and its beginning.

use std::io::Read;
use std::path::Path;

use grove_transcript::TranscriptSource;
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;

/// The number of bytes that are read.
const LOOKED_AT: u64 = 1 << 20;
/// The number of lines of a log: the first ones may be damaged, or ambiguous.
const LINES: usize = 20;

/// The tool whose session a file is, by its name or its beginning. Events of the Copilot CLI and logs of pi are not
/// detected: other programs' logs have the same form.
pub fn detect_source(path: &Path) -> Result<Option<TranscriptSource>, HistoryError> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    if name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")) {
        return Ok(Some(TranscriptSource::Codex));
    }
    let mut begin = Vec::new();
    let (file, _) = files::open(path)?;
    file.take(LOOKED_AT).read_to_end(&mut begin).map_err(|error| HistoryError::io(path, error))?;
    // Some editors leave a byte order mark.
    let begin = String::from_utf8_lossy(begin.strip_prefix(files::BYTE_ORDER_MARK).unwrap_or(&begin));
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => of_object(path, begin.trim_start()),
        Some("jsonl") => {
            let lines = begin.lines().filter(|line| !line.trim().is_empty()).take(LINES);
            lines.filter_map(|line| serde_json::from_str(line).ok()).find_map(|line: Value| of_line(&line))
        }
        _ => None,
    })
}

/// Detects a flat file. It may be longer than the read part, so it is not parsed as JSON.
fn of_object(path: &Path, begin: &str) -> Option<TranscriptSource> {
    let is_in_storage = path.ancestors().nth(2).and_then(Path::file_name).is_some_and(|name| name == "session");
    let first: String = begin.chars().filter(|letter| !letter.is_whitespace()).take(8).collect();
    let has = |member: &str| begin.contains(&format!("\"{member}\""));
    if !first.starts_with('{') {
        None
    } else if first == "{\"info\":" || (is_in_storage && has("id") && has("time")) {
        Some(TranscriptSource::OpenCode)
    } else if has("requests") {
        Some(TranscriptSource::VsCode)
    } else if has("sessionId") && has("messages") {
        Some(TranscriptSource::Gemini)
    } else {
        None
    }
}

fn of_line(line: &Value) -> Option<TranscriptSource> {
    let text = |member: &str| line.get(member).and_then(Value::as_str);
    if line.get("kind").is_some_and(Value::is_u64) {
        Some(TranscriptSource::VsCode)
    } else if text("type") == Some("session_meta") {
        Some(TranscriptSource::Codex)
    } else if text("sessionId").is_some() && text("projectHash").is_some() {
        Some(TranscriptSource::Gemini)
    } else if text("type").is_some() && ["uuid", "leafUuid", "sessionId"].iter().any(|member| text(member).is_some()) {
        Some(TranscriptSource::Claude)
    } else if text("type").is_some_and(|kind| said_by(line) == Some(kind)) {
        // Entries of Claude Code without ids. No other tool repeats the role as the entry's type.
        Some(TranscriptSource::Claude)
    } else {
        None
    }
}

/// The role of an entry's message.
fn said_by(line: &Value) -> Option<&str> {
    let message = line.get("message")?;
    message
        .get("role")?
        .as_str()
        .filter(|role| matches!(*role, "user" | "assistant") && message.get("content").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_how_it_is_called_and_how_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        for (name, begin, source) in [
            ("a.json", r#"{"version":3,"requests":[]}"#, Some(TranscriptSource::VsCode)),
            ("a.jsonl", r#"{"kind":0,"v":{}}"#, Some(TranscriptSource::VsCode)),
            ("rollout-x.jsonl", "", Some(TranscriptSource::Codex)),
            ("b.jsonl", "torn{\n{\"type\":\"session_meta\",\"payload\":{}}", Some(TranscriptSource::Codex)),
            ("c.jsonl", r#"{"type":"user","uuid":"u","sessionId":"s","message":{}}"#, Some(TranscriptSource::Claude)),
            ("d.jsonl", r#"{"type":"summary","summary":"x","leafUuid":"u"}"#, Some(TranscriptSource::Claude)),
            ("e.jsonl", r#"{"sessionId":"s","projectHash":"h","startTime":"x"}"#, Some(TranscriptSource::Gemini)),
            ("f.json", r#"{"sessionId":"s","messages":[]}"#, Some(TranscriptSource::Gemini)),
            ("g.json", "{\n  \"info\": {\"id\": \"s\"}, \"messages\": []}", Some(TranscriptSource::OpenCode)),
            ("storage/session/p/ses.json", r#"{"id":"ses","time":{}}"#, Some(TranscriptSource::OpenCode)),
            ("bom.json", "\u{feff}{\"version\":3,\"requests\":[]}", Some(TranscriptSource::VsCode)),
            ("bom.jsonl", "\u{feff}{\"type\":\"session_meta\",\"payload\":{}}", Some(TranscriptSource::Codex)),
            ("i.jsonl", r#"{"type":"user","message":{"role":"user","content":"hi"}}"#, Some(TranscriptSource::Claude)),
            ("j.jsonl", r#"{"type":"message","message":{"role":"user","content":"hi"}}"#, None),
            ("h.json", r#"[{"requests":1}]"#, None),
            ("h.jsonl", "just words", None),
            ("h.txt", r#"{"requests":[]}"#, None),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, begin).unwrap();
            assert_eq!(detect_source(&path).unwrap(), source, "{name}");
        }
    }
}
