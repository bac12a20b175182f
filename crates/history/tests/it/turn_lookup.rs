//! A file is read once, and only as far as a turn needs.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use grove_history::{Branches, SessionLocation, TurnLookup, find_turn, read_buffered, read_with_turns, reader_of};
use grove_transcript::TranscriptSource;
use serde_json::{Value, json};

use crate::support::{TestStore, lines};

const TURNS: usize = 200;
/// The text of a message. A file is much larger than the buffers of a reader.
const TEXT: usize = 20_000;

fn number(number: usize) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(number).unwrap()).unwrap()
}

/// A long session of each tool that has a file for it.
fn sessions(store: &TestStore) -> Vec<(TranscriptSource, PathBuf)> {
    let text = |turn: usize| format!("{turn} {}", "x".repeat(TEXT));
    let turns = || 0..TURNS;
    let claude = turns().map(|turn| {
        let parent = turn.checked_sub(1).map(|parent| format!("e{parent}"));
        json!({"type": "user", "uuid": format!("e{turn}"), "parentUuid": parent, "sessionId": "s",
            "message": {"role": "user", "content": [{"type": "text", "text": text(turn)}]}})
    });
    let pi = turns().map(|turn| {
        let parent = turn.checked_sub(1).map(|parent| format!("e{parent}"));
        json!({"type": "message", "id": format!("e{turn}"), "parentId": parent,
            "message": {"role": "user", "content": [{"type": "text", "text": text(turn)}]}})
    });
    let pi = std::iter::once(json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"})).chain(pi);
    let codex =
        turns().map(|turn| json!({"type": "event_msg", "payload": {"type": "user_message", "message": text(turn)}}));
    let codex = std::iter::once(json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}})).chain(codex);
    let copilot =
        turns().map(|turn| json!({"type": "user.message", "id": format!("e{turn}"), "data": {"content": text(turn)}}));
    let copilot =
        std::iter::once(json!({"type": "session.start", "id": "e", "data": {"sessionId": "s"}})).chain(copilot);
    let requests = turns().map(
        |turn| json!({"requestId": format!("r{turn}"), "message": {"text": text(turn)}, "response": [], "result": {}}),
    );
    let vscode = json!({"version": 3, "sessionId": "s", "requests": requests.collect::<Vec<_>>()});
    let log = |values: &mut dyn Iterator<Item = Value>| lines(&values.collect::<Vec<_>>());
    vec![
        (TranscriptSource::Claude, store.put("s.jsonl", log(&mut claude.into_iter()))),
        (TranscriptSource::Pi, store.put("2026_s.jsonl", log(&mut pi.into_iter()))),
        (TranscriptSource::Codex, store.put("rollout-2026-01-01T00-00-00-s.jsonl", log(&mut codex.into_iter()))),
        (TranscriptSource::CopilotCli, store.put("s/events.jsonl", log(&mut copilot.into_iter()))),
        (TranscriptSource::VsCode, store.put("s.json", vscode.to_string())),
    ]
}

/// The bytes that this thread has read so far.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
fn reads<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let before = bytes_read();
    let result = act();
    (result, bytes_read() - before)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
#[cfg(target_os = "linux")]
fn a_session_with_all_its_turns_is_read_once() {
    let store = TestStore::new();
    for (source, path) in sessions(&store) {
        let location = SessionLocation::of_file(source, &path).unwrap();
        let (read, bytes) = reads(|| {
            let read = read_buffered(&location).unwrap();
            let turns: Vec<_> = (0..read.turns.len()).map(|turn| read.turns.get(turn).unwrap()).collect();
            (read.session, turns)
        });
        assert_eq!(read.1.len(), TURNS, "{source}");
        assert_eq!(read, read_with_turns(reader_of(source), &location).unwrap(), "{source}");
        assert!(bytes < size(&path) + 100_000, "{source}: {bytes} bytes of {}", size(&path));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_turn_takes_only_the_part_of_the_file_up_to_it() {
    let store = TestStore::new();
    for (source, path) in sessions(&store) {
        let location = SessionLocation::of_file(source, &path).unwrap();
        let (_, turns) = read_with_turns(reader_of(source), &location).unwrap();
        let (found, bytes) = reads(|| find_turn(&location, number(3), Branches::All).unwrap());
        assert_eq!(found, TurnLookup::Found(Box::new(turns[2].clone())), "{source}");
        // One buffer may be read ahead.
        assert!(bytes < 400_000 && size(&path) > 4_000_000, "{source}: {bytes} bytes of {}", size(&path));
        let (found, bytes) = reads(|| find_turn(&location, number(3), Branches::Active).unwrap());
        assert_eq!(found, TurnLookup::Found(Box::new(turns[2].clone())), "{source}");
        if source.has_branches() {
            // The rest is searched for a turn that abandons it. Parsing it, too, would take more than one pass.
            assert!(bytes < size(&path) + 100_000, "{source}: {bytes} bytes of {}", size(&path));
        } else {
            assert!(bytes < 400_000, "{source}: {bytes} bytes of {}", size(&path));
        }
    }
}

#[test]
fn a_missing_turn_is_told_with_the_number_of_turns() {
    let store = TestStore::new();
    for (source, path) in sessions(&store) {
        let location = SessionLocation::of_file(source, &path).unwrap();
        for branches in [Branches::Active, Branches::All] {
            let found = find_turn(&location, number(TURNS + 1), branches).unwrap();
            assert_eq!(found, TurnLookup::Missing { turns: TURNS }, "{source}");
        }
    }
}

#[test]
fn only_turns_of_the_active_branch_have_numbers() {
    let store = TestStore::new();
    let turn = |id: &str, parent: Option<&str>| {
        json!({"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s",
            "message": {"role": "user", "content": [{"type": "text", "text": id}]}})
    };
    let log = [turn("a", None), turn("b", Some("a")), turn("c", Some("b")), turn("d", Some("a")), turn("e", Some("d"))];
    let path = store.put("s.jsonl", lines(&log));
    let location = SessionLocation::of_file(TranscriptSource::Claude, &path).unwrap();
    let find = |at, branches| match find_turn(&location, number(at), branches).unwrap() {
        TurnLookup::Found(turn) => turn.message.text,
        TurnLookup::Missing { turns } => format!("{turns} turns"),
    };
    assert_eq!([1, 2, 3, 4].map(|at| find(at, Branches::Active)), ["a", "d", "e", "3 turns"]);
    assert_eq!([1, 2, 3, 6].map(|at| find(at, Branches::All)), ["a", "b", "c", "5 turns"]);
}
