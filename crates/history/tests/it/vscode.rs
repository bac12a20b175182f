//! Own samples of VS Code's sessions: each version, each kind of part, tool data and state.

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

fn uri(path: &str) -> Value {
    json!({"$mid": 1, "scheme": "file", "path": path})
}

#[test]
fn every_kind_of_part_is_understood_and_any_other_is_kept_raw() {
    let range = json!({"startLineNumber": 1, "startColumn": 1, "endLineNumber": 1, "endColumn": 2});
    for (part, expected) in [
        (json!({"value": "words"}), "text"),
        (json!("plain"), "text"),
        (json!({"kind": "markdownContent", "content": {"value": "words"}}), "text"),
        (
            json!({"kind": "markdownVuln", "content": {"value": "words"}, "vulnerabilities": [{"title": "v"}]}),
            "text notice",
        ),
        (json!({"kind": "inlineReference", "inlineReference": uri("/a.rs")}), "text"),
        (json!({"kind": "codeblockUri", "uri": uri("/a.rs"), "isEdit": true}), "notice"),
        (
            json!({"kind": "textEditGroup", "uri": uri("/a.rs"), "edits": [[{"range": range, "text": "x"}]], "done": true}),
            "edit",
        ),
        (json!({"kind": "notebookEditGroup", "uri": uri("/a.ipynb"), "edits": [[{"editType": 1}]]}), "edit"),
        (
            json!({"kind": "workspaceEdit", "edits": [{"newResource": uri("/n")}, {"oldResource": uri("/o")}]}),
            "edit edit",
        ),
        (
            json!({"kind": "externalEdit", "uri": uri("/a"), "editKind": "create", "diff": {"added": 1, "removed": 0}}),
            "edit",
        ),
        (json!({"kind": "undoStop", "id": "u"}), "notice"),
        (json!({"kind": "thinking", "value": "hm", "id": "t"}), "reasoning"),
        (json!({"kind": "thinking", "value": ["h", "m"]}), "reasoning"),
        (json!({"kind": "toolInvocationSerialized", "toolId": "x", "toolCallId": "1"}), "toolCall"),
        (json!({"kind": "prepareToolInvocation", "toolName": "x"}), "notice"),
        (json!({"kind": "progressMessage", "content": {"value": "working"}}), "notice"),
        (json!({"kind": "progressTaskSerialized", "content": {"value": "working"}, "progress": []}), "notice"),
        (json!({"kind": "systemNotification", "content": "s"}), "notice"),
        (json!({"kind": "warning", "content": {"value": "w"}}), "notice"),
        (json!({"kind": "info", "content": {"value": "i"}}), "notice"),
        (json!({"kind": "command", "command": {"id": "c", "title": "Do it"}}), "notice"),
        (json!({"kind": "confirmation", "title": "t", "message": "m", "isUsed": true}), "question"),
        (json!({"kind": "elicitation", "title": "t", "message": "m", "state": "accepted"}), "question"),
        (
            json!({"kind": "elicitationSerialized", "title": {"value": "t"}, "message": {"value": "m"}, "state": "rejected"}),
            "question",
        ),
        (json!({"kind": "questionCarousel", "questions": [{"title": "which?"}], "allowSkip": true}), "question"),
        (json!({"kind": "planReview", "title": "t", "content": "plan", "actions": []}), "question"),
        (
            json!({"kind": "multiDiffData", "multiDiffData": {"title": "d", "resources": [{"modifiedUri": uri("/m"), "added": 2}]}}),
            "edit notice",
        ),
        (json!({"kind": "extensions", "extensions": ["a.b"]}), "notice"),
        (json!({"kind": "pullRequest", "title": "PR", "description": "d", "author": "a", "linkTag": "#1"}), "notice"),
        (json!({"kind": "mcpServersStarting", "didStartServerIds": []}), "notice"),
        (json!({"kind": "hook", "hookType": "stop", "systemMessage": "m"}), "notice"),
        (json!({"kind": "autoModeResolution", "resolvedModel": "m", "resolvedModelName": "M"}), "notice"),
        (json!({"kind": "clearToPreviousToolInvocation", "reason": 1}), "notice"),
        (json!({"kind": "disabledClaudeHooks"}), "notice"),
        (json!({"kind": "treeData", "treeData": {"label": "src", "children": [{"label": "a.rs"}]}}), "notice"),
        (json!({"label": "src", "uri": uri("/src"), "children": []}), "notice"),
        (json!({"kind": "neverSeen", "own": 1}), "raw"),
        (json!({"odd": 1}), "raw"),
        (json!(42), "raw"),
    ] {
        let parts = response(json!([part]));
        let told: Vec<String> = parts
            .iter()
            .map(|part| serde_json::to_value(part).unwrap().as_object().unwrap().keys().next().unwrap().clone())
            .collect();
        assert_eq!(told.join(" "), expected, "{part}");
    }
}

