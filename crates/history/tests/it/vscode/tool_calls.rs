//! Tool calls, and the calls of the model that they are paired with.

use super::*;

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
