//! Own samples of VS Code's sessions: each version, each kind of part, tool data and state.

mod parts;
mod tool_calls;

use grove_core::Timestamp;
use grove_transcript::{
    Approval, CallState, DamageKind, EditKind, TodoStatus, ToolInput, TranscriptPart, TranscriptState,
    TranscriptToolKind, TranscriptTurn, TurnOutcome,
};
use serde_json::{Value, json};

use crate::support::{calls, flat, request, response};

/// A session without messages.
fn empty() -> Value {
    json!({
        "version": 3,
        "requesterUsername": "robin",
        "requesterAvatarIconUri": {"$mid": 1, "path": "/u/7", "scheme": "https", "authority": "avatars.example.com"},
        "responderUsername": "GitHub Copilot",
        "responderAvatarIconUri": {"id": "copilot"},
        "initialLocation": "panel",
        "requests": [],
        "sessionId": "0a0a0a0a-1111-4222-8333-444444444444",
        "creationDate": 1_760_000_000_000_u64,
        "lastMessageDate": 1_760_000_000_500_u64,
        "isImported": false,
    })
}

fn uri(path: &str) -> Value {
    json!({"$mid": 1, "scheme": "file", "path": path})
}

/// A question and an answer.
fn answered() -> Value {
    json!({
        "requestId": "request_1",
        "message": {"text": "Good morning, all well?", "parts": [{
            "range": {"start": 0, "endExclusive": 23},
            "editorRange": {"startLineNumber": 1, "startColumn": 1, "endLineNumber": 1, "endColumn": 24},
            "text": "Good morning, all well?", "kind": "text",
        }]},
        "variableData": {"variables": []},
        "response": [
            {"kind": "mcpServersStarting", "didStartServerIds": []},
            {"value": "Good morning! ", "supportThemeIcons": false, "supportHtml": false,
                "baseUri": {"$mid": 1, "path": "/code/", "scheme": "file"}},
            {"value": "All is well."},
        ],
        "responseId": "response_1",
        "result": {
            "timings": {"firstProgress": 1200, "totalElapsed": 2500},
            "metadata": {"modelMessageId": "m1", "agentId": "github.copilot.editsAgent", "sessionId": "agent-1",
                "codeBlocks": [{"code": "let x = 1;", "language": "rust", "markdownBeforeBlock": "So:"}],
                "toolCallRounds": [{"response": "Good morning!", "toolCalls": [], "toolInputRetry": 0, "id": "r"}]},
            "details": "Claude Opus 4.5 (Preview) • 3x",
        },
        "isCanceled": false,
        "followups": [{"kind": "reply", "message": "And tomorrow?", "agentId": "x"}],
        "timestamp": 1_760_000_000_000_u64,
        "modelId": "copilot/claude-opus-4.5",
        "agent": {"extensionId": {"value": "GitHub.copilot-chat", "_lower": "github.copilot-chat"},
            "extensionVersion": "0.33.5", "id": "github.copilot.editsAgent", "name": "agent", "fullName": "GitHub Copilot",
            "description": "d", "metadata": {}, "isDefault": true, "locations": ["panel"], "modes": ["agent"],
            "slashCommands": [{"name": "list"}], "disambiguation": []},
        "responseMarkdownInfo": [],
        "contentReferences": [{"kind": "reference", "reference": {"$mid": 1, "path": "/code/a.rs", "scheme": "file"}}],
        "codeCitations": [{"value": {"$mid": 1, "path": "/o/r/x.rs", "scheme": "https", "authority": "github.com"},
            "license": "MIT", "snippet": "let x = 1;", "kind": "codeCitation"}],
    })
}

/// A response in which a command was run.
fn command() -> Value {
    json!([
        {"kind": "mcpServersStarting", "didStartServerIds": []},
        {"kind": "prepareToolInvocation", "toolName": "run_in_terminal"},
        {
            "kind": "toolInvocationSerialized",
            "invocationMessage": "Using \"Run in Terminal\"",
            "isConfirmed": {"type": 1},
            "isComplete": true,
            "source": {"type": "internal", "label": "Built-In"},
            "toolSpecificData": {
                "kind": "terminal",
                "terminalToolSessionId": "t1",
                "terminalCommandId": "c1",
                "commandLine": {"original": "cargo run"},
                "language": "sh",
            },
            "toolCallId": "u1",
            "toolId": "run_in_terminal",
        },
        {"value": "It runs at http://localhost:8080", "supportThemeIcons": false, "supportHtml": false},
    ])
}

