use grove_transcript::{TextPosition, TextRange, TranscriptChat};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn call(edits: Vec<Replacement>) -> TranscriptPart {
    let input = ToolInput::Edits(edits);
    TranscriptPart::ToolCall(Box::new(TranscriptToolCall {
        state: CallState::Complete,
        input,
        ..TranscriptToolCall::default()
    }))
}

fn replace(path: &str, before: &str, after: &str) -> Replacement {
    Replacement { path: path.into(), before: Some(before.into()), after: after.into(), ..Replacement::default() }
}

fn write(path: &str, after: &str) -> Replacement {
    Replacement { path: path.into(), kind: EditKind::Create, after: after.into(), ..Replacement::default() }
}

fn edit(path: &str, kind: EditKind) -> TranscriptEdit {
    TranscriptEdit { kind, place: FileLocation::local(path), ..TranscriptEdit::default() }
}

fn part(edit: TranscriptEdit) -> TranscriptPart {
    TranscriptPart::Edit(Box::new(edit))
}

fn change(from: (u64, u64), to: (u64, u64), text: &str) -> TextChange {
    let at = |(line, column)| TextPosition { line, column };
    TextChange { range: TextRange { start: at(from), end: at(to) }, text: text.into() }
}

/// The changes of turns, each as the file's name, the operation's first letter, and lines.
fn changes(turns: Vec<Vec<TranscriptPart>>) -> Vec<String> {
    lines_of(&of(turns))
}

fn of(turns: Vec<Vec<TranscriptPart>>) -> SessionChanges {
    let turns: Vec<_> = turns.into_iter().map(|parts| TranscriptTurn { parts, ..TranscriptTurn::default() }).collect();
    SessionChanges::of(&turns)
}

fn lines_of(changes: &SessionChanges) -> Vec<String> {
    let files = changes.files.iter().map(|(path, change)| {
        let operation = match change.operation {
            ChangeOperation::Created => 'C',
            ChangeOperation::Modified => 'M',
            ChangeOperation::Deleted => 'D',
        };
        let from = change.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        format!("{operation} {path} +{} -{}{from}", change.insertions, change.deletions)
    });
    files.collect()
}

#[test]
fn a_file_is_told_once_with_all_lines_that_came_and_went() {
    let turns = vec![
        vec![call(vec![replace("/a", "same\nold\nsame", "same\nnew\nmore\nsame"), replace("/b", "x", "y")])],
        vec![call(vec![replace("/a", "1\n2\n", "")])],
    ];
    assert_eq!(changes(turns), ["M /a +2 -3", "M /b +1 -1"]);
}

#[test]
fn what_comes_changes_and_goes_is_told_as_what_it_comes_to() {
    let one = |steps: &[EditKind]| {
        let turns: Vec<_> = steps.iter().map(|kind| vec![part(edit("/a", *kind))]).collect();
        let apart = changes(turns);
        let together = changes(vec![steps.iter().map(|kind| part(edit("/a", *kind))).collect()]);
        assert_eq!(apart, together, "in one turn or in several: {steps:?}");
        apart.first().map(|file| file.as_bytes()[0] as char)
    };
    use EditKind::{Create, Delete, Edit};
    assert_eq!(one(&[Create, Edit]), Some('C'));
    assert_eq!(one(&[Edit, Create]), Some('M'), "what is written whole was there");
    assert_eq!(one(&[Edit, Delete]), Some('D'));
    assert_eq!(one(&[Create, Delete]), None);
    assert_eq!(one(&[Create, Delete, Create]), Some('C'));
    assert_eq!(one(&[Delete, Create]), Some('M'));
    assert_eq!(one(&[Edit, Delete, Create, Delete]), Some('D'));
}

#[test]
fn a_file_that_moved_is_told_under_its_new_name() {
    let moved = |from: &str, to: &str| {
        part(TranscriptEdit { from: Some(FileLocation::local(from)), ..edit(to, EditKind::Rename) })
    };
    let wrote = || call(vec![write("/new", "1\n2")]);
    let edited = || call(vec![replace("/old", "x", "y")]);
    for apart in [true, false] {
        let turns = |parts: Vec<TranscriptPart>| match apart {
            true => parts.into_iter().map(|part| vec![part]).collect(),
            false => vec![parts],
        };
        assert_eq!(changes(turns(vec![edited(), moved("/old", "/b")])), ["M /b +1 -1 from /old"]);
        assert_eq!(changes(turns(vec![moved("/old", "/b"), moved("/b", "/c")])), ["M /c +0 -0 from /old"]);
        let lines = changes(turns(vec![wrote(), moved("/new", "/c")]));
        assert!(lines.len() == 1 && lines[0].starts_with("C /c +2 -0"), "{lines:?}");
    }
}

