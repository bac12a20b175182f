//! The parts of a response.

use super::*;

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