#[test]
fn a_session_in_which_nothing_was_said_is_empty() {
    let (session, turns) = flat(&empty());
    assert!(turns.is_empty());
    assert_eq!(session.source_id, "0a0a0a0a-1111-4222-8333-444444444444");
    assert_eq!((session.turns, session.state, session.title), (0, TranscriptState::Empty, None));
    assert_eq!(session.first_message, "(No messages)");
    assert_eq!(session.created_at, Some(Timestamp(1_760_000_000_000)));
    assert_eq!(session.modified_at, Some(Timestamp(1_760_000_000_500)));
    assert_eq!(session.raw.get("requesterUsername"), Some(&json!("robin")), "what has no place of its own is kept");
    assert!(session.damage.marks.is_empty());
}

#[test]
fn a_question_and_its_answer_are_a_turn_with_all_that_is_told_of_it() {
    let mut session = empty();
    session["requests"] = json!([answered()]);
    let (session, turns) = flat(&session);
    assert_eq!((session.turns, session.turns_completed, session.state), (1, 1, TranscriptState::Complete));
    assert_eq!(
        (session.title.as_deref(), session.agent.as_deref()),
        (Some("Good morning, all well?"), Some("GitHub Copilot"))
    );
    let turn = &turns[0];
    assert_eq!((turn.id.as_str(), turn.response_id.as_deref()), ("request_1", Some("response_1")));
    assert_eq!((turn.model_message_id.as_deref(), turn.agent_session.as_deref()), (Some("m1"), Some("agent-1")));
    assert_eq!(turn.text(), "Good morning! All is well.");
    assert_eq!((turn.first_response_ms, turn.total_ms), (Some(1_200), Some(2_500)));
    assert_eq!(turn.ended_at, Some(Timestamp(1_760_000_002_500)));
    let model = turn.model.as_ref().unwrap();
    assert_eq!((model.vendor.as_deref(), model.model.as_str()), (Some("copilot"), "claude-opus-4.5"));
    assert_eq!(
        (model.display_name.as_deref(), &model.multiplier),
        (Some("Claude Opus 4.5 (Preview)"), &Some(3.into()))
    );
    let agent = turn.agent.as_ref().unwrap();
    assert_eq!((agent.id.as_str(), agent.name.as_str()), ("github.copilot.editsAgent", "GitHub Copilot"));
    assert_eq!((agent.extension.as_deref(), agent.version.as_deref()), (Some("GitHub.copilot-chat"), Some("0.33.5")));
    assert_eq!((turn.code_blocks[0].language.as_str(), turn.code_blocks[0].code.as_str()), ("rust", "let x = 1;"));
    let cited = &turn.citations[0];
    assert_eq!((cited.source.as_str(), cited.licence.as_str()), ("https://github.com/o/r/x.rs", "MIT"));
    assert_eq!(cited.snippet, "let x = 1;");
    assert_eq!(turn.references[0].path.as_deref(), Some("/code/a.rs"));
    assert_eq!(turn.followups, ["And tomorrow?"]);
    assert_eq!(turn.rounds, ["Good morning!"]);
    assert!(turn.raw.is_empty(), "{:?}", turn.raw);
}

#[test]
fn a_command_that_was_run_is_a_call_with_its_command() {
    let parts = response(command());
    let call = calls(&parts)[0];
    assert_eq!(
        (call.name.as_str(), call.kind, call.state),
        ("run_in_terminal", TranscriptToolKind::Shell, CallState::Complete)
    );
    assert_eq!(call.approval, Approval::NotNeeded { reason: None });
    assert_eq!((call.provider.as_deref(), call.id.as_str()), (Some("Built-In"), "u1"));
    let expected = ToolInput::Command {
        command: "cargo run".into(),
        folder: None,
        language: Some("sh".into()),
        background: false,
    };
    assert_eq!(call.input, expected);
    assert!(matches!(parts.last(), Some(TranscriptPart::Text(text)) if text.starts_with("It runs")));
}

#[test]
fn versions_1_to_3_and_newer_ones_are_read() {
    let first = json!({"sessionId": "s", "creationDate": 9, "responderUsername": "x", "initialLocation": "editing-session",
        "requests": [{"requestId": "r", "message": "plain words", "response": ["one", " two"], "isCanceled": false, "result": {}}]});
    let (session, turns) = flat(&first);
    assert_eq!((session.version, turns[0].message.text.as_str()), (None, "plain words"));
    assert_eq!(turns[0].text(), "one two");
    let whole =
        flat(&json!({"requests": [{"requestId": "r", "message": "x", "response": "all at once", "result": {}}]}));
    assert_eq!(whole.1[0].text(), "all at once");
    let (second, _) = flat(&json!({"version": 2, "sessionId": "s", "computedTitle": "Computed", "requests": []}));
    assert_eq!((second.version.as_deref(), second.title.as_deref()), (Some("2"), Some("Computed")));
    let mut newer = empty();
    newer["version"] = json!(4);
    newer["requests"] = json!([answered()]);
    let (newer, turns) = flat(&newer);
    assert_eq!((newer.damage.marks.as_slice(), turns.len()), (&[DamageKind::NewerVersion { version: 4 }][..], 1));
    assert!(!newer.damage.is_recovered());
}

