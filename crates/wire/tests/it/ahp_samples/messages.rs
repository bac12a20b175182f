//! Samples of states, and of the messages that carry them.

use serde_json::{Value, json};

use super::{
    active_client, agent, annotation, attachments, background_work, changeset, changeset_file, chat_origins,
    chat_summary, claims, config, content_ref, customizations, error, input_needed, message, meta, operations, range,
    resource_metadata, response_parts, session_config, session_summary, terminals, tool_definition, turn, usage, with,
};

/// Every state, with the channel it belongs to.
fn states() -> Vec<(&'static str, Value)> {
    let chat = chat_summary(chat_origins()[2].clone());
    let pending = json!({ "id": "q", "message": message() });
    vec![
        (
            "ahp-root://",
            json!({
                "agents": [agent()], "activeSessions": 1, "terminals": terminals(),
                "config": { "schema": config(json!({})), "values": { "p": "v" } }, "_meta": meta(),
            }),
        ),
        (
            "ahp-session:/1",
            json!({
                "provider": "p", "title": "t", "status": 24, "activity": "a", "origin": session_summary()["origin"],
                "project": session_summary()["project"], "workingDirectories": ["file:///w"],
                "annotations": session_summary()["annotations"], "lifecycle": "failed", "creationError": error(),
                "serverTools": [tool_definition()], "activeClients": [active_client()], "chats": [chat],
                "defaultChat": "ahp-chat:/2", "config": { "schema": session_config(), "values": { "p": "v" } },
                "customizations": customizations(), "changesets": [changeset()], "inputNeeded": input_needed(),
                "_meta": meta(),
            }),
        ),
        (
            "ahp-chat:/2",
            with(
                chat,
                json!({
                    "changesets": [changeset()], "backgroundWork": background_work(),
                    "canvases": [{ "resource": "ahp-canvas:/1" }],
                    "turns": [turn("complete"), turn("cancelled"), turn("error")], "turnsNextCursor": "n",
                    "activeTurn": {
                        "id": "t", "startedAt": "2026-10-01T00:00:00.000Z", "message": message(),
                        "responseParts": response_parts(), "usage": usage(),
                    },
                    "steeringMessage": pending, "queuedMessages": [pending], "draft": message(), "_meta": meta(),
                }),
            ),
        ),
        (
            "ahp-terminal:/1",
            json!({
                "title": "t", "cwd": "file:///w", "cols": 80, "rows": 24, "lifecycle": { "status": "running" },
                "claim": claims()[1], "supportsCommandDetection": true, "isPty": true,
                "content": [
                    { "type": "unclassified", "value": "v" },
                    {
                        "type": "command", "commandId": "c", "commandLine": "ls", "output": "o",
                        "timestamp": 1790000000000_u64, "isComplete": true, "exitCode": 0, "durationMs": 4,
                    },
                ],
            }),
        ),
        (
            "ahp-changeset:/1",
            json!({ "status": "ready", "error": error(), "files": [changeset_file()], "operations": operations() }),
        ),
        ("ahp-session:/1/annotations", json!({ "annotations": [annotation()] })),
        (
            "ahp-resource-watch:/1",
            json!({
                "root": "file:///w", "recursive": true, "excludes": { "items": ["target"] },
                "includes": { "items": ["*.rs"] },
            }),
        ),
    ]
}

pub(crate) fn snapshots() -> Vec<Value> {
    let snapshot = |(resource, state)| json!({ "resource": resource, "state": state, "fromSeq": 2148131814_u64 });
    states().into_iter().map(snapshot).collect()
}

pub(crate) fn envelope() -> Value {
    json!({
        "channel": "ahp-session:/1", "action": { "type": "session/titleChanged", "title": "t" }, "serverSeq": 12,
        "origin": { "clientId": "c", "clientSeq": 3 }, "rejectionReason": "no",
    })
}

