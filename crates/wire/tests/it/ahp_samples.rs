//! The Agent Host Protocol by example: every action, every state and every command with every field set, as JSON.
//!
//! A missing sample would go untested, so a test counts: each key and each member of a union in the schema must occur.

mod actions;
mod messages;

use serde_json::{Map, Value, json};

pub(crate) use actions::actions;
pub(crate) use messages::{cursors, envelope, errors, notifications, requests, results, snapshots};

/// Common parts of samples, each with every field.
fn meta() -> Value {
    json!({ "vendor": { "deep": [1, null, "x"] } })
}

fn range() -> Value {
    json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 3, "character": 4 } })
}

fn content_ref() -> Value {
    json!({ "uri": "file:///c", "sizeHint": 12, "contentType": "text/plain", "nonce": "n" })
}

fn file_edit() -> Value {
    let side = json!({ "uri": "file:///a", "content": content_ref() });
    json!({ "before": side, "after": side, "diff": { "added": 3, "removed": 1 } })
}

fn error() -> Value {
    json!({ "errorType": "agent", "message": "broke", "stack": "at x", "_meta": meta() })
}

fn usage() -> Value {
    json!({ "inputTokens": 10, "outputTokens": 20, "model": "m", "cacheReadTokens": 5, "_meta": meta() })
}

fn changes() -> Value {
    json!({ "additions": 1, "deletions": 2, "files": 3 })
}

