//! The fuzz bodies of other tools' sessions.

use std::path::Path;

use grove_core::Timestamp;
use grove_history::vscode::editing::{self, Moment};
use grove_history::vscode::{index, read_flat, read_log, workspace_of};
use grove_history::{
    Bookmark, MAX_CHANGES, ReadOutcome, SessionChanges, blocks, claude, codex, copilot_cli, gemini, opencode, pi,
};
use grove_transcript::uri::location_of_uri;
use grove_transcript::{TranscriptTurn, core_turn, path};

/// Checks that a parsed turn can be shown and written.
fn usable(turns: &[TranscriptTurn]) {
    for turn in turns {
        assert!(!turn.id.is_empty());
        assert_eq!(core_turn(turn, Timestamp(0)).turn.message.text, turn.message.text);
        serde_json::to_string(turn).expect("a turn is written");
    }
    let changes = SessionChanges::of(turns);
    assert!(changes.files.len() <= MAX_CHANGES && changes.files.keys().all(|path| !path.is_empty()));
}

/// Any bytes as a flat session of VS Code: every turn is counted, and damage is reported.
pub fn vscode_flat(data: &[u8]) {
    let mut turns = Vec::new();
    let session = read_flat(data, "s", &mut |turn| turns.push(turn)).expect("bytes are read");
    assert_eq!(session.turns as usize, turns.len());
    assert!(session.damage.places.len() as u64 <= session.damage.count);
    usable(&turns);
}

/// Any bytes as a mutation log of VS Code. Empty lines at its end change nothing.
pub fn vscode_log(data: &[u8]) {
    let mut turns = Vec::new();
    let session = read_log(data, "s", &mut |turn| turns.push(turn)).expect("bytes are read");
    assert_eq!(session.turns as usize, turns.len());
    usable(&turns);
    let mut again = Vec::new();
    read_log(&[data, b"\n\n"].concat(), "s", &mut |turn| again.push(turn)).expect("bytes are read");
    assert_eq!(again, turns, "empty lines change nothing");
}

/// A reader of an append-only log: from its beginning, or from a bookmark.
type ReadLog = fn(&[u8], &str, Option<&Bookmark>, &mut dyn FnMut(TranscriptTurn)) -> std::io::Result<ReadOutcome>;

/// Reading on from the bookmark of any beginning gives the same as a full read. The first byte selects the cut.
fn grows(data: &[u8], read_log: ReadLog) {
    let Some((cut, log)) = data.split_first() else { return };
    let read = |bytes: &[u8], from| {
        let mut turns = Vec::new();
        let reading = read_log(bytes, "s", from, &mut |turn| turns.push(turn)).expect("bytes are read");
        (reading, turns)
    };
    let (whole, all) = read(log, None);
    assert_eq!(whole.session.turns as usize, all.len());
    assert!(path(&all).len() <= all.len());
    usable(&all);
    let cut = log.len() * usize::from(*cut) / 256;
    let (begun, mut turns) = read(&log[..cut], None);
    let Some(bookmark) = begun.bookmark else { return };
    turns.truncate(bookmark.turns as usize);
    let (ended, more) = read(log, Some(&bookmark));
    turns.extend(more);
    // The last digit of a fraction may change in a bookmark; turns contain none.
    assert_eq!(turns, all);
    assert_eq!((ended.session.turns, ended.session.tools), (whole.session.turns, whole.session.tools));
}

/// Any bytes as a log of the Copilot CLI.
pub fn copilot_events(data: &[u8]) {
    grows(data, copilot_cli::read_log);
}

/// Any bytes as a session of Claude Code.
pub fn claude_log(data: &[u8]) {
    grows(data, claude::read_log);
}

/// Any bytes as a rollout of Codex.
pub fn codex_rollout(data: &[u8]) {
    grows(data, codex::read_log);
}

/// Any bytes as a session of pi.
pub fn pi_log(data: &[u8]) {
    grows(data, pi::read_log);
}

/// Any bytes as a session of the Gemini CLI. Empty lines after it change nothing.
pub fn gemini_log(data: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut turns = Vec::new();
        let session = gemini::read_log(bytes, "s", &mut |turn| turns.push(turn)).expect("bytes are read");
        (session, turns)
    };
    let (session, turns) = read(data);
    assert_eq!(session.turns as usize, turns.len());
    usable(&turns);
    assert_eq!(read(&[data, b"\n\n"].concat()).1, turns);
}

/// Any bytes as exports of OpenCode. Each turn is counted, and empty lines after them change nothing.
pub fn opencode_export(data: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut turns = Vec::new();
        let session = opencode::read_exports(bytes, "s", &mut |turn| turns.push(turn)).expect("bytes are read");
        (session, turns)
    };
    let (session, turns) = read(data);
    assert_eq!(session.turns as usize, turns.len());
    usable(&turns);
    assert_eq!(read(&[data, b"\n\n"].concat()).1, turns);
}

/// Any text as a rendered prompt: its blocks are parts of it, in order.
pub fn prompt_blocks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut rest = text;
    for block in blocks(text) {
        let at = rest.find(&block.text).expect("a block's text stands in the prompt, behind the one before it");
        rest = &rest[at + block.text.len()..];
    }
}

/// Any bytes as an editing session: each of its files has a known content at each moment, or none.
pub fn editing_state(data: &[u8]) {
    let Ok(session) = editing::of_json(data, Path::new("/nowhere")) else { return };
    let request = String::from_utf8_lossy(data).chars().filter(char::is_ascii_alphanumeric).take(2).collect::<String>();
    for file in session.files().take(20) {
        for moment in [
            Moment::Start,
            Moment::Now,
            Moment::After { request: request.clone() },
            Moment::At { request: request.clone(), stop: None },
        ] {
            session.text_at(&file.uri, &moment);
        }
    }
}

/// Any text as a URI, as `workspace.json` and as VS Code's index.
pub fn vscode_small(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    location_of_uri(&text).name();
    drop(workspace_of(data));
    index::index_of(&text);
}