#[test]
fn text_goes_on_over_references_and_what_only_steers_the_view() {
    let turn = request(json!({"requestId": "r", "message": {"text": "x"}, "result": {}, "response": [
        {"value": "See "}, {"kind": "inlineReference", "inlineReference": {"uri": uri("/src/a.rs"), "range": {"startLineNumber": 3}}},
        {"kind": "undoStop", "id": "u"}, {"value": " for it."},
    ]}));
    assert_eq!(turn.text(), "See `a.rs` for it.");
    assert_eq!(turn.references[0].range.unwrap().start.line, 3);
}

#[test]
fn the_fences_around_an_edit_are_no_words() {
    let parts = response(json!([
        {"value": "I change it:\n\n```\n"}, {"kind": "codeblockUri", "uri": uri("/a")},
        {"kind": "textEditGroup", "uri": uri("/a"), "edits": []}, {"value": "\n```\nDone."},
    ]));
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            TranscriptPart::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["I change it:", "\nDone."]);
}

#[test]
fn what_was_taken_back_is_not_told() {
    let parts = response(json!([
        {"value": "before"}, {"kind": "toolInvocationSerialized", "toolId": "x", "toolCallId": "1"}, {"value": "taken back"},
        {"kind": "clearToPreviousToolInvocation", "reason": 1}, {"value": "said"},
    ]));
    let text = serde_json::to_string(&parts).unwrap();
    assert!(text.contains("before") && text.contains("said") && !text.contains("taken back"), "{text}");
}

