use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use grove_transcript::{TranscriptSource, path};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::changes::{ChangeCollector, CollectedChanges, SessionChanges};
use crate::{Bookmark, Branches, TurnLookup, find_turn, read_with_turns};

/// A session in a file of its own.
struct SessionFixture {
    _folder: tempfile::TempDir,
    path: PathBuf,
    source: TranscriptSource,
}

impl SessionFixture {
    fn new(source: TranscriptSource, name: &str, text: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        Self { _folder: folder, path, source }
    }

    fn location(&self) -> SessionLocation {
        SessionLocation::of_file(self.source, &self.path).unwrap()
    }

    fn tail_index(&self) -> Option<TailIndex> {
        let location = self.location();
        let mut tail_index = reader_of(self.source).read(&location, None, &mut |_| {}).unwrap().tail_index?;
        tail_index.fingerprint = crate::fingerprint::Fingerprint::of(&location.path, location.mark.size);
        Some(tail_index)
    }

    /// The session's changes, and the bookmark for collecting further ones.
    fn collect_changes(&self, from: Option<(&Bookmark, SessionChanges)>) -> (Option<Bookmark>, CollectedChanges) {
        let mut collector =
            from.clone().map_or_else(ChangeCollector::default, |(from, before)| ChangeCollector::from(from, before));
        let from = from.map(|(from, _)| from);
        let read = reader_of(self.source).read(&self.location(), from, &mut |turn| collector.take(&turn)).unwrap();
        assert!(read.bookmark.as_ref().is_none_or(|bookmark| collector.fits(bookmark)), "{:?}", read.bookmark);
        (read.bookmark, collector.finish())
    }

    /// Checks that a turn that is looked up is the one of a full read.
    fn check_lookup(&self, whole: &[TranscriptTurn], path: &[usize]) {
        let location = self.location();
        let find = |number: usize, branches| {
            let number = NonZeroU32::new(u32::try_from(number).unwrap()).unwrap();
            find_turn(&location, number, branches).unwrap()
        };
        let found = |turn: &TranscriptTurn| TurnLookup::Found(Box::new(turn.clone()));
        for number in [1, 2, whole.len() / 2 + 1, whole.len()].into_iter().filter(|number| *number <= whole.len()) {
            let Some(before) = number.checked_sub(1) else { continue };
            assert_eq!(find(number, Branches::All), found(&whole[before]), "turn {number}");
            let active =
                path.get(before).map_or(TurnLookup::Missing { turns: path.len() }, |turn| found(&whole[*turn]));
            assert_eq!(find(number, Branches::Active), active, "turn {number}");
        }
        assert_eq!(find(whole.len() + 1, Branches::All), TurnLookup::Missing { turns: whole.len() });
    }

    /// Checks that every window from a tail index is the end of a full read. Returns the number of windows.
    fn check(&self, tail_index: Option<&TailIndex>) -> usize {
        let location = self.location();
        let (_, whole) = read_with_turns(reader_of(self.source), &location).unwrap();
        let path = path(&whole);
        self.check_lookup(&whole, &path);
        let mut quick = 0;
        // A few windows of each size: all of them would need as many full reads.
        for wanted in (1..=whole.len() + 1).filter(|wanted| *wanted < 4 || wanted % 7 == 0 || *wanted >= whole.len()) {
            for amount in [TailLimit::Turns(wanted), TailLimit::Entries(wanted * 2)] {
                let quickly = tail_index.and_then(|tail_index| from_tail_index(&location, tail_index, amount));
                let newest = newest(&location, tail_index, amount).unwrap();
                if let Some(quickly) = quickly {
                    assert_eq!(quickly, newest);
                    quick += 1;
                }
                assert_eq!(newest.turns, whole[whole.len() - newest.turns.len()..], "{amount:?}");
                assert_eq!(newest.has_older, newest.turns.len() < whole.len(), "{amount:?}");
                let active = newest.clone().on_active_branch();
                let first = path.len() - active.turns.len();
                assert!(active.turns.iter().eq(path[first..].iter().map(|at| &whole[*at])), "{amount:?}");
                assert_eq!(active.has_older, first > 0, "{amount:?}");
                match amount {
                    TailLimit::Turns(_) => assert_eq!(newest.turns.len(), wanted.min(whole.len())),
                    TailLimit::Entries(wanted) => {
                        let entries = newest.turns.iter().map(entries_of).sum::<u64>();
                        assert!(entries >= wanted as u64 || !newest.has_older);
                    }
                }
            }
        }
        quick
    }
}

