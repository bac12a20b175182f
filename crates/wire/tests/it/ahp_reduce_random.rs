//! Random actions: of every type, and mostly ones that fit the current state.

use grove_wire::ahp::{ChatAction, SessionAction};
use serde_json::{Value, json};

/// Choices that shrink: all zeros is the first of everything.
pub(crate) struct Dice {
    rolls: [u8; 16],
    at: usize,
}

impl Dice {
    pub(crate) fn new(rolls: [u8; 16]) -> Self {
        Self { rolls, at: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        let roll = self.rolls[self.at % self.rolls.len()];
        self.at += 1;
        usize::from(roll) % bound
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Adds an optional field now and then.
    fn maybe(&mut self, body: &mut Value, key: &str, values: &[Value]) {
        if self.below(3) == 1 {
            body[key] = self.pick(values);
        }
    }

    /// [`maybe`](Self::maybe) on an empty object.
    fn only(&mut self, key: &str, values: &[Value]) -> Value {
        let mut body = json!({});
        self.maybe(&mut body, key, values);
        body
    }
}

pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub(crate) fn empty_chat() -> Value {
    json!({"resource": "ahp-chat:/1", "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00Z", "turns": []})
}

pub(crate) fn chat_action(dice: &mut Dice, state: &Value) -> Value {
    // Actions within a turn, or on a call, would be rare if they were left to chance.
    let calls: Vec<&Value> = items(&state["activeTurn"]["responseParts"]).map(|part| &part["toolCall"]).collect();
    const PARTS: &[&str] = &["chat/responsePart", "chat/toolCallStart", "chat/reasoning", "chat/delta"];
    const MESSAGES: &[&str] = &[
        "chat/pendingMessageSet",
        "chat/pendingMessageSet",
        "chat/pendingMessageRemoved",
        "chat/queuedMessagesReordered",
        "chat/inputRequested",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
    ];
    let (kind, body) = match dice.below(4) {
        1 if state["activeTurn"].is_null() => (dice.pick(&["chat/turnStarted", "chat/turnResume"]), json!({})),
        1 if calls.iter().any(|call| call.is_object()) => {
            let call = dice.pick(&calls);
            (next_of_call(call, dice), json!({"toolCallId": call["toolCallId"]}))
        }
        2 => (dice.pick(PARTS), json!({})),
        3 => (dice.pick(MESSAGES), json!({})),
        _ => (dice.pick(ChatAction::KINDS).0, json!({})),
    };
    let made_up = chat_body(kind, dice, state);
    let body = if body["toolCallId"].is_string() { with(made_up, &body) } else { made_up };
    // An id is unique in a turn: then the direction of the search does not matter.
    let parts = || items(&state["activeTurn"]["responseParts"]);
    let call_id = body["part"]["toolCall"].get("toolCallId").unwrap_or(&body["toolCallId"]);
    let is_given = match kind {
        "chat/toolCallStart" | "chat/responsePart" if call_id.is_string() => {
            parts().any(|part| part["toolCall"]["toolCallId"] == *call_id)
        }
        "chat/responsePart" => parts().any(|part| part["id"].is_string() && part["id"] == body["part"]["id"]),
        _ => false,
    };
    if is_given { json!({"type": "chat/activityChanged"}) } else { with(json!({"type": kind}), &body) }
}

/// A possible next action for a call of this status.
fn next_of_call(call: &Value, dice: &mut Dice) -> &'static str {
    let next: &[&str] = match call["status"].as_str() {
        Some("streaming") => &["chat/toolCallReady", "chat/toolCallDelta"],
        Some("pending-confirmation") => &["chat/toolCallConfirmed", "chat/toolCallReady", "chat/toolCallComplete"],
        Some("running") => &["chat/toolCallComplete", "chat/toolCallContentChanged", "chat/toolCallAuthRequired"],
        Some("auth-required") => &["chat/toolCallAuthResolved", "chat/toolCallComplete"],
        Some("pending-result-confirmation") => &["chat/toolCallResultConfirmed"],
        _ => &["chat/toolCallStart"],
    };
    dice.pick(next)
}

fn message(dice: &mut Dice) -> Value {
    let mut message = json!({"text": dice.pick(&["hi", "and then?"]), "origin": {"kind": "user"}});
    dice.maybe(&mut message, "model", &[json!({"id": "m1"})]);
    message
}

fn chat_body(kind: &str, dice: &mut Dice, state: &Value) -> Value {
    // Mostly of the running turn, or nothing would ever happen in it; else mostly of a new one.
    let turn_id = match (state["activeTurn"]["id"].as_str(), dice.below(8)) {
        (Some(id), 1..) => id.to_owned(),
        (_, 0) => "t1".to_owned(),
        (None, _) => format!("t{}", items(&state["turns"]).count()),
    };
    let answer = json!({"state": "draft", "value": {"kind": "text", "value": "yes"}});
    let request_id = dice.pick(&["q1", "q2"]);
    let message_id = dice.pick(&["m3", "m1", "m2"]);
    let message_kind = dice.pick(&["queued", "steering"]);
    match kind {
        "chat/turnStarted" => {
            let starts = ["2026-01-01T00:00:00Z", "2026-01-01T10:00:00.5+02:00", "1999-12-31T23:59:59.999Z", "soon"];
            let mut body = json!({"turnId": turn_id, "startedAt": dice.pick(&starts), "message": message(dice)});
            dice.maybe(&mut body, "queuedMessageId", &[json!("m1"), json!("m2")]);
            body
        }
        "chat/responsePart" => json!({"turnId": turn_id, "part": part(dice)}),
        "chat/delta" | "chat/reasoning" => json!({
            "turnId": turn_id, "partId": dice.pick(&["p1", "p2", "c1"]), "content": dice.pick(&["b", "ü", ""]),
        }),
        "chat/usage" => json!({"turnId": turn_id, "usage": {"inputTokens": dice.below(3)}}),
        "chat/turnComplete" => json!({"turnId": turn_id, "duration": dice.pick(&[0, 1_500, -3, i64::MAX])}),
        "chat/turnCancelled" => json!({"turnId": turn_id, "duration": dice.pick(&[86_400_000, 7, -1])}),
        "chat/error" => {
            let mut part = json!({"kind": "error", "error": {"errorType": "e", "message": "m"}});
            dice.maybe(&mut part, "resumable", &[json!(true), json!(true), json!(false)]);
            json!({"turnId": turn_id, "duration": 1, "part": part})
        }
        "chat/turnResume" => {
            json!({"turnId": items(&state["turns"]).last().map_or(json!("t1"), |turn| turn["id"].clone())})
        }
        "chat/turnsLoaded" => {
            let turn = json!({"id": dice.pick(&["t1", "o1", "o2"]), "message": message(dice), "responseParts": [],
                "state": dice.pick(&["complete", "cancelled"])});
            with(json!({"turns": [turn]}), &dice.only("turnsNextCursor", &[json!("older")]))
        }
        // Unlike the others, mostly of a missing turn.
        "chat/truncated" => match dice.below(4) {
            0 => dice.only("turnId", &[json!("t1")]),
            _ => json!({"turnId": dice.pick(&["t2", "o1", "none"])}),
        },
        "chat/pendingMessageSet" => json!({"kind": message_kind, "id": message_id, "message": message(dice)}),
        "chat/pendingMessageRemoved" => json!({"kind": message_kind, "id": message_id}),
        "chat/queuedMessagesReordered" => {
            let orders = [json!([]), json!(["m2", "m1", "m2", "mx"]), json!(["m3"]), json!(["m1", "m2", "m3"])];
            json!({"order": dice.pick(&orders)})
        }
        "chat/draftChanged" => {
            let draft = message(dice);
            dice.only("draft", &[draft])
        }
        "chat/inputRequested" => {
            let mut request = json!({"id": request_id, "message": dice.pick(&["Which?", "Really?"])});
            dice.maybe(&mut request, "answers", &[json!({"a": answer})]);
            json!({"request": request})
        }
        "chat/inputAnswerChanged" => {
            let body = json!({"requestId": request_id, "questionId": dice.pick(&["a", "b"])});
            with(body, &dice.only("answer", &[answer, json!({"state": "skipped"})]))
        }
        "chat/inputCompleted" => {
            let body = json!({"requestId": request_id, "response": dice.pick(&["accept", "decline", "cancel"])});
            with(body, &dice.only("answers", &[json!({"b": answer}), json!({})]))
        }
        "chat/isReadChanged" => json!({"isRead": dice.coin()}),
        "chat/isArchivedChanged" => json!({"isArchived": dice.coin()}),
        "chat/activityChanged" => dice.only("activity", &[json!("thinking")]),
        "chat/changesetsChanged" => dice.only("changesets", &[json!([])]),
        "chat/canvasesChanged" => dice.only("canvases", &[json!([])]),
        "chat/movableChanged" => json!({"movable": dice.coin()}),
        "chat/backgroundWorkSet" => {
            let work = json!({"kind": "shell", "id": "w1", "label": dice.pick(&["a", "b"]), "startedAt": "x",
                "command": "sleep"});
            let unknown = json!({"kind": "new", "id": dice.pick(&["w1", "w2"])});
            json!({"work": dice.pick(&[work, unknown, json!({"kind": "new"})])})
        }
        "chat/backgroundWorkRemoved" => json!({"id": "w1"}),
        "chat/workingDirectorySet" | "chat/workingDirectoryRemoved" => {
            json!({"directory": dice.pick(&["file:///a", "file:///b"])})
        }
        call => {
            let mut body = json!({"turnId": turn_id, "toolCallId": dice.pick(&["c1", "c2"])});
            dice.maybe(&mut body, "_meta", &[json!({"a": 1}), json!({})]);
            call_body(call, dice, body)
        }
    }
}

fn part(dice: &mut Dice) -> Value {
    let id = dice.pick(&["p1", "p2"]);
    match dice.below(8) {
        0 | 1 => json!({"kind": "markdown", "id": id, "content": dice.pick(&["", "a"])}),
        2 | 3 => json!({"kind": "reasoning", "id": id, "content": ""}),
        4 => json!({"kind": "contentRef", "uri": "file:///a"}),
        5 => json!({"kind": "systemNotification", "content": "n"}),
        6 => json!({"kind": "error", "error": {"errorType": "e", "message": "m"}}),
        _ => json!({"kind": "toolCall", "toolCall": {"status": "new", "toolCallId": dice.pick(&["c1", "c3"])}}),
    }
}

fn call_body(kind: &str, dice: &mut Dice, mut body: Value) -> Value {
    let texts = [json!("Run it"), json!({"markdown": "*Run* it"})];
    let contributors = [
        json!({"kind": "mcp", "customizationId": "s1"}),
        json!({"kind": "client", "clientId": "k1"}),
        json!({"kind": "mcp", "customizationId": "s2"}),
        json!({"kind": "client", "clientId": "k2"}),
    ];
    match kind {
        "chat/toolCallStart" => {
            dice.maybe(&mut body, "intention", &[json!("to see")]);
            // Often of an MCP server: nothing else needs a token.
            if dice.coin() {
                body["contributor"] = dice.pick(&contributors[..2]);
            }
            with(body, &json!({"toolName": "shell", "displayName": "Shell"}))
        }
        "chat/toolCallDelta" => {
            dice.maybe(&mut body, "content", &[json!("{"), json!("")]);
            dice.maybe(&mut body, "invocationMessage", &texts);
            body
        }
        "chat/toolCallReady" => {
            let options = [("o1", "approve"), ("o2", "deny")];
            let options = options.map(|(id, kind)| json!({"id": id, "label": id, "kind": kind}));
            if dice.coin() {
                body["confirmed"] = dice.pick(&[json!("not-needed"), json!("setting"), json!("new")]);
            }
            dice.maybe(&mut body, "contributor", &contributors);
            dice.maybe(&mut body, "toolInput", &[json!("ls"), json!({"uri": "file:///input"})]);
            dice.maybe(&mut body, "options", &[json!(options)]);
            dice.maybe(&mut body, "confirmationTitle", &texts);
            dice.maybe(&mut body, "editable", &[json!(true)]);
            dice.maybe(&mut body, "intention", &[json!("to look")]);
            dice.maybe(&mut body, "riskAssessment", &[json!({"status": "loading", "kind": "judge"})]);
            dice.maybe(&mut body, "edits", &[json!({"items": []})]);
            with(body, &json!({"invocationMessage": dice.pick(&texts)}))
        }
        "chat/toolCallConfirmed" => {
            let approved = dice.below(3) > 0;
            if approved {
                dice.maybe(&mut body, "confirmed", &[json!("user-action")]);
                dice.maybe(&mut body, "editedToolInput", &[json!("ls -l")]);
            } else {
                dice.maybe(&mut body, "reason", &[json!("denied"), json!("skipped")]);
                dice.maybe(&mut body, "reasonMessage", &texts);
                let suggestion = message(dice);
                dice.maybe(&mut body, "userSuggestion", &[suggestion]);
            }
            dice.maybe(&mut body, "selectedOptionId", &[json!("o1"), json!("o2"), json!("none")]);
            with(body, &json!({"approved": approved}))
        }
        "chat/toolCallComplete" => {
            let mut result = json!({"success": dice.coin(), "pastTenseMessage": "Ran"});
            dice.maybe(&mut result, "content", &[json!([{"type": "text", "text": "out"}]), json!([])]);
            dice.maybe(&mut result, "error", &[json!({"message": "no"})]);
            dice.maybe(&mut body, "requiresResultConfirmation", &[json!(true), json!(true), json!(false)]);
            with(body, &json!({"result": result}))
        }
        "chat/toolCallResultConfirmed" => with(body, &json!({"approved": dice.coin()})),
        "chat/toolCallContentChanged" => with(body, &json!({"content": [{"type": "text", "text": "so far"}]})),
        "chat/toolCallAuthRequired" => {
            let auth = json!({"reason": "expired", "resource": {"resource": "https://a.example"}});
            with(body, &json!({"auth": auth}))
        }
        "chat/toolCallAuthResolved" => body,
        other => panic!("nobody makes up {other}"),
    }
}

pub(crate) fn empty_session() -> Value {
    json!({"provider": "p", "title": "", "status": 1, "lifecycle": "creating", "activeClients": [], "chats": [],
        "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
        "workingDirectories": ["file:///a", "file:///b"]})
}

pub(crate) fn session_action(dice: &mut Dice, _state: &Value) -> Value {
    // Actions on existing objects need these to be added first.
    const MIN_POLL_INTERVAL: &[&str] = &[
        "session/chatAdded",
        "session/inputNeededSet",
        "session/customizationsChanged",
        "session/mcpServerStateChanged",
        "session/mcpServerBackgroundRequested",
        "session/chatsReordered",
    ];
    let kind = if dice.below(3) > 0 { dice.pick(SessionAction::KINDS).0 } else { dice.pick(MIN_POLL_INTERVAL) };
    with(json!({"type": kind}), &session_body(kind, dice))
}

fn session_body(kind: &str, dice: &mut Dice) -> Value {
    const CHATS: [&str; 3] = ["ahp-chat:/1", "ahp-chat:/2", "ahp-chat:/3"];
    const DIRECTORIES: [&str; 3] = ["file:///a", "file:///b", "file:///c"];
    let id = dice.pick(&["plugin", "folder", "server", "skill", "inner", "hook", "none"]);
    let server = dice.pick(&["server", "inner", "plugin"]);
    let chat = dice.pick(&CHATS);
    let client = dice.pick(&["k1", "k2"]);
    match kind {
        "session/ready" => json!({}),
        "session/creationFailed" => json!({"error": {"errorType": "e", "message": "m"}}),
        "session/chatAdded" => {
            let mut summary =
                json!({"resource": chat, "title": dice.pick(&["A", "B"]), "status": 1, "modifiedAt": "x"});
            dice.maybe(&mut summary, "interactivity", &[json!("full"), json!("read-only")]);
            json!({"summary": summary})
        }
        "session/chatRemoved" => json!({"chat": chat}),
        "session/chatUpdated" => {
            let mut changes = json!({});
            dice.maybe(&mut changes, "title", &[json!("C")]);
            dice.maybe(&mut changes, "status", &[json!(8)]);
            dice.maybe(&mut changes, "activity", &[json!("thinking")]);
            dice.maybe(&mut changes, "modifiedAt", &[json!("y")]);
            dice.maybe(&mut changes, "changes", &[json!({"files": 2})]);
            dice.maybe(&mut changes, "origin", &[json!({"kind": "user"})]);
            dice.maybe(&mut changes, "workingDirectories", &[json!([])]);
            dice.maybe(&mut changes, "interactivity", &[json!("hidden")]);
            dice.maybe(&mut changes, "movable", &[json!(true)]);
            json!({"chat": chat, "changes": changes})
        }
        "session/chatsReordered" => {
            let orders = [vec![2, 1, 0], vec![1, 0], vec![0, 1], vec![0, 0], vec![]];
            let order: Vec<&str> = dice.pick(&orders).into_iter().map(|at: usize| CHATS[at]).collect();
            json!({"chats": order})
        }
        "session/defaultChatChanged" => dice.only("defaultChat", &[json!(chat)]),
        "session/titleChanged" => json!({"title": dice.pick(&["One", "Two"])}),
        "session/isReadChanged" => json!({"isRead": dice.coin()}),
        "session/isArchivedChanged" => json!({"isArchived": dice.coin()}),
        "session/activityChanged" => dice.only("activity", &[json!("thinking")]),
        "session/changesetsChanged" => {
            let changeset = json!({"label": "All", "uriTemplate": "ahp-changeset:/1", "changeKind": "session"});
            dice.only("changesets", &[json!([changeset])])
        }
        "session/serverToolsChanged" => json!({"tools": [{"name": dice.pick(&["a", "b"])}]}),
        "session/activeClientSet" => {
            json!({"activeClient": {"clientId": client, "tools": [{"name": dice.pick(&["a", "b"])}]}})
        }
        "session/activeClientRemoved" => json!({"clientId": client}),
        "session/workingDirectorySet" | "session/workingDirectoryRemoved" => {
            json!({"directory": dice.pick(&DIRECTORIES)})
        }
        "session/workingDirectoryReplaced" => {
            json!({"directory": dice.pick(&DIRECTORIES), "replacement": dice.pick(&DIRECTORIES)})
        }
        "session/inputNeededSet" => json!({"request": input_request(dice, chat)}),
        "session/inputNeededRemoved" => json!({"id": dice.pick(&["n1", "n2"])}),
        "session/customizationsChanged" => json!({"customizations": customizations(dice)}),
        "session/customizationToggled" => {
            let decision = |enabled: bool| json!({"kind": "session", "enabled": enabled});
            let workspace = json!({"kind": "workspace", "uri": "file:///a", "enabled": false});
            let global = json!({"kind": "global", "enabled": true});
            let enablement = [vec![], vec![decision(false)], vec![workspace, decision(true)], vec![global]];
            json!({"id": id, "enablement": dice.pick(&enablement)})
        }
        "session/customizationUpdated" => {
            let plugin = json!({"type": "plugin", "id": id, "uri": "u", "name": dice.pick(&["N", "O"])});
            let server = json!({"type": "mcpServer", "id": id, "uri": "u", "name": "N", "state": {"kind": "ready"}});
            let unknown = json!({"type": "new", "id": id});
            json!({"customization": dice.pick(&[plugin, server, unknown])})
        }
        "session/customizationRemoved" => json!({"id": id}),
        "session/mcpServerStateChanged" => {
            let states =
                [json!({"kind": "starting", "blocking": true}), json!({"kind": "ready"}), json!({"kind": "new"})];
            let body = json!({"id": server, "state": dice.pick(&states)});
            with(body, &dice.only("channel", &[json!("mcp://1")]))
        }
        "session/mcpServerStartRequested"
        | "session/mcpServerStopRequested"
        | "session/mcpServerBackgroundRequested" => json!({"id": server}),
        "session/configChanged" => {
            let body = json!({"config": {"a": dice.below(2), "b": {"c": true}}});
            with(body, &dice.only("replace", &[json!(true), json!(false)]))
        }
        "session/metaChanged" => dice.only("_meta", &[json!({"a": 1}), json!({})]),
        other => panic!("nobody makes up {other}"),
    }
}

fn input_request(dice: &mut Dice, chat: &str) -> Value {
    let body = json!({"id": dice.pick(&["n1", "n2"]), "chat": chat, "turnId": "t"});
    let call = json!({"toolCallId": "c", "toolName": "t", "displayName": "T", "invocationMessage": "i"});
    match dice.below(5) {
        0 => json!({"kind": "chatInput", "id": body["id"], "chat": chat, "request": {"id": "q"}}),
        1 => {
            let call = with(call, &json!({"status": "pending-confirmation"}));
            with(body, &json!({"kind": "toolConfirmation", "toolCall": call}))
        }
        2 => {
            let call = with(call, &json!({"status": "running", "confirmed": "not-needed"}));
            with(body, &json!({"kind": "toolClientExecution", "clientId": "k1", "toolCall": call}))
        }
        3 => {
            let auth = json!({"reason": "required", "resource": {"resource": "https://a.example"}});
            let call = with(call, &json!({"status": "auth-required", "confirmed": "not-needed", "auth": auth}));
            with(body, &json!({"kind": "toolAuthentication", "toolCall": call}))
        }
        _ => json!({"kind": "new", "id": body["id"]}),
    }
}

fn customizations(dice: &mut Dice) -> Value {
    let inner = json!({"type": "mcpServer", "id": "inner", "uri": "u", "name": "I", "state": {"kind": "stopped"}});
    let skill = json!({"type": "skill", "id": "skill", "uri": "u", "name": "S"});
    let hook = json!({"type": "hook", "id": "hook", "uri": "u", "name": "H", "enabled": true});
    let all = [
        json!({"type": "plugin", "id": "plugin", "uri": "u", "name": "P", "children": [skill, inner]}),
        json!({"type": "directory", "id": "folder", "uri": "u", "name": "D", "enabled": true, "contents": "hook",
            "writable": false, "children": [hook]}),
        json!({"type": "mcpServer", "id": "server", "uri": "u", "name": "M", "state": {"kind": "stopped"}}),
    ];
    Value::Array(all.into_iter().filter(|_| dice.below(4) > 0).collect())
}