#[test]
fn thoughts_that_came_in_pieces_are_one() {
    let parts = response(json!([
        {"kind": "thinking", "value": "one ", "id": "a"}, {"kind": "thinking", "value": "thought", "id": "a", "generatedTitle": "T"},
        {"kind": "thinking", "value": "another", "id": "b"}, {"kind": "thinking", "value": "", "id": ""},
    ]));
    let told: Vec<_> = parts
        .iter()
        .map(|part| match part {
            TranscriptPart::Reasoning { text, title, .. } => (text.as_str(), title.as_deref()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [("one thought", Some("T")), ("another", None)]);
}

#[test]
fn edits_tell_what_happened_to_which_file() {
    let parts = response(json!([
        {"kind": "workspaceEdit", "edits": [{"oldResource": uri("/a"), "newResource": uri("/b")}]},
        {"kind": "externalEdit", "uri": uri("/c"), "editKind": "delete", "diff": {"added": 0, "removed": 9}},
        {"kind": "textEditGroup", "uri": uri("/d"), "edits": [[{"range": {"startLineNumber": 2, "startColumn": 1, "endLineNumber": 3, "endColumn": 1}, "text": "new"}]]},
    ]));
    let edits: Vec<_> = parts
        .iter()
        .map(|part| match part {
            TranscriptPart::Edit(edit) => edit,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        (edits[0].kind, edits[0].from.as_ref().unwrap().shown(), edits[0].place.shown()),
        (EditKind::Rename, "/a", "/b")
    );
    assert_eq!((edits[1].kind, edits[1].removed), (EditKind::Delete, Some(9)));
    assert_eq!((edits[2].changes[0].text.as_str(), edits[2].changes[0].range.start.line), ("new", 2));
}

#[test]
fn the_data_of_every_kind_of_tool_is_understood() {
    let call = |data: Value| {
        let part = json!({"kind": "toolInvocationSerialized", "toolCallId": "1", "isComplete": true, "toolSpecificData": data});
        let parts = response(json!([part]));
        calls(&parts)[0].clone()
    };
    let ran = call(
        json!({"kind": "terminal", "commandLine": {"original": "rm x", "userEdited": "rm -i x"}, "cwd": uri("/w"),
        "language": "bash", "isBackground": true, "terminalCommandOutput": {"text": "removed"}, "terminalCommandState": {"exitCode": 1}}),
    );
    let expected = ToolInput::Command {
        command: "rm -i x".into(),
        folder: Some("/w".into()),
        language: Some("bash".into()),
        background: true,
    };
    assert_eq!((ran.kind, ran.input, ran.state), (TranscriptToolKind::Shell, expected, CallState::Failed));
    assert_eq!((ran.exit_code, ran.output.unwrap().text.as_str()), (Some(1), "removed"));
    assert_eq!(ran.raw["toolSpecificData"]["commandLine"]["original"], "rm x", "what was changed is kept");
    let old = call(json!({"kind": "terminal", "language": "sh", "command": "ls"}));
    assert!(matches!(old.input, ToolInput::Command { command, .. } if command == "ls"));
    let input = call(json!({"kind": "input", "rawInput": {"q": 1}, "mcpAppData": {"x": 1}}));
    assert_eq!(input.raw_input, Some(json!({"q": 1})));
    assert_eq!(input.raw["toolSpecificData"], json!({"mcpAppData": {"x": 1}}));
    let todos = call(json!({"kind": "todoList", "sessionId": "s", "todoList": [
        {"id": "1", "title": "first", "description": "d", "status": "completed"}, {"id": 2, "title": "second", "status": "not-started"}]}));
    let ToolInput::Todos(items) = todos.input else { panic!("{:?}", todos.input) };
    assert_eq!(
        (items[0].status, items[1].id.as_str(), items[1].status),
        (TodoStatus::Completed, "2", TodoStatus::NotStarted)
    );
    let agent = call(
        json!({"kind": "subagent", "description": "look", "agentName": "explore", "prompt": "p", "result": "found"}),
    );
    assert_eq!((agent.kind, agent.output.unwrap().text.as_str()), (TranscriptToolKind::Subagent, "found"));
    let simple = call(json!({"kind": "simpleToolInvocation", "input": "{\"a\":1}", "output": "o"}));
    assert_eq!((simple.raw_input, simple.output.unwrap().text.as_str()), (Some(json!({"a": 1})), "o"));
    let resources =
        call(json!({"kind": "resources", "values": [uri("/a"), {"uri": uri("/b"), "range": {"startLineNumber": 1}}]}));
    assert_eq!(resources.places.iter().map(|place| place.shown()).collect::<Vec<_>>(), ["/a", "/b"]);
    for kind in [
        "search",
        "extensions",
        "pullRequest",
        "modifiedFilesConfirmation",
        "agentFeedbackReviewConfirmation",
        "sessionCreated",
        "new",
    ] {
        let kept = call(json!({"kind": kind, "own": 1}));
        assert_eq!(kept.raw["toolSpecificData"], json!({"kind": kind, "own": 1}), "{kind}");
    }
}

#[test]
fn what_a_call_shows_of_its_result_is_read_in_each_form() {
    let call = |details: Value| {
        let part = json!({"kind": "toolInvocationSerialized", "toolId": "mcp_x", "toolCallId": "1", "isComplete": true, "resultDetails": details});
        let parts = response(json!([part]));
        calls(&parts)[0].clone()
    };
    assert_eq!(call(json!([uri("/a"), {"uri": uri("/b")}])).places.len(), 2);
    let mcp = call(
        json!({"input": "{\"q\":1}", "output": [{"type": "embed", "isText": true, "value": "one"}, {"isText": false, "value": "AAAA"}], "isError": true}),
    );
    assert_eq!((mcp.raw_input, mcp.state), (Some(json!({"q": 1})), CallState::Failed));
    assert_eq!(mcp.output.unwrap().text, "one");
    let data = call(json!({"output": {"type": "data", "mimeType": "image/png", "base64Data": "AAAA"}}));
    assert_eq!(data.raw["resultDetails"]["output"]["mimeType"], "image/png");
}

#[test]
fn messages_are_text_or_have_it_in_value() {
    for message in [json!("Running"), json!({"value": "Running", "supportThemeIcons": false, "uris": {}})] {
        let parts = response(json!([
            {"kind": "toolInvocationSerialized", "toolId": "x", "toolCallId": "1", "invocationMessage": message, "pastTenseMessage": message},
            {"kind": "warning", "content": message},
            {"kind": "confirmation", "title": message, "message": message},
        ]));
        let call = calls(&parts)[0];
        assert_eq!((call.intention.as_deref(), call.summary.as_deref()), (Some("Running"), Some("Running")));
        assert!(matches!(&parts[1], TranscriptPart::Notice(notice) if notice.text == "Running"));
        assert!(
            matches!(&parts[2], TranscriptPart::Question(question) if question.title == "Running" && question.message == "Running")
        );
    }
}

fn with_rounds(parts: Value, tool_calls: Value, results: Value) -> TranscriptTurn {
    request(json!({"requestId": "r", "message": {"text": "x"}, "response": parts, "result": {"metadata": {
        "toolCallRounds": [{"response": "", "toolCalls": tool_calls, "id": "1"}], "toolCallResults": results}}}))
}

#[test]
fn calls_of_the_model_are_paired_with_those_shown_by_order_and_name() {
    let shown = |tool: &str, id: &str| json!({"kind": "toolInvocationSerialized", "toolId": tool, "toolCallId": id, "isComplete": true, "isConfirmed": {"type": 1}});
    let call = |name: &str, id: &str, file: &str| json!({"name": name, "id": id, "arguments": json!({"filePath": file}).to_string()});
    let turn = with_rounds(
        json!([shown("copilot_readFile", "u1"), shown("copilot_listDirectory", "u2"), shown("copilot_readFile", "u3")]),
        json!([call("read_file", "t1", "/1"), call("read_file", "t2", "/2"), call("think", "t3", "/3")]),
        json!({"t1": {"content": [{"value": "one"}]}, "t2": "two", "t9": "of nobody"}),
    );
    let told: Vec<_> = turn
        .tool_calls()
        .map(|call| {
            (
                call.name.as_str(),
                call.id.as_str(),
                call.model_id.as_deref(),
                call.output.as_ref().map(|output| output.text.as_str()),
            )
        })
        .collect();
    let expected = [
        ("read_file", "u1", Some("t1"), Some("one")),
        ("list_dir", "u2", None, None),
        ("read_file", "u3", Some("t2"), Some("two")),
        ("think", "t3", None, None),
    ];
    assert_eq!(told, expected);
    assert_eq!(turn.raw["result"]["metadata"]["toolCallResults"], json!({"t9": "of nobody"}), "kept, not dropped");
}

#[test]
fn what_a_subagent_did_is_a_chat_of_its_call() {
    let parts = response(json!([
        {"kind": "toolInvocationSerialized", "toolId": "runSubagent", "toolCallId": "a", "isComplete": true,
            "toolSpecificData": {"kind": "subagent", "agentName": "explore", "description": "look", "prompt": "look around", "result": "found"}},
        {"kind": "toolInvocationSerialized", "toolId": "copilot_readFile", "toolCallId": "b", "isComplete": true, "subAgentInvocationId": "a"},
        {"kind": "toolInvocationSerialized", "toolId": "copilot_readFile", "toolCallId": "c", "subAgentInvocationId": "gone"},
        {"value": "done"},
    ]));
    let calls = calls(&parts);
    assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "gone"]);
    let chat = calls[0].subagent.as_ref().unwrap();
    assert_eq!((chat.agent.as_deref(), chat.description.as_deref()), (Some("explore"), Some("look")));
    let turn = &chat.turns[0];
    assert_eq!(
        (turn.message.text.as_str(), turn.text().as_str(), turn.outcome.clone()),
        ("look around", "found", TurnOutcome::Complete)
    );
    assert_eq!(turn.tool_calls().next().unwrap().id, "b");
    assert_eq!(calls[1].subagent.as_ref().unwrap().turns[0].tool_calls().next().unwrap().id, "c");
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