#[test]
fn an_edit_that_is_told_in_several_ways_counts_once() {
    let text = TranscriptEdit { changes: vec![change((1, 1), (1, 1), "a\nb\n")], ..edit("/a", EditKind::Edit) };
    let sum = |kind, added| TranscriptEdit { added: Some(added), removed: Some(0), ..edit("/a", kind) };
    let wanted = || call(vec![write("/a", "// ...\na\nb\n// ...\n")]);
    assert_eq!(changes(vec![vec![wanted(), part(text.clone())]]), ["C /a +2 -0"], "what came of it counts");
    assert_eq!(changes(vec![vec![wanted()]]), ["C /a +4 -0"]);
    let turn = vec![wanted(), part(text), part(sum(EditKind::Edit, 3))];
    assert_eq!(changes(vec![turn]), ["C /a +3 -0"]);
    let twice = vec![part(sum(EditKind::Edit, 3)), part(sum(EditKind::Edit, 4))];
    assert_eq!(changes(vec![twice]), ["M /a +7 -0"], "two edits told in one way are two");
    let gone = vec![wanted(), part(edit("/a", EditKind::Delete))];
    assert_eq!(changes(vec![gone]), [""; 0], "it came and went, though no way tells both");
}

#[test]
fn only_calls_that_came_to_a_good_end_changed_anything() {
    let with = |state, exit_code| {
        let input = ToolInput::Edits(vec![write("/a", "x")]);
        let call = TranscriptToolCall { state, exit_code, input, ..TranscriptToolCall::default() };
        changes(vec![vec![TranscriptPart::ToolCall(Box::new(call))]]).len()
    };
    assert_eq!(with(CallState::Complete, None), 1);
    assert_eq!(with(CallState::Complete, Some(1)), 0);
    for state in [CallState::Failed, CallState::Refused, CallState::Interrupted] {
        assert_eq!(with(state, None), 0);
    }
}

#[test]
fn what_subagents_and_patches_in_commands_changed_counts() {
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n+z\n*** End Patch\nEOF";
    let command = ToolInput::Command { command: patch.into(), folder: None, language: None, background: false };
    let shell = TranscriptToolCall { state: CallState::Complete, input: command, ..TranscriptToolCall::default() };
    let inner = TranscriptTurn { parts: vec![TranscriptPart::ToolCall(Box::new(shell))], ..TranscriptTurn::default() };
    let chat = TranscriptChat { turns: vec![inner], ..TranscriptChat::default() };
    let outer = TranscriptToolCall { subagent: Some(Box::new(chat)), ..TranscriptToolCall::default() };
    let turns = vec![vec![TranscriptPart::ToolCall(Box::new(outer)), call(vec![write("./src/b.rs", "x")])]];
    assert_eq!(changes(turns), ["M src/a.rs +2 -1", "C src/b.rs +1 -0"]);
}

#[test]
fn lines_that_two_texts_have_in_common_stay() {
    for (before, after, expected) in [
        ("", "", (0, 0)),
        ("", "a\nb", (2, 0)),
        ("a\nb\n", "", (0, 2)),
        ("a\nb\nc\nd", "a\nx\nc\ny", (2, 2)),
        ("a\nb\nc", "b\nc\nd", (1, 1)),
        ("a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc", (2, 3)),
        ("x", "x\n", (0, 0)),
    ] {
        assert_eq!(replaced(before, after), expected, "{before:?} {after:?}");
    }
    // Very similar and very different texts cost about the same, and little.
    let text = |step: usize| (0..20_000).map(|line| format!("{}\n", line * step)).collect::<String>();
    let (came, went) = replaced(&text(2), &text(3));
    assert!(came == went && (13_333..20_000).contains(&came), "{came}");
    let long = "x\n".repeat(MAX_COMPARED / 2);
    assert_eq!(replaced(&long, "x\n"), (1, long.lines().count() as u64));
}