fn text_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn request(name: u8) -> Value {
    match name {
        // Not a request, one without an id, one with a duplicate id.
        0 => json!("odd"),
        1 => json!({"message": {"text": "nameless"}, "response": []}),
        2..=4 => json!({"requestId": "same", "message": {"text": "again"}, "response": [{"value": "x"}]}),
        _ => json!({"requestId": format!("r{name}"), "message": {"text": format!("é\u{1f332} {name}")},
            "response": [{"value": "a"}, {"value": format!("}}]\"\\ {name}")}], "result": {}}),
    }
}

/// A line of any kind, mostly of those that VS Code writes.
fn line(what: u8, at: usize, name: u8) -> String {
    let value = match what {
        0 => {
            json!({"kind": 0, "v": {"version": 3, "requests": (0..name % 7).map(request).collect::<Vec<_>>(), "x": [1]}})
        }
        1 => json!({"kind": 2, "k": ["requests"], "v": [request(name), request(name ^ 1)]}),
        2 => json!({"kind": 2, "k": ["requests"], "v": [request(name)], "i": at}),
        3 => json!({"kind": 2, "k": ["requests"], "i": at}),
        4 => json!({"kind": 1, "k": ["requests", at], "v": request(name)}),
        5 => json!({"kind": 3, "k": ["requests", at]}),
        6 => json!({"kind": 2, "k": ["requests", at], "v": [1]}),
        7 => json!({"kind": 1, "k": ["requests"], "v": [request(name)]}),
        8 => json!({"kind": 3, "k": ["requests", at, "response"]}),
        9 => json!({"kind": 1, "k": ["customTitle"], "v": "title"}),
        10 => json!({"kind": 2, "k": ["requests", at, "response"], "v": [{"value": "cut"}], "i": name % 3}),
        11 => json!({"kind": 2, "k": ["requests", at, "gap"], "v": ["far"], "i": 5_000}),
        12 => json!({"kind": 1, "k": ["requests", "odd"], "v": 1}),
        13 => json!({"kind": 1, "k": ["requests", at, "message", "text"], "v": format!("changed {name}")}),
        14 => {
            return ["nonsense\n", "\n", "  \n", "{\"kind\":9}\n", "{\"kind\":1,\"k\":[\"x\",\"y\"]}\n"][at % 5]
                .to_owned();
        }
        15..=19 => json!({"kind": 2, "k": ["requests", at, "response"], "v": [{"value": format!("more {name}")}]}),
        _ => json!({"kind": 2, "k": ["requests"], "v": [request(name)]}),
    };
    // Some writers leave blanks around.
    let blank = if name.is_multiple_of(5) { " " } else { "" };
    format!("{blank}{value}{blank}\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_newest_turns_of_any_mutation_log_are_those_of_the_whole(
        lines in prop::collection::vec((0u8..26, 0usize..12, any::<u8>()), 0..60),
        has_start in prop::bool::weighted(0.9),
    ) {
        let mut text = if has_start { line(0, 0, 6) } else { String::new() };
        text.extend(lines.into_iter().map(|(what, at, name)| line(what, at, name)));
        let written = SessionFixture::new(TranscriptSource::VsCode, "s.jsonl", &text);
        written.check(written.tail_index().as_ref());
    }

    #[test]
    fn the_newest_turns_of_any_flat_file_are_those_of_the_whole(
        names in prop::collection::vec(any::<u8>(), 0..20),
        end in 0usize..200,
    ) {
        let requests: Vec<Value> = names.into_iter().map(request).collect();
        let mut text = json!({"version": 3, "a": 1, "requests": requests, "z": []}).to_string().into_bytes();
        // Files are torn, and have invalid UTF-8.
        if end < text.len() && end % 3 == 0 {
            text.truncate(text.len() - end);
        } else if end < text.len() && end % 3 == 1 {
            text[end] = 0xff;
        }
        let written = SessionFixture::new(TranscriptSource::VsCode, "s.json", &text);
        written.check(written.tail_index().as_ref());
    }

}