/// `base` with the members of `more`.
fn with(mut base: Value, more: Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

fn attachments() -> Value {
    let base = json!({ "label": "l", "range": range(), "displayKind": "file", "_meta": meta() });
    let selection = json!({ "range": range() });
    json!([
        with(base.clone(), json!({ "type": "simple", "modelRepresentation": "text" })),
        with(
            base.clone(),
            json!({ "type": "embeddedResource", "data": "QQ==", "contentType": "text/plain", "selection": selection })
        ),
        with(with(base.clone(), json!({ "type": "resource", "selection": selection })), content_ref()),
        with(
            base.clone(),
            json!({ "type": "annotations", "resource": "ahp-session:/1/annotations", "annotationIds": ["a"] })
        ),
        with(base, json!({ "type": "chat", "resource": "ahp-chat:/1", "endTurn": "t" })),
    ])
}

fn message() -> Value {
    json!({
        "text": "hello", "origin": { "kind": "user" }, "attachments": attachments(),
        "model": { "id": "m", "config": { "effort": "high" } }, "agent": { "uri": "file:///agent.md" }, "_meta": meta(),
    })
}

fn said_by(kind: &str) -> Value {
    json!({ "text": "", "origin": { "kind": kind } })
}

fn question_base() -> Value {
    json!({ "id": "q", "title": "t", "message": "m", "required": true })
}

fn input_request() -> Value {
    let options = json!([{ "id": "o", "label": "l", "description": "d", "recommended": true }]);
    let numbers = json!({ "min": 0.5, "max": 9.5, "defaultValue": 2.5 });
    let question = |kind: &str, more: Value| with(with(question_base(), json!({ "kind": kind })), more);
    json!({
        "id": "r", "message": "please", "url": "https://example.com/", "answers": answers(),
        "questions": [
            question("text", json!({ "format": "email", "min": 1, "max": 9, "defaultValue": "d" })),
            question("number", numbers.clone()),
            question("integer", numbers),
            question("boolean", json!({ "defaultValue": true })),
            question("single-select", json!({ "options": options, "allowFreeformInput": true })),
            question("multi-select", json!({ "options": options, "allowFreeformInput": true, "min": 1, "max": 2 })),
        ],
    })
}

fn answer(state: &str) -> Value {
    json!({ "state": state, "value": { "kind": "text", "value": "v" } })
}

fn answers() -> Value {
    let submitted = |value: Value| json!({ "state": "submitted", "value": value });
    json!({
        "a": answer("draft"),
        "b": submitted(json!({ "kind": "number", "value": 1.5 })),
        "c": submitted(json!({ "kind": "boolean", "value": true })),
        "d": submitted(json!({ "kind": "selected", "value": "o", "freeformValues": ["f"] })),
        "e": submitted(json!({ "kind": "selected-many", "value": ["o"], "freeformValues": ["f"] })),
        "f": { "state": "skipped", "freeformValues": ["f"] },
    })
}

fn resource_metadata() -> Value {
    json!({
        "resource": "https://api.example.com", "resource_name": "n",
        "authorization_servers": ["https://as.example.com"],
        "jwks_uri": "j", "scopes_supported": ["s"], "bearer_methods_supported": ["header"],
        "resource_signing_alg_values_supported": ["RS256"], "resource_documentation": "d", "resource_policy_uri": "p",
        "resource_tos_uri": "t", "required": false,
    })
}

fn auth() -> Value {
    json!({
        "reason": "insufficientScope", "oauthClient": { "clientId": "c", "clientSecret": "s" },
        "resource": resource_metadata(), "requiredScopes": ["s"], "description": "d",
    })
}

fn contributor(kind: &str) -> Value {
    match kind {
        "client" => json!({ "kind": "client", "clientId": "c" }),
        _ => json!({ "kind": "mcp", "customizationId": "m" }),
    }
}

fn tool_content() -> Value {
    json!([
        { "type": "text", "text": "t" },
        { "type": "embeddedResource", "data": "QQ==", "contentType": "image/png" },
        with(json!({ "type": "resource" }), content_ref()),
        with(json!({ "type": "fileEdit" }), file_edit()),
        {
            "type": "terminal", "resource": "ahp-terminal:/1", "title": "sh", "isPty": true,
            "result": { "exitCode": -1, "preview": "p", "truncated": true },
        },
        { "type": "subagent", "resource": "ahp-chat:/2", "title": "t", "agentName": "a", "description": "d" },
    ])
}

fn tool_result() -> Value {
    json!({
        "success": false, "pastTenseMessage": { "markdown": "*did*" }, "content": tool_content(),
        "structuredContent": { "x": 1 }, "error": { "message": "m", "code": "c" },
    })
}

fn options() -> Value {
    json!([
        { "id": "yes", "label": "Yes", "kind": "approve", "group": 1 },
        { "id": "no", "label": "No", "kind": "deny" },
    ])
}

/// A tool call in each of its states.
pub(crate) fn tool_calls() -> Vec<Value> {
    let base = json!({
        "toolCallId": "c", "toolName": "n", "displayName": "d", "intention": "i", "contributor": contributor("client"),
        "_meta": meta(),
    });
    let ready = with(base.clone(), json!({ "invocationMessage": "runs", "toolInput": "ls" }));
    let confirmed = json!({ "confirmed": "user-action", "selectedOption": options()[0] });
    let of = |status: &str, base: &Value, more: Value| with(with(base.clone(), json!({ "status": status })), more);
    vec![
        of("streaming", &base, json!({ "partialInput": "l", "invocationMessage": "will run" })),
        of(
            "pending-confirmation",
            &ready,
            json!({
                "confirmationTitle": "Run?", "riskAssessment": { "status": "loading", "kind": "judge" },
                "edits": { "items": [file_edit()] }, "editable": true, "options": options(),
            }),
        ),
        with(of("running", &ready, json!({ "content": tool_content() })), confirmed.clone()),
        with(of("auth-required", &ready, json!({ "content": tool_content(), "auth": auth() })), confirmed.clone()),
        with(of("pending-result-confirmation", &ready, tool_result()), confirmed.clone()),
        with(of("completed", &ready, tool_result()), confirmed),
        of(
            "cancelled",
            &ready,
            json!({
                "reason": "result-denied", "reasonMessage": "no", "userSuggestion": message(),
                "selectedOption": options()[1],
            }),
        ),
    ]
}

fn response_parts() -> Vec<Value> {
    let mut parts = vec![
        json!({ "kind": "markdown", "id": "p", "content": "c" }),
        json!({ "kind": "reasoning", "id": "p", "content": "c" }),
        with(json!({ "kind": "contentRef" }), content_ref()),
        json!({ "kind": "systemNotification", "content": "s", "_meta": meta() }),
        json!({ "kind": "inputRequest", "request": input_request(), "response": "accept" }),
        error_part(),
    ];
    parts.extend(tool_calls().into_iter().map(|call| json!({ "kind": "toolCall", "toolCall": call })));
    parts
}

fn error_part() -> Value {
    json!({ "kind": "error", "error": error(), "resumable": true })
}

fn turn(state: &str) -> Value {
    json!({
        "id": "t", "startedAt": "2026-10-01T00:00:00.000Z", "duration": 17, "message": message(),
        "responseParts": response_parts(), "usage": usage(), "state": state,
    })
}

fn changeset() -> Value {
    json!({
        "label": "l", "uriTemplate": "ahp-changeset:/{id}", "description": "d", "changeKind": "session",
        "capabilities": { "review": {} },
    })
}

fn changeset_file() -> Value {
    json!({ "id": "f", "edit": file_edit(), "reviewed": true, "_meta": meta() })
}

fn operations() -> Value {
    let operation = |status: &str| {
        json!({
            "id": "o", "label": "l", "description": "d", "scopes": ["changeset", "resource", "range"],
            "confirmation": "sure?", "icon": "i", "group": "g", "status": status, "error": error(),
        })
    };
    json!([operation("idle"), operation("running"), operation("error"), operation("disabled")])
}

fn chat_origins() -> Vec<Value> {
    vec![
        json!({ "kind": "user" }),
        json!({ "kind": "fork", "chat": "ahp-chat:/1", "turnId": "t" }),
        json!({
            "kind": "sideChat", "chat": "ahp-chat:/1", "turnId": "t",
            "selection": { "text": "x", "responsePartId": "p" },
        }),
        json!({ "kind": "tool", "chat": "ahp-chat:/1", "toolCallId": "c" }),
    ]
}

fn chat_summary(origin: Value) -> Value {
    json!({
        "resource": "ahp-chat:/2", "title": "t", "status": 40, "activity": "a",
        "modifiedAt": "2026-10-01T00:00:00.000Z",
        "changes": changes(), "origin": origin, "movable": true, "interactivity": "read-only",
        "workingDirectories": ["file:///w"],
    })
}

fn session_summary() -> Value {
    json!({
        "resource": "ahp-session:/1", "provider": "p", "title": "t", "status": 2147483720_u32, "activity": "a",
        "origin": { "kind": "automation", "automation": "a", "run": "r" },
        "project": { "uri": "file:///p", "displayName": "p" }, "workingDirectories": ["file:///w"],
        "annotations": { "resource": "ahp-session:/1/annotations", "annotationCount": 1, "entryCount": 2 },
        "createdAt": "2026-10-01T00:00:00.000Z", "modifiedAt": "2026-10-01T00:00:00.000Z", "changes": changes(),
        "_meta": meta(), "defaultChat": "ahp-chat:/2",
        "chats": [{
            "resource": "ahp-chat:/2", "title": "t", "origin": chat_origins()[0], "interactivity": "hidden",
            "status": 1,
            "changes": changes(),
        }],
    })
}

fn tool_definition() -> Value {
    json!({
        "name": "n", "title": "t", "description": "d", "inputSchema": { "type": "object", "properties": { "x": {} } },
        "outputSchema": { "type": "object" }, "_meta": meta(),
        "annotations": {
            "title": "t", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
            "openWorldHint": false,
        },
    })
}

fn enablement() -> Value {
    json!([
        { "kind": "global", "enabled": true },
        { "kind": "workspace", "uri": "file:///w", "enabled": false },
        { "kind": "session", "enabled": true },
    ])
}

fn named() -> Value {
    let icon = json!({ "src": "data:,", "contentType": "image/png", "sizes": ["any"], "theme": "dark" });
    json!({ "id": "x", "uri": "file:///x", "name": "x", "icons": [icon], "range": range(), "_meta": meta() })
}

fn mcp_states() -> Vec<Value> {
    vec![
        json!({ "kind": "starting", "blocking": true }),
        json!({ "kind": "ready" }),
        with(json!({ "kind": "authRequired" }), auth()),
        json!({ "kind": "error", "error": error() }),
        json!({ "kind": "stopped" }),
    ]
}

fn mcp_server(state: Value) -> Value {
    let capabilities = json!({
        "serverTools": { "listChanged": true }, "serverResources": {}, "logging": {}, "sampling": { "tools": {} },
    });
    with(
        named(),
        json!({
            "type": "mcpServer", "enablement": enablement(), "state": state, "channel": "mcp://x",
            "mcpApp": { "capabilities": capabilities },
        }),
    )
}

fn children() -> Value {
    let child = |kind: &str, more: Value| with(with(named(), json!({ "type": kind, "enabled": true })), more);
    let invocation = json!({ "description": "d", "disableModelInvocation": true, "disableUserInvocation": false });
    json!([
        child("agent", with(invocation.clone(), json!({ "model": "m", "tools": ["t"] }))),
        child("skill", invocation),
        child("prompt", json!({ "description": "d" })),
        child("rule", json!({ "description": "d", "alwaysApply": true, "globs": ["*.rs"] })),
        child("hook", json!({})),
        mcp_server(mcp_states()[1].clone()),
    ])
}

fn plugin(load: Value) -> Value {
    with(
        named(),
        json!({
            "type": "plugin", "clientId": "c", "load": load, "children": children(), "enablement": enablement(),
            "version": "1",
        }),
    )
}

fn customizations() -> Vec<Value> {
    let mut all = vec![
        plugin(json!({ "kind": "loading" })),
        plugin(json!({ "kind": "loaded" })),
        plugin(json!({ "kind": "degraded", "message": "m" })),
        with(
            named(),
            json!({
                "type": "directory", "clientId": "c", "load": { "kind": "error", "message": "m" },
                "children": children(), "enabled": true, "contents": "skill", "writable": false,
            }),
        ),
    ];
    all.extend(mcp_states().into_iter().map(mcp_server));
    all
}

fn active_client() -> Value {
    let plugin =
        with(plugin(json!({ "kind": "loaded" })), json!({ "nonce": "n", "childEnablement": { "x": enablement() } }));
    json!({ "clientId": "c", "displayName": "d", "tools": [tool_definition()], "customizations": [plugin] })
}

fn input_needed() -> Vec<Value> {
    let calls = tool_calls();
    let of = |kind: &str, call: usize| {
        json!({
            "kind": kind, "id": "i", "chat": "ahp-chat:/2", "turnId": "t", "toolCall": calls[call],
        })
    };
    vec![
        json!({ "kind": "chatInput", "id": "i", "chat": "ahp-chat:/2", "request": input_request() }),
        of("toolConfirmation", 1),
        of("toolConfirmation", 4),
        with(of("toolClientExecution", 2), json!({ "clientId": "c" })),
        of("toolAuthentication", 3),
    ]
}

fn property(more: Value) -> Value {
    let base = json!({
        "type": "string", "title": "t", "description": "d", "default": "x", "enum": ["x", 1], "enumLabels": ["X", "1"],
        "enumDescriptions": ["x", "1"], "readOnly": true, "minItems": 1, "maxItems": 2, "required": ["a"],
    });
    with(base, more)
}

fn config(more: Value) -> Value {
    let inner = property(json!({}));
    let nested = json!({ "items": inner, "properties": { "a": inner }, "additionalProperties": inner });
    let property = property(with(nested, more));
    json!({ "type": "object", "properties": { "p": property }, "required": ["p"] })
}

fn session_config() -> Value {
    config(json!({ "enumDynamic": true, "sessionMutable": true }))
}

fn agent() -> Value {
    let models: Vec<Value> = ["enabled", "disabled", "unconfigured"]
        .iter()
        .map(|policy| {
            json!({
                "id": "m", "provider": "p", "name": "n", "maxContextWindow": 1, "maxOutputTokens": 2,
                "maxPromptTokens": 3, "supportsVision": true, "policyState": policy, "configSchema": config(json!({})),
                "_meta": meta(),
            })
        })
        .collect();
    json!({
        "provider": "p", "displayName": "d", "description": "d", "models": models,
        "protectedResources": [resource_metadata()], "customizations": customizations(),
        "capabilities": {
            "multipleChats": { "fork": true, "sideChat": true },
            "multipleWorkingDirectories": { "immutablePrimary": true, "primaryReplacement": true },
        },
    })
}

fn claims() -> Vec<Value> {
    vec![
        json!({ "kind": "client", "clientId": "c" }),
        json!({
            "kind": "session", "session": "ahp-session:/1", "chat": "ahp-chat:/2", "turnId": "t", "toolCallId": "c",
        }),
    ]
}

fn terminals() -> Value {
    let info = |claim: usize, lifecycle: Value| {
        json!({
            "resource": "ahp-terminal:/1", "title": "t", "claim": claims()[claim], "lifecycle": lifecycle,
        })
    };
    json!([
        info(0, json!({ "status": "running" })),
        info(1, json!({ "status": "exited", "exitCode": 2 })),
        info(1, json!({ "status": "exited" })),
    ])
}

fn annotation_origin() -> Value {
    json!({ "session": "ahp-session:/1", "chat": "ahp-chat:/2", "turnId": "t" })
}

fn annotation() -> Value {
    json!({
        "id": "a", "origin": annotation_origin(), "resource": "file:///a", "range": range(), "resolved": true,
        "entries": [annotation_entry()], "_meta": meta(),
    })
}

fn annotation_entry() -> Value {
    json!({ "id": "e", "text": { "markdown": "x" }, "_meta": meta() })
}

fn background_work() -> Vec<Value> {
    let base = json!({ "id": "b", "label": "l", "startedAt": "2026-10-01T00:00:00.000Z", "_meta": meta() });
    vec![
        with(base.clone(), json!({ "kind": "shell", "command": "make", "terminal": "ahp-terminal:/1" })),
        with(base, json!({ "kind": "subagent", "chat": "ahp-chat:/3" })),
    ]
}

/// The words of lists that the other samples do not use, by the name of their type.
pub(crate) fn words() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("SessionLifecycle", vec!["creating", "ready", "failed"]),
        ("ChangesetStatus", vec!["computing", "recomputing", "ready", "error"]),
        ("McpAuthRequiredReason", vec!["required", "expired", "insufficientScope"]),
        ("AuthRequiredReason", vec!["required", "expired"]),
        ("ChatInputResponseKind", vec!["accept", "decline", "cancel"]),
        ("ChatInteractivity", vec!["full", "read-only", "hidden"]),
        ("CustomizationType", vec!["plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer"]),
        ("ToolCallCancellationReason", vec!["denied", "skipped", "result-denied"]),
    ]
}

/// `value` without each one of its keys, to make malformed values: the key, and the rest.
pub(crate) fn without_each_key(value: &Value) -> Vec<(String, Value)> {
    let keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    keys.into_iter()
        .map(|key| {
            let left: Map<String, Value> = value
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| **name != key)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            (key, Value::Object(left))
        })
        .collect()
}