proptest! {
    #[test]
    fn as_few_lines_come_and_go_as_possible(before in prop::collection::vec(0..4_u8, 0..12), after in prop::collection::vec(0..4_u8, 0..12)) {
        let text = |lines: &[u8]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        // The longest common subsequence, by the table.
        let mut table = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
        for (x, one) in before.iter().enumerate() {
            for (y, other) in after.iter().enumerate() {
                table[x + 1][y + 1] = if one == other { table[x][y] + 1 } else { table[x][y + 1].max(table[x + 1][y]) };
            }
        }
        let common = table[before.len()][after.len()];
        let expected = ((after.len() - common) as u64, (before.len() - common) as u64);
        prop_assert_eq!(replaced(&text(&before), &text(&after)), expected);
    }
}

#[test]
fn lines_of_a_changed_stretch_are_counted_as_a_person_would() {
    for (change, expected) in [
        (change((3, 1), (3, 1), "a\nb\n"), (2, 0)),
        (change((1, 1), (1, 1), "a\nb"), (2, 0)),
        (change((3, 9), (3, 9), "\na\nb"), (2, 0)),
        (change((3, 5), (3, 5), "x"), (1, 1)),
        (change((3, 1), (5, 1), ""), (0, 2)),
        (change((3, 1), (5, 1), "x\n"), (1, 2)),
        (change((3, 2), (3, 9), "x"), (1, 1)),
        (change((3, 2), (4, 9), "x\ny\nz"), (3, 2)),
        (change((3, 1), (3, 1), ""), (0, 0)),
        (change((9, 1), (3, 1), "x\n"), (1, 0)),
        (change((0, 0), (u64::MAX, 0), "x"), (1, u64::MAX)),
    ] {
        assert_eq!(changed(&change), expected, "{change:?}");
    }
}

#[test]
fn a_thousand_files_are_told_and_the_rest_is_counted() {
    let files: Vec<_> = (0..MAX_CHANGES + 7).map(|at| write(&format!("/{at}"), "x")).collect();
    let long = write(&"x".repeat(MAX_NAME + 1), "x");
    let all = of(vec![vec![call(files)], vec![call(vec![long, write("/3", "y")])]]);
    assert_eq!((all.files.len(), all.left_out), (MAX_CHANGES, 8));
    assert_eq!(all.files["/3"].insertions, 2, "what is told goes on being told");
}

#[test]
fn two_spellings_of_one_file_are_one_file_once_its_folder_is_known() {
    let all = of(vec![vec![call(vec![write("a.rs", "x"), replace("/w/a.rs", "1", "2"), write("C:\\x", "y")])]]);
    assert_eq!(lines_of(&all.clone().below(Some("/w/"))), ["C /w/a.rs +2 -1", "C C:\\x +1 -0"]);
    assert_eq!(all.clone().below(None), all);
    assert_eq!(lines_of(&all.below(Some("D:\\src")))[0], "C D:\\src\\a.rs +1 -0");
}

#[test]
fn a_file_of_another_machine_has_its_uri_and_is_one_with_what_its_calls_name() {
    let there =
        FileLocation { uri: "vscode-remote://box/w/a".into(), host: Some("box".into()), ..FileLocation::local("/w/a") };
    let turn = vec![
        call(vec![replace("/w/a", "1", "2")]),
        part(TranscriptEdit {
            place: there,
            changes: vec![change((1, 1), (2, 1), "x\n")],
            ..TranscriptEdit::default()
        }),
    ];
    let all = of(vec![turn]);
    assert_eq!(
        (lines_of(&all), all.files[0].uri.as_deref()),
        (vec!["M /w/a +1 -1".to_owned()], Some("vscode-remote://box/w/a"))
    );
}

#[test]
fn what_was_changed_is_read_as_it_was_written() {
    let all = of(vec![vec![call(vec![write("/a", "x")]), part(edit("/b", EditKind::Delete))]]);
    let text = serde_json::to_value(&all).unwrap();
    assert_eq!(
        text,
        json!({"files": {"/a": {"operation": "created", "insertions": 1}, "/b": {"operation": "deleted"}}})
    );
    assert_eq!(serde_json::from_value::<SessionChanges>(text).unwrap(), all);
}