#[test]
fn an_export_has_no_id_and_no_version() {
    let export = json!({"responderUsername": "GitHub Copilot", "initialLocation": "panel", "requests": [answered()]});
    let (session, turns) = flat(&export);
    assert_eq!((session.source_id.as_str(), session.version, turns.len()), ("s", None, 1));
    assert_eq!(session.modified_at, Some(Timestamp(1_760_000_002_500)));
}

#[test]
fn a_turn_ends_as_its_state_says_and_one_without_any_is_interrupted() {
    let outcome = |more: Value| {
        let mut fields = json!({"requestId": "r", "message": {"text": "x"}, "response": []});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request(fields).outcome
    };
    assert_eq!(outcome(json!({"modelState": {"value": 1, "completedAt": 5}})), TurnOutcome::Complete);
    assert_eq!(outcome(json!({"modelState": {"value": 2}})), TurnOutcome::Cancelled);
    assert_eq!(outcome(json!({"modelState": {"value": 0}})), TurnOutcome::Interrupted);
    assert_eq!(outcome(json!({"modelState": {"value": 4}})), TurnOutcome::Interrupted);
    let failed = json!({"modelState": {"value": 3}, "result": {"errorDetails": {"message": "no more", "isQuotaExceeded": true}}});
    assert!(
        matches!(outcome(failed), TurnOutcome::Failed(error) if error.kind == "quotaExceeded" && error.message == "no more")
    );
    assert_eq!(outcome(json!({})), TurnOutcome::Interrupted, "neither a state nor a result");
    assert_eq!(outcome(json!({"isCanceled": false})), TurnOutcome::Interrupted);
    assert_eq!(outcome(json!({"isCanceled": true})), TurnOutcome::Cancelled);
    assert_eq!(outcome(json!({"isCanceled": false, "result": {}})), TurnOutcome::Complete);
    assert!(matches!(outcome(json!({"responseErrorDetails": {"message": "old"}})), TurnOutcome::Failed(_)));
}

#[test]
fn who_confirmed_a_call_is_told_by_the_real_numbers() {
    let approval = |confirmed: Value| {
        let mut call =
            json!({"kind": "toolInvocationSerialized", "toolId": "x", "toolCallId": "1", "isComplete": true});
        if !confirmed.is_null() {
            call["isConfirmed"] = confirmed;
        }
        let parts = response(json!([call]));
        (calls(&parts)[0].approval.clone(), calls(&parts)[0].state)
    };
    assert_eq!(approval(json!({"type": 0})), (Approval::Denied, CallState::Refused));
    assert_eq!(approval(json!({"type": 1, "reason": "r"})).0, Approval::NotNeeded { reason: Some("r".into()) });
    assert_eq!(approval(json!({"type": 2, "id": "set"})).0, Approval::Setting { id: Some("set".into()) });
    assert_eq!(
        approval(json!({"type": 3, "scope": "workspace"})).0,
        Approval::Remembered { scope: Some("workspace".into()) }
    );
    assert_eq!(approval(json!({"type": 4, "selectedButton": "b"})).0, Approval::Person { button: Some("b".into()) });
    assert_eq!(approval(json!({"type": 5})), (Approval::Skipped, CallState::Refused));
    assert_eq!(approval(json!(true)).0, Approval::Person { button: None });
    assert_eq!(approval(json!(false)), (Approval::Denied, CallState::Refused));
    assert_eq!(approval(Value::Null), (Approval::Unknown, CallState::Complete));
    assert_eq!(approval(json!({"type": 77})).0, Approval::Unknown);
}

#[test]
fn usage_is_taken_from_wherever_it_is_told() {
    let usage = |more: Value| {
        let mut fields = json!({"requestId": "r", "message": {"text": "x"}, "response": []});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request(fields).usage.map(|usage| (usage.input_tokens, usage.output_tokens, usage.cost))
    };
    let own = json!({"promptTokens": 10, "completionTokens": 5, "copilotCredits": 1.5});
    assert_eq!(usage(own), Some((Some(10), Some(5), serde_json::Number::from_f64(1.5))));
    assert_eq!(
        usage(json!({"result": {"metadata": {"promptTokens": 7, "outputTokens": 3}}})),
        Some((Some(7), Some(3), None))
    );
    assert_eq!(usage(json!({"result": {}})), None);
}