/// The params of every request, by its method; some methods have several forms.
pub(crate) fn requests() -> Vec<(&'static str, Value)> {
    let provider = json!({ "provider": "p", "workingDirectory": "file:///w", "config": { "p": "v" } });
    let uri = json!({ "uri": "file:///a" });
    let pair = json!({ "source": "file:///a", "destination": "file:///b", "failIfExists": true });
    let globs = json!({ "recursive": true, "excludes": { "items": ["a"] }, "includes": { "items": ["b"] } });
    let fork = json!({ "kind": "fork", "chat": "ahp-chat:/1", "turnId": "t" });
    let side = chat_origins()[2].clone();
    let chat = |source: Value| {
        json!({
            "chat": "ahp-chat:/2", "initialMessage": message(), "source": source, "workingDirectories": ["file:///w"],
        })
    };
    let write = |mode: &str| {
        json!({
            "uri": "file:///a", "data": "QQ==", "encoding": "base64", "contentType": "text/plain", "createOnly": true,
            "mode": mode, "position": 4, "ifMatch": "e",
        })
    };
    let target = |target: Value| json!({ "operationId": "o", "target": target });
    let all = vec![
        (
            "initialize",
            json!({
                "protocolVersions": ["1.0.0"], "clientId": "c", "clientInfo": implementation(),
                "initialSubscriptions": ["ahp-root://"], "locale": "en", "capabilities": { "mcpApps": {} },
            }),
        ),
        ("ping", json!({})),
        ("reconnect", json!({ "clientId": "c", "lastSeenServerSeq": 7, "subscriptions": ["ahp-root://"] })),
        ("subscribe", json!({ "delivery": { "maxLatencyMs": 0 }, "view": { "turns": 20 } })),
        ("listSessions", json!({ "limit": 10, "cursor": "n" })),
        (
            "createSession",
            json!({
                "provider": "p", "workingDirectories": ["file:///w"], "config": { "p": "v" },
                "activeClient": active_client(), "progressToken": "t",
            }),
        ),
        ("disposeSession", json!({})),
        ("createChat", chat(fork)),
        ("createChat", chat(side)),
        ("disposeChat", json!({})),
        (
            "moveChat",
            json!({ "destination": { "kind": "session", "session": "ahp-session:/2", "after": "ahp-chat:/9" } }),
        ),
        ("moveChat", json!({ "destination": { "kind": "newSession" } })),
        ("fetchTurns", json!({ "cursor": "n" })),
        ("completions", json!({ "kind": "userMessage", "text": "@f", "offset": 2 })),
        ("resolveSessionConfig", provider.clone()),
        ("sessionConfigCompletions", with(provider, json!({ "property": "p", "query": "q" }))),
        ("authenticate", json!({ "resource": "r", "token": "secret", "expiresIn": 60, "scopes": ["s"] })),
        ("createTerminal", json!({ "claim": claims()[0], "name": "n", "cwd": "file:///w", "cols": 80, "rows": 24 })),
        ("disposeTerminal", json!({})),
        ("resourceRead", with(uri.clone(), json!({ "encoding": "utf-8" }))),
        ("resourceWrite", write("truncate")),
        ("resourceWrite", write("append")),
        ("resourceWrite", write("insert")),
        ("resourceList", uri.clone()),
        ("resourceResolve", with(uri.clone(), json!({ "followSymlinks": true }))),
        ("resourceMkdir", uri.clone()),
        ("resourceDelete", with(uri.clone(), json!({ "recursive": true }))),
        ("resourceCopy", pair.clone()),
        ("resourceMove", pair),
        ("resourceRequest", with(uri.clone(), json!({ "read": true, "write": true }))),
        ("createResourceWatch", with(uri, globs)),
        ("invokeChangesetOperation", target(json!({ "kind": "resource", "resource": "file:///a", "side": "after" }))),
        (
            "invokeChangesetOperation",
            target(json!({ "kind": "range", "resource": "file:///a", "side": "before", "range": range() })),
        ),
    ];
    let about = json!({ "channel": "ahp-root://", "_meta": meta() });
    all.into_iter().map(|(method, params)| (method, with(about.clone(), params))).collect()
}

/// The second form of `reconnect`, which the published types do not know.
pub(crate) fn cursors() -> (Value, Value) {
    let params = json!({
        "channel": "ahp-root://", "_meta": meta(), "clientId": "c",
        "subscriptions": [{ "channel": "ahp-root://", "lastSeenServerSeq": 0 }],
    });
    let result = json!({
        "channels": [
            { "kind": "replay", "channel": "ahp-root://", "actions": [envelope()] },
            { "kind": "snapshot", "channel": "ahp-chat:/2", "snapshot": snapshots()[2] },
            { "kind": "missing", "channel": "ahp-chat:/3" },
        ],
    });
    (params, result)
}

fn implementation() -> Value {
    json!({ "name": "n", "version": "1.4.2", "title": "t" })
}

