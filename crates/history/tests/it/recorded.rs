//! Recordings of real tools, and the expected results.

use std::fs;
use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use grove_fixtures::{both, outside};
use grove_history::copilot_cli::CopilotCli;
use grove_history::vscode::{index, replay, workspace_of};
use grove_history::{Hints, HistoryReader, StoreRoot, read_with_turns};
use grove_transcript::{
    Approval, DamageKind, ToolInput, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptToolKind,
    TranscriptTurn, TurnOutcome,
};

use crate::support::{calls, cases, everything, json, read_file};

fn read(fixtures: &Path, name: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    read_file(TranscriptSource::VsCode, &fixtures.join(name))
}

fn assert_replayed(log: &Path, expected: &Path) {
    let replayed = replay(fs::read(log).unwrap().as_slice()).unwrap();
    assert!(replayed.damage.marks.is_empty(), "{}: {:?}", expected.display(), replayed.damage);
    assert_eq!(replayed.state, Some(json(&fs::read_to_string(expected).unwrap())), "{}", expected.display());
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_recorded_mutation_log_comes_to_the_state_that_vs_code_reads() {
    let folder = outside("vscode/copilot-chat-jsonl/codingame");
    let id = "b881ccf7-2aa1-4851-b4bb-91e2cbc0fd1d";
    let expected = folder.join(format!("expected/{id}.json"));
    assert_replayed(&folder.join(format!("chatSessions/{id}.jsonl")), &expected);
}

#[test]
fn mutation_logs_come_to_the_state_that_vs_code_reads() {
    for (case, log) in [
        ("jsonl-full-3-turns", "f68e0cba-74ec-4bed-8256-b58925a6f40d.jsonl"),
        ("jsonl-restore-checkpoint", "session.jsonl"),
        ("jsonl-edit-resend", "session.jsonl"),
        ("jsonl-second-initial", "session.jsonl"),
    ] {
        let folder = cases("vscode").join(case);
        assert_replayed(&folder.join(log), &folder.join("expected.json"));
    }
}

#[test]
fn logs_that_vs_code_refuses_give_what_they_hold() {
    let fixtures = cases("vscode");
    let marks = |name: &str| read(&fixtures, &format!("{name}/session.jsonl")).0.damage.marks;
    assert_eq!(marks("jsonl-missing-initial"), [DamageKind::MissingStart]);
    assert_eq!(marks("jsonl-torn-last-line"), [DamageKind::TornTail]);
    assert_eq!(marks("jsonl-empty"), [DamageKind::Empty]);
    assert!(marks("jsonl-stub-only-initial").is_empty());
    let (session, turns) = read(&fixtures, "jsonl-missing-initial/session.jsonl");
    let (whole, expected) = read(&fixtures, "jsonl-full-3-turns/f68e0cba-74ec-4bed-8256-b58925a6f40d.jsonl");
    assert_eq!(turns, expected, "requests are pushed whole, so none of them is lost with the beginning");
    assert_eq!((session.turns, whole.turns), (3, 3));
    let (stub, turns) = read(&fixtures, "jsonl-stub-only-initial/session.jsonl");
    assert_eq!((stub.first_message.as_str(), turns.len()), ("(No messages)", 0));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_recorded_session_with_built_in_tools_is_read() {
    let fixtures = outside("vscode");
    let (session, turns) = read(&fixtures, "copilot-chat-json/splitrail-f56f201a-v3-mcp-tools.json");
    assert_eq!(session.source_id, "f56f201a-672e-4cc5-ada9-4736258cc586");
    assert_eq!(session.title.as_deref(), Some("Adding a debug option to the application"));
    assert!(session.has_id("894031a7-b7e0-46d7-ae36-5d11c9cf0ac0"), "its agent's name for it");
    assert_eq!((session.turns, session.turns_completed), (3, 3));
    assert_eq!(session.created_at, Some(Timestamp(1_762_883_109_992)));
    assert_eq!(session.models, ["litellm/anthropic/claude-haiku-4.5"]);
    assert_eq!(session.tools, ["grep_search", "read_file"]);
    assert_eq!(session.workspace.repository.as_deref(), Some("sample/splitrail"));
    assert_eq!(
        (session.workspace.system.as_deref(), session.workspace.shell.as_deref()),
        (Some("Linux"), Some("fish"))
    );
    assert!(!session.damage.is_recovered());

    let first = &turns[0];
    assert_eq!((first.first_response_ms, first.total_ms), (Some(6_323), Some(21_618)));
    let model = first.model.as_ref().unwrap();
    assert_eq!(
        (model.vendor.as_deref(), model.display_name.as_deref()),
        (Some("generic-copilot"), Some("LiteLLM/Haiku 4.5"))
    );
    assert_eq!(model.multiplier, Some(0.into()));
    let agent = first.agent.as_ref().unwrap();
    assert_eq!((agent.id.as_str(), agent.version.as_deref()), ("github.copilot.editsAgent", Some("0.33.2025111102")));
    let calls = calls(&first.parts);
    let told: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.kind)).collect();
    let (search, read) = (("grep_search", TranscriptToolKind::Search), ("read_file", TranscriptToolKind::Read));
    assert_eq!(told, [search, read, read, read, search]);
    for call in &calls {
        assert!(call.model_id.as_ref().unwrap().starts_with("toolu_"), "{call:?}");
        assert!(call.raw_input.is_some() && call.output.as_ref().unwrap().raw.is_some());
        assert_eq!(call.approval, Approval::NotNeeded { reason: None });
    }
    assert!(matches!(&calls[1].input, ToolInput::File { place } if place.name() == "main.rs"));
    assert!(calls[1].output.as_ref().unwrap().text.starts_with("```rust\n\nuse anyhow::{Context, Result};\n"));
    assert_eq!(calls[4].output.as_ref().unwrap().text, "No matches found");
    assert_eq!(turns[2].code_blocks.len(), 4);
    let blocks: Vec<&str> = first.context.iter().map(|block| block.name.as_str()).collect();
    let expected = [
        "context",
        "editorContext",
        "repoContext",
        "reminderInstructions",
        "userRequest",
        "environment_info",
        "workspace_info",
    ];
    assert_eq!(blocks, expected);
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn every_recorded_tool_result_is_a_tree_and_none_is_empty_when_flattened() {
    let fixtures = outside("vscode");
    let mut seen = 0;
    for name in recorded(&fixtures) {
        for turn in read_file(TranscriptSource::VsCode, &name).1 {
            for call in turn.tool_calls().filter(|call| call.model_id.is_some()) {
                let Some(output) = &call.output else { continue };
                assert!(!output.text.trim().is_empty(), "{}: {call:?}", name.display());
                assert!(output.raw.is_some());
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 19);
}

fn recorded(fixtures: &Path) -> Vec<PathBuf> {
    let folders = ["copilot-chat-json", "copilot-chat-export"].map(|folder| fixtures.join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    files.map(|entry| entry.unwrap().path()).collect()
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_recorded_session_of_mid_2025_is_read() {
    let fixtures = outside("vscode");
    let (session, turns) = read(&fixtures, "copilot-chat-json/remember-mcp-f68e0cba-74ec-4bed-8256-b58925a6f40d.json");
    assert_eq!((session.turns, session.turns_completed), (3, 1));
    let outcomes: Vec<_> = turns.iter().map(|turn| turn.outcome.clone()).collect();
    assert_eq!(outcomes, [TurnOutcome::Complete, TurnOutcome::Cancelled, TurnOutcome::Cancelled]);
    let calls = calls(&turns[0].parts);
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.approval == Approval::Person { button: None }), "a yes of before 1.104");
    assert_eq!((calls[0].kind, calls[0].shown_name.as_deref()), (TranscriptToolKind::Search, None));
    assert!(calls[1].model_id.is_some() && calls[2].model_id.is_none(), "the call is paired with the first that fits");
    let edits = turns[0].parts.iter().filter(|part| matches!(part, TranscriptPart::Edit(_))).count();
    assert_eq!(edits, 1);
    assert!(turns[0].references.len() > 10);
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_recorded_export_is_read() {
    let fixtures = outside("vscode");
    let (session, turns) = read(&fixtures, "copilot-chat-export/epics-p47-chat-export.json");
    assert_eq!(session.created_at, turns[0].started_at);
    assert_eq!((session.source_id.as_str(), session.turns, session.version), ("epics-p47-chat-export", 6, None));
    assert_eq!(session.workspace.folders.len(), 3, "a cache key of three folders, or what the prompt says");
    assert!(turns.iter().all(|turn| turn.outcome == TurnOutcome::Complete));
    assert!(turns.iter().all(|turn| turn.parts.iter().any(|part| matches!(part, TranscriptPart::Reasoning { .. }))));
    let last = turns.last().unwrap();
    let call = calls(&last.parts)[0];
    assert_eq!((call.name.as_str(), call.shown_name.as_deref()), ("create_file", Some("copilot_createFile")));
    assert_eq!(call.summary.as_deref(), Some("Created helm-values-propagation.md"));
    let ToolInput::Edits(edits) = &call.input else { panic!("{:?}", call.input) };
    assert!(edits[0].path.ends_with("helm-values-propagation.md"));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn recorded_sessions_of_other_makers_are_read() {
    let fixtures = outside("vscode");
    let (session, turns) = read(&fixtures, "copilot-chat-json/rajbos-session-01-synthetic-minimal.json");
    assert_eq!((session.turns, turns[0].usage.as_ref().unwrap().input_tokens), (5, Some(42)));
    assert!(turns[0].text().starts_with("## Token Estimation"), "text in a part of kind markdownContent");
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn the_recorded_index_is_read_and_nothing_is_made_beside_it() {
    let fixtures = outside("vscode");
    let store = crate::support::TestStore::new();
    store.put("state.vscdb", fs::read(fixtures.join("state-vscdb/codingame-state.vscdb")).unwrap());
    let before = everything(store.path());
    let index = index::read(store.path()).unwrap().unwrap();
    let entry = &index["b881ccf7-2aa1-4851-b4bb-91e2cbc0fd1d"];
    assert_eq!(entry.title.as_deref(), Some("Heyyy (:"));
    assert_eq!(entry.created_at, Some(Timestamp(1_771_350_469_673)));
    assert_eq!(entry.modified_at, Some(Timestamp(1_771_351_806_234)));
    assert_eq!(everything(store.path()), before);
}

#[test]
fn workspace_files_are_read_in_each_form() {
    let fixtures = cases("vscode");
    for (name, folder, host, file) in [
        ("single-folder", Some("/Users/u/code/my app"), None, None),
        ("windows", Some("c:\\Users\\me\\proj"), None, None),
        ("remote-ssh", Some("/home/u/app"), Some("ssh-remote+devbox"), None),
        ("multi-root", None, None, Some("/Users/u/code/all.code-workspace")),
        ("multi-root-legacy-configuration", None, None, Some("/Users/u/code/all.code-workspace")),
    ] {
        let json = fs::read(fixtures.join(format!("workspace-json/{name}.json"))).unwrap();
        let workspace = workspace_of(&json).unwrap();
        let place = workspace.folders.first();
        assert_eq!(place.and_then(|place| place.path.as_deref()), folder, "{name}");
        assert_eq!(place.and_then(|place| place.host.as_deref()), host, "{name}");
        assert_eq!(workspace.file.as_ref().and_then(|file| file.path.as_deref()), file, "{name}");
    }
}

#[test]
fn recorded_sessions_of_the_copilot_cli_are_read() {
    for folder in both("copilot-cli") {
        check_sessions_of_the_copilot_cli(&folder);
    }
}

fn check_sessions_of_the_copilot_cli(fixtures: &Path) {
    let read = |name: &str| read_file(TranscriptSource::CopilotCli, &fixtures.join(name));
    let (session, turns) = read("local-sdk-full-and-forks/11111111-1111-4111-8111-111111111111/events.jsonl");
    assert_eq!((session.title.as_deref(), session.turns), (Some("hello local"), 7));
    assert_eq!(session.workspace.branch.as_deref(), Some("master"));
    assert_eq!(session.version.as_deref(), Some("1.0.102"));
    assert_eq!(session.tools, ["bash", "sql", "create", "my_tool", "ask_user"]);
    assert!(turns.iter().all(|turn| turn.outcome == TurnOutcome::Complete));
    assert!(!session.damage.is_recovered());
    let bash = calls(&turns[1].parts)[0];
    assert_eq!((bash.kind, bash.exit_code), (TranscriptToolKind::Shell, Some(0)));
    assert!(matches!(&bash.input, ToolInput::Command { command, .. } if command == "echo hi-from-tool"));
    assert_eq!(bash.approval, Approval::Person { button: Some("approved".into()) });
    assert_eq!(turns[1].usage.as_ref().unwrap().input_tokens, Some(22_204), "two calls of the model");
    let total = session.usage.input_tokens.unwrap();
    let sum: u64 = turns.iter().filter_map(|turn| turn.usage.as_ref()?.input_tokens).sum();
    assert!(total >= sum, "what the program counts in the end takes compaction in: {total} {sum}");

    let (fork, turns) = read("local-sdk-full-and-forks/0f1829d1-3b2e-44e8-a246-7896319d11be/events.jsonl");
    assert_eq!(
        (fork.source_id.as_str(), fork.title.as_deref()),
        ("0f1829d1-3b2e-44e8-a246-7896319d11be", Some("my fork"))
    );
    assert!(turns.len() > 7);
    assert_eq!(fork.parent.as_deref(), Some("11111111-1111-4111-8111-111111111111"));
    assert_eq!(session.parent, None, "the source is told of its fork too");
    let (acp, _) = read("local-acp-mode/4bbe4702-6251-4ced-80c3-7d7caa860121/events.jsonl");
    assert!(acp.turns > 0 && !acp.damage.is_recovered());
}

#[test]
fn plan_and_checkpoints_of_a_recorded_session_are_read() {
    for folder in both("copilot-cli") {
        check_plan_and_checkpoints(&folder);
    }
}

fn check_plan_and_checkpoints(fixtures: &Path) {
    let folder = fixtures.join("local-sdk-full-and-forks/11111111-1111-4111-8111-111111111111");
    let checkpoints = grove_history::copilot_cli::checkpoints(&folder).unwrap();
    assert_eq!(checkpoints.len(), 1);
    assert_eq!(checkpoints[0].title, "Fake checkpoint title");
    assert!(checkpoints[0].text.is_some());
    assert!(grove_history::copilot_cli::plan(&folder).unwrap().is_some());
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn recorded_logs_of_the_copilot_cli_by_other_makers_are_read() {
    let fixtures = outside("vscode/copilot-cli");
    for (name, turns, state) in [
        ("agent-sessions/large.jsonl", 3, "complete"),
        ("agent-sessions/small.jsonl", 2, "complete"),
        ("agent-sessions/schema_drift.jsonl", 1, "complete"),
        ("agent-sessions/subdir_v1/aaaabbbb-1111-2222-3333-ccccddddeeee/events.jsonl", 1, "complete"),
        ("vscode-agent-host/subagent-session.jsonl", 1, "complete"),
        ("vscode-agent-host/subagent-session-agentid.jsonl", 1, "complete"),
    ] {
        let (session, read) = read_file(TranscriptSource::CopilotCli, &fixtures.join(name));
        assert_eq!((session.turns, read.len()), (turns, turns as usize), "{name}");
        assert_eq!(serde_json::to_value(session.state).unwrap(), state, "{name}");
        assert!(session.damage.places.is_empty(), "{name}: {:?}", session.damage);
    }
    for name in ["subagent-session.jsonl", "subagent-session-agentid.jsonl"] {
        let (_, turns) = read_file(TranscriptSource::CopilotCli, &fixtures.join("vscode-agent-host").join(name));
        let calls = calls(&turns[0].parts);
        assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["report_intent", "task"]);
        let chat = calls[1].subagent.as_ref().unwrap();
        assert_eq!((chat.agent.as_deref(), chat.turns[0].tool_calls().count()), (Some("Explore Agent"), 5), "{name}");
        assert!(chat.turns[0].text().starts_with("Perfect!"));
    }
}

#[test]
fn every_recorded_folder_of_the_copilot_cli_is_found_and_whole() {
    for folder in both("copilot-cli") {
        check_folders_of_the_copilot_cli(&folder);
    }
}

fn check_folders_of_the_copilot_cli(fixtures: &Path) {
    let mut found = Vec::new();
    for (folder, count) in [("local-acp-mode", 1), ("local-prompt-mode", 1), ("local-sdk-full-and-forks", 3)] {
        let root =
            StoreRoot { source: TranscriptSource::CopilotCli, product: "p".into(), folder: fixtures.join(folder) };
        let listing = CopilotCli.find(&root, Hints::Read);
        assert!(listing.problems.is_empty(), "{:?}", listing.problems);
        assert_eq!(listing.sessions.len(), count, "{folder}");
        found.extend(listing.sessions);
    }
    for location in found {
        let (session, turns) = read_with_turns(&CopilotCli, &location).unwrap();
        assert!(session.damage.marks.is_empty() && !turns.is_empty(), "{}", location.path.display());
        assert_eq!(session.title, location.preview.title, "{}", location.path.display());
        assert_eq!(session.workspace.folders, location.workspace.folders);
        assert!(turns.iter().all(|turn| turn.model.as_ref().is_some_and(|model| model.model == "fake-model")));
    }
}