#[test]
fn a_model_may_differ_from_turn_to_turn() {
    let ask = |id: &str, model: &str| json!({"requestId": id, "message": {"text": "x"}, "response": [], "result": {}, "modelId": model});
    let (session, turns) = flat(
        &json!({"sessionId": "s", "requests": [ask("1", "copilot/gpt-4"), ask("2", "copilot/claude-opus-4.5"), ask("3", "anthropic/claude-opus-4.5")]}),
    );
    assert_eq!(session.models, ["gpt-4", "claude-opus-4.5"], "compared without their vendors");
    assert_eq!(turns[2].model.as_ref().unwrap().vendor.as_deref(), Some("anthropic"));
}

#[test]
fn rendered_prompts_are_context_and_never_the_persons_words() {
    let turn = request(
        json!({"requestId": "r", "message": {"text": "fix it"}, "response": [], "result": {"metadata": {
            "renderedUserMessage": [{"type": 1, "text": "<context>\nToday.\n</context>\n<userRequest>\nfix it\n</userRequest>"}, {"type": 3, "cacheType": "ephemeral"}],
            "renderedGlobalContext": [{"type": 1, "text": "<environment_info>\nThe user's current OS is: Linux\n</environment_info>"}],
        }}}),
    );
    let names: Vec<&str> = turn.context.iter().map(|block| block.name.as_str()).collect();
    assert_eq!(names, ["context", "userRequest", "environment_info"]);
    assert_eq!((turn.message.text.as_str(), turn.text().as_str()), ("fix it", ""));
}

#[test]
fn draft_repository_and_folder_of_a_session_are_told() {
    let (session, _) = flat(
        &json!({"version": 3, "sessionId": "s", "requests": [], "inputState": {"inputText": "half a th"},
        "workingDirectory": uri("/code/app"), "repoData": {"workspaceType": "remote-git", "remoteUrl": "https://example.com/o/r.git", "localBranch": "b", "localHeadCommit": "c"}}),
    );
    assert_eq!(session.draft.as_deref(), Some("half a th"));
    assert_eq!(session.workspace.repository.as_deref(), Some("https://example.com/o/r.git"));
    assert_eq!((session.workspace.branch.as_deref(), session.workspace.commit.as_deref()), (Some("b"), Some("c")));
    assert_eq!(session.workspace.folders[0].shown(), "/code/app");
}

#[test]
fn a_command_and_who_asked_are_told_of_a_message() {
    let turn = request(json!({"requestId": "r", "message": {"text": "@workspace /fix it", "parts": [
        {"kind": "agent", "agent": {"id": "w"}}, {"kind": "subcommand", "command": {"name": "fix"}}, {"kind": "text", "text": "it"}]},
        "response": [], "isSystemInitiated": true}));
    assert_eq!(turn.message.command.as_deref(), Some("fix"));
    assert_eq!(turn.message.origin, grove_core::MessageOrigin::SystemNotification);
    assert_eq!(turn.message.raw["parts"].as_array().unwrap().len(), 2, "what plain text does not tell");
}

#[test]
fn requests_without_an_id_or_with_one_twice_get_names_of_their_own() {
    let (_, turns) = flat(&json!({"sessionId": "s", "requests": [{"requestId": "a"}, {"requestId": "a"}, {}, 7]}));
    let ids: Vec<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(ids, ["a", "turn-2", "turn-3", "turn-4"]);
    assert!(matches!(&turns[3].parts[0], TranscriptPart::Raw(value) if *value == json!(7)));
}

#[test]
fn words_that_stand_only_in_the_parts_of_a_message_are_kept() {
    let said = |message: Value| request(json!({"requestId": "r", "message": message, "response": []})).message.text;
    let part = |text: &str| json!({"kind": "text", "text": text});
    assert_eq!(
        said(json!({"text": "", "parts": [part("fix "), {"kind": "dynamic", "text": "#file:a.rs"}, part(" now")]})),
        "fix #file:a.rs now"
    );
    assert_eq!(
        said(json!({"parts": [{"kind": "agent", "agent": {"name": "workspace"}}, part(" where is it?")]})),
        "@workspace where is it?"
    );
    assert_eq!(said(json!({"text": "fix", "parts": [part("fix "), part("this")]})), "fix this");
    assert_eq!(said(json!({"text": "one two", "parts": [part("one "), part("three")]})), "one two\nthree");
    assert_eq!(said(json!({"text": "as it is", "parts": [part("as it is")]})), "as it is");
    assert_eq!(
        said(
            json!({"text": "/list all", "parts": [{"kind": "slash", "slashCommand": {"command": "list"}}, part(" all")]})
        ),
        "/list all"
    );
}