/// The result of every request, by its method.
pub(crate) fn results() -> Vec<(&'static str, Value)> {
    let completion =
        |attachment: &Value| json!({ "insertText": "@file", "rangeStart": 0, "rangeEnd": 2, "attachment": attachment });
    let completions: Vec<Value> = attachments().as_array().unwrap().iter().map(completion).collect();
    let resolved = |kind: &str| {
        json!({
            "uri": "file:///a", "type": kind, "size": 1, "mtime": "2026-10-01T00:00:00.000Z",
            "ctime": "2026-10-01T00:00:00.000Z", "contentType": "text/plain", "etag": "e",
        })
    };
    vec![
        (
            "initialize",
            json!({
                "protocolVersion": "1.0.0", "serverSeq": 7, "serverInfo": implementation(), "_meta": meta(),
                "snapshots": snapshots(), "defaultDirectory": "file:///w", "completionTriggerCharacters": ["@"],
                "terminalCommandPrefix": "!", "automations": { "create": {} },
                "telemetry": { "logs": "ahp-otlp:/l", "traces": "ahp-otlp:/t", "metrics": "ahp-otlp:/m" },
            }),
        ),
        ("ping", Value::Null),
        ("reconnect", json!({ "type": "replay", "actions": [envelope()], "missing": ["ahp-chat:/3"] })),
        ("reconnect", json!({ "type": "snapshot", "snapshots": snapshots() })),
        ("subscribe", json!({ "snapshot": snapshots()[0] })),
        ("listSessions", json!({ "nextCursor": "n", "items": [session_summary()] })),
        ("createSession", Value::Null),
        ("disposeSession", Value::Null),
        ("createChat", Value::Null),
        ("disposeChat", Value::Null),
        ("moveChat", json!({ "session": "ahp-session:/2" })),
        ("fetchTurns", json!({})),
        ("completions", json!({ "items": completions })),
        ("resolveSessionConfig", json!({ "schema": session_config(), "values": { "p": "v" } })),
        ("sessionConfigCompletions", json!({ "items": [{ "value": "v", "label": "l", "description": "d" }] })),
        ("authenticate", json!({})),
        ("createTerminal", Value::Null),
        ("disposeTerminal", Value::Null),
        ("resourceRead", json!({ "data": "x", "encoding": "utf-8", "contentType": "text/plain" })),
        ("resourceWrite", json!({})),
        ("resourceList", json!({ "entries": [{ "name": "a", "type": "file" }, { "name": "b", "type": "directory" }] })),
        ("resourceResolve", resolved("file")),
        ("resourceResolve", resolved("directory")),
        ("resourceResolve", resolved("symlink")),
        ("resourceMkdir", json!({})),
        ("resourceDelete", json!({})),
        ("resourceCopy", json!({})),
        ("resourceMove", json!({})),
        ("resourceRequest", json!({})),
        ("createResourceWatch", json!({ "channel": "ahp-resource-watch:/1" })),
        (
            "invokeChangesetOperation",
            json!({ "message": "done", "followUp": { "content": content_ref(), "external": true } }),
        ),
    ]
}

/// The params of every notification of the host but `action`, by its method.
pub(crate) fn notifications() -> Vec<(&'static str, Value)> {
    vec![
        ("root/sessionAdded", json!({ "channel": "ahp-root://", "summary": session_summary() })),
        ("root/sessionRemoved", json!({ "channel": "ahp-root://", "session": "ahp-session:/1" })),
        (
            "root/sessionSummaryChanged",
            json!({ "channel": "ahp-root://", "session": "ahp-session:/1", "changes": session_summary() }),
        ),
        (
            "root/progress",
            json!({ "channel": "ahp-root://", "progressToken": "t", "progress": 1, "total": 2, "message": "m" }),
        ),
        ("auth/required", json!({ "channel": "ahp-root://", "resource": resource_metadata(), "reason": "expired" })),
    ]
}

pub(crate) fn errors() -> Vec<Value> {
    let request = requests().into_iter().find(|(method, _)| *method == "resourceRequest").unwrap().1;
    let error = |code: i64, data: Value| json!({ "code": code, "message": "m", "data": data });
    vec![
        error(-32005, json!({ "supportedVersions": ["^1.0.0", "^0.9.0"] })),
        error(-32007, json!({ "resources": [resource_metadata()] })),
        error(-32009, json!({ "request": request })),
    ]
}
