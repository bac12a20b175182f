//! The members of every Copilot Chat session, with their types.

use serde_json::Value;

/// Checks one value.
type Check = fn(&Value) -> bool;

const TEXT: Check = Value::is_string;
const NUMBER: Check = Value::is_number;
const FLAG: Check = Value::is_boolean;
const OBJECT: Check = Value::is_object;
const LIST: Check = Value::is_array;

fn words(value: &Value) -> bool {
    value.is_string() || value.get("value").is_some_and(Value::is_string)
}

fn has(value: &Value, what: &str, members: &[(&str, Check)]) {
    for (name, check) in members {
        let member = value.get(name).unwrap_or_else(|| panic!("{what} has no {name}: {value}"));
        assert!(check(member), "{what}.{name} is {member}");
    }
}

fn may_have(value: &Value, what: &str, members: &[(&str, Check)]) {
    for (name, check) in members {
        assert!(value.get(name).is_none_or(check), "{what}.{name} is {value}");
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_id(value: &Value, kind: &str) -> bool {
    let groups = value.as_str().and_then(|id| id.strip_prefix(kind)).map(|id| id.split('-').map(str::len));
    groups.is_some_and(|groups| groups.eq([8, 4, 4, 4, 12]))
}

fn uri(value: &Value, what: &str) {
    has(value, what, &[("$mid", NUMBER), ("path", TEXT), ("scheme", TEXT)]);
    may_have(value, what, &[("authority", TEXT), ("query", TEXT), ("external", TEXT)]);
}

/// Panics if a member is missing or has another type.
pub(super) fn check(session: &Value) {
    has(
        session,
        "session",
        &[
            ("version", NUMBER),
            ("requesterUsername", TEXT),
            ("requesterAvatarIconUri", OBJECT),
            ("responderUsername", TEXT),
            ("responderAvatarIconUri", |icon| icon["id"].is_string()),
            ("initialLocation", |place| place == "panel" || place == "editor"),
            ("requests", LIST),
            ("sessionId", TEXT),
            ("creationDate", NUMBER),
            ("lastMessageDate", NUMBER),
            ("isImported", FLAG),
        ],
    );
    may_have(session, "session", &[("customTitle", TEXT)]);
    uri(&session["requesterAvatarIconUri"], "requesterAvatarIconUri");
    list(&session["requests"]).iter().for_each(request);
}

fn request(request: &Value) {
    has(
        request,
        "request",
        &[
            ("requestId", |id| is_id(id, "request_")),
            ("responseId", |id| is_id(id, "response_")),
            ("message", OBJECT),
            ("variableData", |data| data["variables"].is_array()),
            ("response", LIST),
            ("result", OBJECT),
            ("isCanceled", FLAG),
            ("followups", LIST),
            ("timestamp", NUMBER),
            ("modelId", TEXT),
            ("agent", OBJECT),
            ("responseMarkdownInfo", LIST),
            ("contentReferences", LIST),
            ("codeCitations", LIST),
        ],
    );
    has(&request["message"], "message", &[("text", TEXT), ("parts", LIST)]);
    for part in list(&request["message"]["parts"]) {
        has(part, "part", &[("range", OBJECT), ("editorRange", OBJECT), ("text", TEXT), ("kind", TEXT)]);
        has(&part["range"], "range", &[("start", NUMBER), ("endExclusive", NUMBER)]);
        let lines: [(&str, Check); 4] =
            [("startLineNumber", NUMBER), ("startColumn", NUMBER), ("endLineNumber", NUMBER), ("endColumn", NUMBER)];
        has(&part["editorRange"], "editorRange", &lines);
    }
    for variable in list(&request["variableData"]["variables"]) {
        has(variable, "variable", &[("name", TEXT), ("value", |value| !value.is_null())]);
    }
    list(&request["response"]).iter().for_each(part);
    result(&request["result"]);
    agent(&request["agent"]);
}

fn part(part: &Value) {
    match part.get("kind").and_then(Value::as_str) {
        None => {
            let members: [(&str, Check); 4] =
                [("value", TEXT), ("supportThemeIcons", FLAG), ("supportHtml", FLAG), ("baseUri", OBJECT)];
            has(part, "text", &members);
            uri(&part["baseUri"], "baseUri");
        }
        Some("toolInvocationSerialized") => {
            has(
                part,
                "call",
                &[
                    ("invocationMessage", words),
                    ("isConfirmed", |confirmed| confirmed["type"].as_u64().is_some_and(|kind| kind <= 5)),
                    ("isComplete", FLAG),
                    ("source", |source| source["type"].is_string() && source["label"].is_string()),
                    ("toolCallId", TEXT),
                    ("toolId", TEXT),
                ],
            );
            may_have(part, "call", &[("pastTenseMessage", words), ("toolSpecificData", OBJECT)]);
            specific(&part["toolSpecificData"]);
        }
        Some(_) => {}
    }
}

fn specific(data: &Value) {
    match data["kind"].as_str() {
        Some("terminal") => has(
            data,
            "terminal",
            &[
                ("terminalToolSessionId", TEXT),
                ("terminalCommandId", TEXT),
                ("commandLine", |line| line["original"].is_string()),
                ("language", TEXT),
            ],
        ),
        Some("todoList") => {
            has(data, "todoList", &[("sessionId", TEXT), ("todoList", LIST)]);
            for item in list(&data["todoList"]) {
                let is_status: Check =
                    |status| ["not-started", "in-progress", "completed"].iter().any(|one| status == one);
                has(item, "todo", &[("id", TEXT), ("title", TEXT), ("description", TEXT), ("status", is_status)]);
            }
        }
        _ => {}
    }
}

fn result(result: &Value) {
    has(result, "result", &[("timings", OBJECT), ("metadata", OBJECT), ("details", TEXT)]);
    has(&result["timings"], "timings", &[("firstProgress", NUMBER), ("totalElapsed", NUMBER)]);
    let metadata = &result["metadata"];
    has(
        metadata,
        "metadata",
        &[
            ("codeBlocks", LIST),
            ("renderedUserMessage", LIST),
            ("toolCallRounds", LIST),
            ("cacheKey", TEXT),
            ("modelMessageId", TEXT),
            ("responseId", TEXT),
            ("sessionId", TEXT),
            ("agentId", TEXT),
        ],
    );
    for block in list(&metadata["codeBlocks"]) {
        has(block, "codeBlock", &[("code", TEXT), ("language", TEXT), ("markdownBeforeBlock", TEXT)]);
    }
    for message in list(&metadata["renderedUserMessage"]) {
        has(message, "rendered", &[("type", NUMBER), ("text", TEXT)]);
    }
    for round in list(&metadata["toolCallRounds"]) {
        let members: [(&str, Check); 4] =
            [("response", TEXT), ("toolCalls", LIST), ("toolInputRetry", NUMBER), ("id", TEXT)];
        has(round, "round", &members);
        for call in list(&round["toolCalls"]) {
            has(call, "round's call", &[("name", TEXT), ("arguments", TEXT), ("id", TEXT)]);
        }
    }
    for result in metadata["toolCallResults"].as_object().into_iter().flat_map(|results| results.values()) {
        has(result, "toolCallResult", &[("$mid", NUMBER), ("content", LIST)]);
        for content in list(&result["content"]) {
            has(content, "content", &[("$mid", NUMBER), ("value", |value| !value.is_null())]);
        }
    }
}

fn agent(agent: &Value) {
    has(
        agent,
        "agent",
        &[
            ("extensionId", |id| id["value"].is_string() && id["_lower"].is_string()),
            ("extensionVersion", TEXT),
            ("publisherDisplayName", TEXT),
            ("extensionPublisherId", TEXT),
            ("extensionDisplayName", TEXT),
            ("id", TEXT),
            ("description", TEXT),
            ("when", TEXT),
            ("metadata", OBJECT),
            ("name", TEXT),
            ("fullName", TEXT),
            ("isDefault", FLAG),
            ("locations", LIST),
            ("modes", LIST),
            ("slashCommands", LIST),
            ("disambiguation", LIST),
        ],
    );
    let members: [(&str, Check); 3] =
        [("themeIcon", |icon| icon["id"].is_string()), ("hasFollowups", FLAG), ("supportIssueReporting", FLAG)];
    has(&agent["metadata"], "agent's metadata", &members);
}