proptest! {
    // Each case takes some hundred reads.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_newest_turns_of_any_growing_log_are_those_of_the_whole(
        turns in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        for (source, name, log) in append_log(&turns) {
            let written = SessionFixture::new(source, name, &log);
            written.check(written.tail_index().as_ref());
            // The index from before the file grew stays valid.
            let ends: Vec<usize> = log.match_indices('\n').map(|(at, _)| at + 1).collect();
            std::fs::write(&written.path, &log[..ends[cut.index(ends.len())]]).unwrap();
            let tail_index = written.tail_index();
            let (bookmark, before) = written.collect_changes(None);
            append(&written.path, &log[ends[cut.index(ends.len())]..]);
            written.check(tail_index.as_ref());
            // A session's changes are the same after reading on and after a full read.
            let (_, whole) = written.collect_changes(None);
            if let Some(bookmark) = bookmark {
                let (again, grown) = written.collect_changes(Some((&bookmark, before.before)));
                prop_assert_eq!(&grown.changes, &whole.changes, "{}", source);
                prop_assert_eq!(&grown.before, &whole.before);
                prop_assert!(again.is_some());
            }
            prop_assert!(!whole.changes.is_empty() || !log.contains("f0"), "{}", source);
        }
    }
}

fn append(path: &Path, text: &str) {
    use std::io::Write;
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Logs of every tool with append-only logs: turns with some answers each, some with an older parent turn.
fn append_log(turns: &[(u8, prop::sample::Index)]) -> Vec<(TranscriptSource, &'static str, String)> {
    let mut pi = vec![json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"})];
    let mut claude = Vec::new();
    let mut codex = vec![json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}})];
    let mut copilot = vec![json!({"type": "session.start", "id": "e", "data": {"sessionId": "s"}})];
    let mut leaf: Option<usize> = None;
    let mut entries = 0;
    for (number, (answers, back)) in turns.iter().enumerate() {
        if *answers == 3 && entries > 0 {
            leaf = Some(back.index(entries));
        }
        let parent = |at: Option<usize>| at.map(|at| format!("e{at}"));
        for answer in 0..=*answers {
            let (id, role) = (format!("e{entries}"), if answer == 0 { "user" } else { "assistant" });
            let words = format!("{role} {number} {answer}");
            pi.push(json!({"type": "message", "id": id, "parentId": parent(leaf),
                "message": {"role": role, "content": [{"type": "text", "text": words}]}}));
            claude.push(
                json!({"type": role, "uuid": id, "parentUuid": parent(leaf), "isSidechain": false, "sessionId": "s",
                "message": {"id": id, "role": role, "content": [{"type": "text", "text": words}]}}),
            );
            codex.push(json!({"type": "event_msg", "payload":
                {"type": if answer == 0 { "user_message" } else { "agent_message" }, "message": words}}));
            copilot.push(json!({"type": if answer == 0 { "user.message" } else { "assistant.message" }, "id": id,
                "data": {"content": words, "messageId": id}}));
            leaf = Some(entries);
            entries += 1;
        }
        if *answers > 0 {
            // Each answer edits a file: it is written, changed, or, if the tool can, deleted.
            let (start, done, call) = (format!("e{entries}"), format!("e{}", entries + 1), format!("c{number}"));
            let path = format!("f{}", number % 3);
            let input = match number % 5 {
                0 | 3 => json!({"path": path, "content": "one\ntwo\n"}),
                _ => json!({"path": path, "oldText": "two", "newText": format!("{number}\nthree")}),
            };
            let (name, input) = (if number % 5 % 3 == 0 { "write" } else { "edit" }, &input);
            let head = ["Add", "Update", "Delete"][number % 3];
            let patch = format!("*** Begin Patch\n*** {head} File: {path}\n+x\n*** End Patch");
            pi.push(json!({"type": "message", "id": start, "parentId": parent(leaf), "message": {"role": "assistant",
                "content": [{"type": "toolCall", "id": call, "name": name, "arguments": input}]}}));
            pi.push(json!({"type": "message", "id": done, "parentId": start,
                "message": {"role": "toolResult", "toolCallId": call, "content": "ok"}}));
            claude.push(json!({"type": "assistant", "uuid": start, "parentUuid": parent(leaf), "sessionId": "s",
                "message": {"id": start, "content": [{"type": "tool_use", "id": call, "name": name, "input": input}]}}));
            claude.push(json!({"type": "user", "uuid": done, "parentUuid": start, "sessionId": "s",
                "message": {"content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]}}));
            codex.push(json!({"type": "response_item", "payload":
                {"type": "custom_tool_call", "call_id": call, "name": "apply_patch", "input": patch}}));
            codex.push(json!({"type": "response_item", "payload":
                {"type": "custom_tool_call_output", "call_id": call, "output": "ok"}}));
            copilot.push(json!({"type": "tool.execution_start", "id": start,
                "data": {"toolCallId": call, "toolName": name, "arguments": input}}));
            copilot.push(json!({"type": "tool.execution_complete", "id": done,
                "data": {"toolCallId": call, "success": true, "result": {"content": "ok"}}}));
            leaf = Some(entries + 1);
            entries += 2;
        }
        if *answers == 2 {
            codex.push(json!({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}));
        }
    }
    vec![
        (TranscriptSource::Pi, "2026_s.jsonl", text_of(&pi)),
        (TranscriptSource::Claude, "s.jsonl", text_of(&claude)),
        (TranscriptSource::Codex, "rollout-2026-01-01T00-00-00-s.jsonl", text_of(&codex)),
        (TranscriptSource::CopilotCli, "s/events.jsonl", text_of(&copilot)),
    ]
}

#[test]
fn what_a_tool_usually_writes_is_read_from_its_end() {
    let mut log = line(0, 0, 0);
    for number in 0..40 {
        log += &line(25, 0, 10 + number);
        log += &line(15, usize::from(number), number);
        log += &line(13, usize::from(number), number);
    }
    let written = SessionFixture::new(TranscriptSource::VsCode, "s.jsonl", &log);
    assert_eq!(written.check(written.tail_index().as_ref()), 2 * 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_newest_turns_of_any_gemini_log_are_those_of_the_whole(
        lines in prop::collection::vec((0u8..12, 0usize..12), 0..60),
    ) {
        let head = json!({"sessionId": "s", "startTime": "2026-01-02T03:04:05.000Z"});
        let lines = lines.into_iter().map(|(what, at)| match what {
            0 => json!({"$rewindTo": format!("m{at}")}),
            1 => json!({"$set": {"messages": [{"id": format!("m{at}"), "type": "user", "content": "again"}]}}),
            2 => json!({"$set": {"summary": "title"}}),
            3 => json!({"id": format!("m{at}"), "type": "user", "content": "<session_context> here"}),
            4 => json!("odd"),
            5..=7 => json!({"id": format!("m{at}"), "type": "user", "content": [{"text": format!("say {at}")}]}),
            _ => json!({"id": format!("m{at}"), "type": "gemini", "content": format!("said {what}"), "toolCalls": [{"id": "c"}]}),
        });
        let lines: Vec<Value> = std::iter::once(head).chain(lines).collect();
        let written = SessionFixture::new(TranscriptSource::Gemini, "session-x.jsonl", text_of(&lines));
        written.check(written.tail_index().as_ref());
    }
}

#[test]
fn a_file_that_was_changed_is_read_whole() {
    let requests: Vec<Value> = (10..20).map(request).collect();
    let text = json!({"requests": requests}).to_string();
    let written = SessionFixture::new(TranscriptSource::VsCode, "s.json", &text);
    let tail_index = written.tail_index().unwrap();
    assert!(from_tail_index(&written.location(), &tail_index, TailLimit::Turns(3)).is_some());
    std::fs::write(&written.path, text.replace("\"r1", "\"longer")).unwrap();
    assert!(from_tail_index(&written.location(), &tail_index, TailLimit::Turns(3)).is_none());
    written.check(Some(&tail_index));
}

#[test]
fn lines_that_hang_from_far_away_do_not_have_a_log_read_whole() {
    let mut log = vec![json!({"type": "session", "version": 3, "id": "s"})];
    for number in 0..200 {
        // Each has a parent far before it.
        let parent = (number > 0).then(|| format!("e{}", number * 7 % number));
        log.push(json!({"type": "message", "id": format!("e{number}"), "parentId": parent,
            "message": {"role": "user", "content": format!("turn {number}")}}));
    }
    let written = SessionFixture::new(TranscriptSource::Pi, "2026_s.jsonl", text_of(&log));
    let tail_index = written.tail_index().unwrap();
    let TailLayout::ResumePoints(steps) = &tail_index.places else { panic!("{tail_index:?}") };
    let step = steps.before(TailLimit::Turns(50)).unwrap();
    assert!(step.bookmark.turns > 100, "{step:?}");
    let without = &step.bookmark;
    let with = crate::Bookmark { asked: steps.asked_behind(step).collect(), ..without.clone() };
    let bytes = std::fs::read(&written.path).unwrap();
    // A full read would need the lines before the bookmark.
    let end = usize::try_from(without.offset).unwrap();
    let mut torn = bytes.clone();
    torn[..end].fill(b' ');
    let read = |from: &crate::Bookmark| {
        let mut turns = Vec::new();
        crate::pi::read_log(&torn, "s", Some(from), &mut |turn| turns.push(turn)).unwrap();
        turns
    };
    let (_, whole) = read_with_turns(reader_of(TranscriptSource::Pi), &written.location()).unwrap();
    assert_eq!(read(&with), whole[usize::try_from(with.turns).unwrap()..]);
    assert_ne!(read(without), read(&with));
}
