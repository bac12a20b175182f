//! One sample of each action.

use serde_json::{Value, json};

use super::{
    active_client, agent, annotation, annotation_entry, annotation_origin, answer, answers, auth, background_work,
    changeset, changeset_file, chat_origins, chat_summary, claims, content_ref, contributor, customizations,
    enablement, error, error_part, file_edit, input_needed, input_request, mcp_states, message, meta, operations,
    options, range, response_parts, said_by, terminals, tool_content, tool_definition, tool_result, turn, usage, with,
};

/// Actions, each type at least once and each with every field.
pub(crate) fn actions() -> Vec<Value> {
    let config_change = json!({ "config": { "p": "v" }, "replace": true });
    let call = json!({ "turnId": "t", "toolCallId": "c", "_meta": meta() });
    let turn_end = json!({ "turnId": "t", "duration": 17, "_meta": meta() });
    let text = json!({ "turnId": "t", "partId": "p", "content": "x", "_meta": meta() });
    let directory = json!({ "directory": "file:///w" });
    let id = json!({ "id": "x" });
    let changesets = json!({ "changesets": [changeset()] });
    let mut all = vec![
        ("root/agentsChanged", json!({ "agents": [agent()] })),
        ("root/activeSessionsChanged", json!({ "activeSessions": 3 })),
        ("root/terminalsChanged", json!({ "terminals": terminals() })),
        ("root/configChanged", config_change.clone()),
        ("session/ready", json!({})),
        ("session/creationFailed", json!({ "error": error() })),
        ("session/chatRemoved", json!({ "chat": "ahp-chat:/2" })),
        ("session/chatUpdated", json!({ "chat": "ahp-chat:/2", "changes": chat_summary(chat_origins()[1].clone()) })),
        ("session/chatsReordered", json!({ "chats": ["ahp-chat:/2"] })),
        ("session/defaultChatChanged", json!({ "defaultChat": "ahp-chat:/2" })),
        ("session/titleChanged", json!({ "title": "t" })),
        ("session/isReadChanged", json!({ "isRead": true })),
        ("session/isArchivedChanged", json!({ "isArchived": true })),
        ("session/activityChanged", json!({ "activity": "a" })),
        ("session/changesetsChanged", changesets.clone()),
        ("session/serverToolsChanged", json!({ "tools": [tool_definition()] })),
        ("session/activeClientSet", json!({ "activeClient": active_client() })),
        ("session/activeClientRemoved", json!({ "clientId": "c" })),
        ("session/workingDirectorySet", directory.clone()),
        ("session/workingDirectoryRemoved", directory.clone()),
        ("session/workingDirectoryReplaced", json!({ "directory": "file:///w", "replacement": "file:///v" })),
        ("session/inputNeededRemoved", id.clone()),
        ("session/customizationsChanged", json!({ "customizations": customizations() })),
        ("session/customizationToggled", json!({ "id": "x", "enablement": enablement() })),
        ("session/customizationUpdated", json!({ "customization": customizations()[3] })),
        ("session/customizationRemoved", id.clone()),
        ("session/mcpServerStartRequested", id.clone()),
        ("session/mcpServerStopRequested", id.clone()),
        ("session/mcpServerBackgroundRequested", id.clone()),
        ("session/configChanged", config_change),
        ("session/metaChanged", json!({ "_meta": meta() })),
        (
            "chat/turnStarted",
            json!({
                "turnId": "t", "startedAt": "2026-10-01T00:00:00.000Z", "message": message(), "queuedMessageId": "q",
                "_meta": meta(),
            }),
        ),
        ("chat/delta", text.clone()),
        ("chat/reasoning", text),
        (
            "chat/toolCallStart",
            with(
                call.clone(),
                json!({ "toolName": "n", "displayName": "d", "intention": "i", "contributor": contributor("client") }),
            ),
        ),
        ("chat/toolCallDelta", with(call.clone(), json!({ "content": "x", "invocationMessage": "m" }))),
        (
            "chat/toolCallReady",
            with(
                call.clone(),
                json!({
                    "contributor": contributor("mcp"), "intention": "i", "invocationMessage": "m",
                    "toolInput": content_ref(), "confirmationTitle": "t",
                    "riskAssessment": { "status": "complete", "kind": "judge", "reason": "r", "safety": 0.5 },
                    "edits": { "items": [file_edit()] }, "editable": true, "confirmed": "not-needed",
                    "options": options(),
                }),
            ),
        ),
        (
            "chat/toolCallConfirmed",
            with(
                call.clone(),
                json!({
                    "approved": false, "confirmed": "setting", "reason": "skipped", "editedToolInput": "x",
                    "userSuggestion": message(), "reasonMessage": "m", "selectedOptionId": "no",
                }),
            ),
        ),
        (
            "chat/toolCallComplete",
            with(call.clone(), json!({ "result": tool_result(), "requiresResultConfirmation": true })),
        ),
        ("chat/toolCallResultConfirmed", with(call.clone(), json!({ "approved": true }))),
        ("chat/toolCallContentChanged", with(call.clone(), json!({ "content": tool_content() }))),
        ("chat/toolCallAuthRequired", with(call.clone(), json!({ "auth": auth() }))),
        ("chat/toolCallAuthResolved", call),
        ("chat/usage", json!({ "turnId": "t", "usage": usage(), "_meta": meta() })),
        ("chat/turnComplete", turn_end.clone()),
        ("chat/turnCancelled", turn_end.clone()),
        ("chat/error", with(turn_end, json!({ "part": error_part() }))),
        ("chat/turnResume", json!({ "turnId": "t" })),
        ("chat/turnsLoaded", json!({ "turns": [turn("complete")], "turnsNextCursor": "n" })),
        ("chat/truncated", json!({ "turnId": "t" })),
        ("chat/pendingMessageSet", json!({ "kind": "queued", "id": "q", "message": message() })),
        ("chat/pendingMessageRemoved", json!({ "kind": "steering", "id": "q" })),
        ("chat/queuedMessagesReordered", json!({ "order": ["q"] })),
        ("chat/draftChanged", json!({ "draft": message() })),
        ("chat/inputRequested", json!({ "request": input_request() })),
        ("chat/inputAnswerChanged", json!({ "requestId": "r", "questionId": "q", "answer": answer("draft") })),
        ("chat/inputCompleted", json!({ "requestId": "r", "response": "decline", "answers": answers() })),
        ("chat/isReadChanged", json!({ "isRead": true })),
        ("chat/isArchivedChanged", json!({ "isArchived": true })),
        ("chat/activityChanged", json!({ "activity": "a" })),
        ("chat/backgroundWorkRemoved", id),
        ("chat/movableChanged", json!({ "movable": true })),
        ("chat/changesetsChanged", changesets),
        ("chat/canvasesChanged", json!({ "canvases": [{ "resource": "ahp-canvas:/1" }] })),
        ("chat/workingDirectorySet", directory.clone()),
        ("chat/workingDirectoryRemoved", directory),
        ("terminal/data", json!({ "data": "x" })),
        ("terminal/input", json!({ "data": "x" })),
        ("terminal/resized", json!({ "cols": 80, "rows": 24 })),
        ("terminal/titleChanged", json!({ "title": "t" })),
        ("terminal/cwdChanged", json!({ "cwd": "file:///w" })),
        ("terminal/exited", json!({ "exitCode": -1 })),
        ("terminal/cleared", json!({})),
        ("terminal/commandDetectionAvailable", json!({})),
        ("terminal/commandExecuted", json!({ "commandId": "c", "commandLine": "ls", "timestamp": 1790000000000_u64 })),
        ("terminal/commandFinished", json!({ "commandId": "c", "exitCode": 1, "durationMs": 5 })),
        ("changeset/statusChanged", json!({ "status": "error", "error": error() })),
        ("changeset/fileSet", json!({ "file": changeset_file() })),
        ("changeset/fileRemoved", json!({ "fileId": "f" })),
        ("changeset/filesReviewChanged", json!({ "files": ["f"], "reviewed": true })),
        ("changeset/contentChanged", json!({ "files": [changeset_file()], "operations": operations() })),
        ("changeset/operationsChanged", json!({ "operations": operations() })),
        ("changeset/operationStatusChanged", json!({ "operationId": "o", "status": "error", "error": error() })),
        ("changeset/cleared", json!({})),
        ("annotations/set", json!({ "annotation": annotation() })),
        (
            "annotations/updated",
            json!({
                "annotationId": "a", "origin": annotation_origin(), "resource": "file:///a", "range": range(),
                "resolved": false,
            }),
        ),
        ("annotations/removed", json!({ "annotationId": "a" })),
        ("annotations/entrySet", json!({ "annotationId": "a", "entry": annotation_entry() })),
        ("annotations/entryRemoved", json!({ "annotationId": "a", "entryId": "e" })),
        (
            "resourceWatch/changed",
            json!({
                "changes": {
                    "items": [
                        { "uri": "file:///a", "type": "added" },
                        { "uri": "file:///b", "type": "updated" },
                        { "uri": "file:///c", "type": "deleted" },
                    ],
                },
            }),
        ),
    ];
    all.extend(chat_origins().into_iter().map(|o| ("session/chatAdded", json!({ "summary": chat_summary(o) }))));
    all.extend(input_needed().into_iter().map(|request| ("session/inputNeededSet", json!({ "request": request }))));
    all.extend(
        mcp_states()
            .into_iter()
            .map(|state| ("session/mcpServerStateChanged", json!({ "id": "x", "state": state, "channel": "mcp://x" }))),
    );
    all.extend(
        response_parts()
            .into_iter()
            .map(|part| ("chat/responsePart", json!({ "turnId": "t", "part": part, "_meta": meta() }))),
    );
    all.extend(
        ["agent", "tool", "automation", "systemNotification"]
            .map(|kind| ("chat/pendingMessageSet", json!({ "kind": "steering", "id": "q", "message": said_by(kind) }))),
    );
    all.extend(background_work().into_iter().map(|work| ("chat/backgroundWorkSet", json!({ "work": work }))));
    all.extend(claims().into_iter().map(|claim| ("terminal/claimed", json!({ "claim": claim }))));
    all.into_iter().map(|(kind, body)| with(json!({ "type": kind }), body)).collect()
}
