//! The courses of events. Each ends with its host killed.

use serde_json::{Value, json};

use crate::client::{Client, Dialect, message};
use crate::world::{RunningHost, World, settle};

const SESSION: &str = "scripted:/s";
const CHAT: &str = "ahp-chat:/s";

/// Every kind of event, watched in every dialect.
pub(crate) async fn events(world: &World) {
    let host = world.start().await;
    let mut actor = world.client(&host, Dialect::Ahp10, "actor").await;
    let mut old = world.client(&host, Dialect::Ahp09, "older").await;
    let mut v1 = world.client(&host, Dialect::V1, "oldest").await;
    actor.call("createSession", json!({"channel": SESSION})).await;
    for client in [&mut actor, &mut old] {
        client.subscribe(SESSION).await;
        client.subscribe(CHAT).await;
    }
    v1.subscribe(SESSION).await;
    turns(&mut actor, &mut v1).await;
    waiting_messages(&mut actor).await;
    client_tools(&mut actor).await;
    marks(&mut actor, &mut v1).await;
    chats(&mut actor).await;
    failures(&mut actor, &mut old, &mut v1).await;
    tape(&mut actor, &host).await;
    sdk(world, &host).await;
    actor.call("listSessions", json!({"channel": "ahp-root://"})).await;
    old.call("listSessions", json!({"channel": "ahp-root://"})).await;
    v1.call("listSessions", json!({})).await;
    host.kill().await;
}

/// Text, reasoning, tools, permissions, content and usage.
async fn turns(actor: &mut Client, v1: &mut Client) {
    let steps = json!([{"title": "Everything"}, {"reason": "thinking"}, {"say": "hello there", "chunks": 2},
        {"tool": {"name": "look", "input": {"path": "a"}, "output": "found"}},
        {"tool": {"name": "miss", "output": "nothing", "success": false}},
        {"part": {"mimeType": "text/markdown", "text": "*part*"}},
        {"part": {"mimeType": "image/png", "base64": "iVBORw=="}},
        {"usage": {"inputTokens": 11, "outputTokens": 7}}]);
    actor.script(CHAT, "t1", steps).await;
    let options = json!([{"id": "once", "label": "Once", "allows": true, "lasting": false},
        {"id": "no", "label": "No", "allows": false, "lasting": false}]);
    let tool = json!({"tool": {"name": "shell", "input": "gh pr create", "permission": "shell", "options": options,
        "editable": true, "output": "https://github.com/acme/site/pull/8\n"}});
    actor.script(CHAT, "t2", json!([tool, {"say": "made"}])).await;
    let approve = json!({"type": "chat/toolCallConfirmed", "turnId": "t2", "toolCallId": "t2-call-0", "approved": true,
        "confirmed": "user-action", "selectedOptionId": "once", "editedToolInput": "gh pr create --fill"});
    actor.dispatch(CHAT, approve).await;
    v1.script(SESSION, "t3", json!([{"tool": {"name": "write", "input": "/a", "permission": "write"}}])).await;
    let deny = json!({"type": "session/permissionResolved", "turnId": "t3", "requestId": "t3-permission-0",
        "approved": false});
    v1.dispatch(SESSION, deny).await;
    // More than 64 KiB are stored beside the log.
    let large = json!({"tool": {"name": "cat", "output": "0123456789abcde\n", "repeat": 4100}});
    actor.script(CHAT, "t4", json!([large, {"say": "that was long"}])).await;
    actor.script(CHAT, "t5", json!([{"say": "half"}, {"fail": "out of luck"}])).await;
    actor.script(CHAT, "t6", json!([{"say": "half"}, {"hang": true}])).await;
    actor.dispatch(CHAT, json!({"type": "chat/turnCancelled", "turnId": "t6", "duration": 1})).await;
}

/// Questions, and what is said while a turn waits.
async fn waiting_messages(actor: &mut Client) {
    let question = |id: &str, kind: Value| json!({"id": id, "title": id, "message": format!("Which {id}?"), "required": true, "kind": kind});
    let questions = json!([
        question("color", json!({"text": {"min": 1, "max": 9, "default": "red"}})),
        question("count", json!({"number": {"whole": true, "default": 3}}))
    ]);
    let ask = json!({"ask": {"message": "Some questions", "questions": questions}});
    actor.script(CHAT, "t7", json!([ask, {"say": "fine"}])).await;
    let asked = "t7-ask-0";
    let draft = json!({"state": "draft", "value": {"kind": "text", "value": "bl"}});
    let change = json!({"type": "chat/inputAnswerChanged", "requestId": asked, "questionId": "color", "answer": draft});
    actor.dispatch(CHAT, change).await;
    actor.dispatch(CHAT, json!({"type": "chat/draftChanged", "draft": message("not sent yet")})).await;
    for (kind, id, said) in
        [("queued", "q1", "first"), ("queued", "q2", "second"), ("queued", "q3", "third"), ("steering", "s1", "faster")]
    {
        let text = if kind == "queued" { format!("script:{}", json!([{"say": said}])) } else { said.to_owned() };
        let set = json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message(&text)});
        actor.dispatch(CHAT, set).await;
    }
    actor.dispatch(CHAT, json!({"type": "chat/queuedMessagesReordered", "order": ["q3", "q1", "q2"]})).await;
    actor.dispatch(CHAT, json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "q2"})).await;
    let submitted = |kind: &str, value: Value| json!({"state": "submitted", "value": {"kind": kind, "value": value}});
    let given = json!({"color": submitted("text", json!("blue")), "count": submitted("number", json!(2))});
    let accept = json!({"type": "chat/inputCompleted", "requestId": asked, "response": "accept", "answers": given});
    actor.dispatch(CHAT, accept).await;
    actor.dispatch(CHAT, json!({"type": "chat/draftChanged"})).await;
}

/// A tool that a client runs, and whose result a person confirms.
async fn client_tools(actor: &mut Client) {
    let tool = json!({"name": "look", "description": "Looks", "inputSchema": {"type": "object"}});
    let active = json!({"clientId": "actor", "displayName": "Actor", "tools": [tool]});
    actor.dispatch(SESSION, json!({"type": "session/activeClientSet", "activeClient": active})).await;
    actor.script(CHAT, "t8", json!([{"clientTool": {"name": "look", "input": {"at": 1}}}])).await;
    let content = json!([{"type": "text", "text": "half of it"}]);
    let output = json!({"type": "chat/toolCallContentChanged", "turnId": "t8", "toolCallId": "t8-call-0",
        "content": content});
    actor.dispatch(CHAT, output).await;
    let result = json!({"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "it"}]});
    let complete = json!({"type": "chat/toolCallComplete", "turnId": "t8", "toolCallId": "t8-call-0", "result": result,
        "requiresResultConfirmation": true});
    actor.dispatch(CHAT, complete).await;
    let confirm = json!({"type": "chat/toolCallResultConfirmed", "turnId": "t8", "toolCallId": "t8-call-0",
        "approved": true});
    actor.dispatch(CHAT, confirm).await;
    actor.dispatch(SESSION, json!({"type": "session/activeClientRemoved", "clientId": "actor"})).await;
}

/// Titles, models, and what is read and archived.
async fn marks(actor: &mut Client, v1: &mut Client) {
    actor.dispatch(SESSION, json!({"type": "session/titleChanged", "title": "By a person"})).await;
    v1.dispatch(SESSION, json!({"type": "session/modelChanged", "model": "scripted"})).await;
    for (name, value) in [("isRead", true), ("isRead", false), ("isArchived", true), ("isArchived", false)] {
        actor.dispatch(SESSION, json!({"type": format!("session/{name}Changed"), name: value})).await;
        actor.dispatch(CHAT, json!({"type": format!("chat/{name}Changed"), name: value})).await;
    }
    actor.call("x-grove/permissions", json!({"channel": SESSION})).await;
}

/// Further chats: one that stays, and one that is removed.
async fn chats(actor: &mut Client) {
    for chat in ["ahp-chat:/stays", "ahp-chat:/goes"] {
        actor.call("createChat", json!({"channel": SESSION, "chat": chat})).await;
        actor.subscribe(chat).await;
        actor.script(chat, &format!("{}-1", &chat[10..]), json!([{"say": "beside"}])).await;
        actor.call("x-grove/rename", json!({"channel": chat, "title": "A side"})).await;
    }
    actor.call("disposeChat", json!({"channel": "ahp-chat:/goes"})).await;
}

/// Refusals, failures and removals.
async fn failures(actor: &mut Client, old: &mut Client, v1: &mut Client) {
    actor.dispatch(CHAT, json!({"type": "chat/turnCancelled", "turnId": "none", "duration": 1})).await;
    old.ask("subscribe", json!({"channel": "scripted:/none"})).await.unwrap_err();
    v1.call("createSession", json!({"session": "scripted:/fails", "model": "scripted/fails-to-start"})).await;
    // It takes 250 ms until that is known.
    for _ in 0..3 {
        settle().await;
    }
    actor.call("createSession", json!({"channel": "scripted:/gone"})).await;
    settle().await;
    actor.call("disposeSession", json!({"channel": "scripted:/gone"})).await;
}

/// Reports of some agents only, and their settings.
async fn tape(actor: &mut Client, host: &RunningHost) {
    actor.call("createSession", json!({"channel": "tape:/t", "config": {"mode": "ask"}})).await;
    actor.subscribe("tape:/t").await;
    actor.subscribe("ahp-chat:/t").await;
    let config = json!({"type": "session/configChanged", "config": {"mode": "plan"}});
    actor.dispatch("tape:/t", config).await;
    actor.start_turn("ahp-chat:/t", "t1", "tools").await;
    settle().await;
    host.host.remove_agent(&"tape".into()).await.unwrap();
    settle().await;
}

/// A session of an SDK, which is asked what to do.
async fn sdk(world: &World, host: &RunningHost) {
    let mut sdk = world.sdk(host, "sdk");
    sdk.authenticate().await;
    let open = json!({"sessionId": "sdk", "model": "scripted", "requestPermission": true, "requestUserInput": true,
        "streaming": true});
    sdk.call("session.create", open).await;
    let steps = json!([{"say": "to an SDK", "chunks": 2}, {"ask": "Which color?"},
        {"tool": {"name": "shell", "input": "ls", "permission": "shell", "output": "a\n"}}, {"say": "done"}]);
    sdk.call("session.send", json!({"sessionId": "sdk", "prompt": format!("script:{steps}")})).await;
    settle().await;
    let pending = sdk.call("session.permissions.pendingRequests", json!({"sessionId": "sdk"})).await;
    let request = pending["items"][0]["requestId"].clone();
    let answer = json!({"sessionId": "sdk", "requestId": request, "result": {"kind": "approve-once"}});
    sdk.call("session.permissions.handlePendingPermissionRequest", answer).await;
    settle().await;
    for method in ["session.getMessages", "session.getMetadata", "session.model.getCurrent", "session.name.get"] {
        sdk.call(method, json!({"sessionId": "sdk"})).await;
    }
    sdk.call("session.list", json!({})).await;
}

/// Runs a turn that says one thing.
async fn say(client: &mut Client, chat: &str, turn: &str, text: &str) {
    client.script(chat, turn, json!([{"say": text}])).await;
    settle().await;
}

/// The entry of the answer that says this.
async fn entry(client: &mut Client, channel: &str, text: &str) -> String {
    let tree = client.call("x-grove/tree", json!({"channel": channel, "search": text})).await;
    let rows = tree["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["role"] == "assistant" && row["text"] == text);
    row.unwrap_or_else(|| panic!("no {text} in {rows:?}"))["id"].as_str().unwrap().to_owned()
}

/// Labels, leaf moves, summaries, forks, a move between stores, and what is stored beside a log.
pub(crate) async fn tree(world: &World) {
    let host = world.start().await;
    let mut actor = world.client(&host, Dialect::Ahp10, "actor").await;
    let mut old = world.client(&host, Dialect::Ahp09, "older").await;
    let mut v1 = world.client(&host, Dialect::V1, "oldest").await;
    actor.call("createSession", json!({"channel": SESSION})).await;
    for client in [&mut actor, &mut old] {
        client.subscribe(SESSION).await;
        client.subscribe(CHAT).await;
    }
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut actor, CHAT, turn, text).await;
    }
    let (one, three) = (entry(&mut actor, SESSION, "one").await, entry(&mut actor, SESSION, "three").await);
    actor.call("x-grove/label", json!({"channel": SESSION, "entry": one, "label": "start"})).await;
    // A client of version 1 is sent away when the leaf moves.
    v1.subscribe(SESSION).await;
    let back = json!({"channel": SESSION, "entry": one, "summarize": true, "label": "here"});
    actor.call("x-grove/navigate", back).await;
    say(&mut actor, CHAT, "t4", "four").await;
    actor.call("x-grove/merge", json!({"channel": SESSION, "entry": three})).await;
    say(&mut actor, CHAT, "t5", "five").await;
    actor.call("x-grove/compact", json!({"channel": SESSION, "instructions": "shortly"})).await;
    say(&mut actor, CHAT, "t6", "six").await;

    let fork = actor.call("x-grove/fork", json!({"channel": SESSION, "title": "A fork"})).await;
    let fork = fork["session"].as_str().unwrap().to_owned();
    settle().await;
    actor.subscribe(&fork).await;
    say(&mut actor, &format!("ahp-chat:/{}", &fork["scripted:/".len()..]), "f1", "in the fork").await;
    let rows = actor.call("x-grove/tree", json!({"channel": SESSION, "filter": "user-only"})).await;
    let rephrased = rows["rows"].as_array().unwrap().last().unwrap()["id"].clone();
    actor.call("x-grove/branch", json!({"channel": SESSION, "entry": rephrased})).await;
    for (kind, chat) in [("fork", "ahp-chat:/forked"), ("sideChat", "ahp-chat:/aside")] {
        let source = json!({"kind": kind, "chat": CHAT, "turnId": "t5"});
        actor.call("createChat", json!({"channel": SESSION, "chat": chat, "source": source})).await;
        settle().await;
        actor.subscribe(chat).await;
        say(&mut actor, chat, &format!("{kind}-1"), "from here").await;
    }
    workspace(&mut actor).await;
    settings(world, &host, &mut actor).await;
    actor.call("x-grove/migrate", json!({"channel": fork, "store": "other"})).await;
    let new = json!({"channel": "scripted:/n", "config": {"grove.store": "other"}});
    actor.call("createSession", new).await;
    settle().await;
    actor.call("x-grove/tree", json!({"channel": SESSION})).await;
    actor.call("x-grove/entries", json!({"channel": SESSION, "limit": 100})).await;
    old.call("x-grove/tree", json!({"channel": SESSION})).await;
    host.kill().await;
}

/// Settings that change with the leaf, and the folder in which the agents work.
async fn settings(world: &World, host: &RunningHost, actor: &mut Client) {
    let (session, chat) = ("scripted:/m", "ahp-chat:/m");
    actor.call("createSession", json!({"channel": session})).await;
    settle().await;
    actor.subscribe(session).await;
    actor.subscribe(chat).await;
    say(actor, chat, "t1", "by the default model").await;
    let mut v1 = world.client(host, Dialect::V1, "chooser").await;
    v1.subscribe(session).await;
    v1.dispatch(session, json!({"type": "session/modelChanged", "model": "scripted"})).await;
    say(actor, chat, "t2", "by the chosen model").await;
    let first = entry(actor, session, "by the default model").await;
    actor.call("x-grove/navigate", json!({"channel": session, "entry": first})).await;
    // Every machine has this folder, and no repository is in it.
    actor.call("x-grove/setWorkingDirectory", json!({"channel": session, "directory": "file:///usr"})).await;
    settle().await;
}

/// The files of a session's folder that clients write.
async fn workspace(actor: &mut Client) {
    let of_session = |more: Value| {
        let mut params = json!({"channel": SESSION});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    actor.call("x-grove/workspace/setPlan", of_session(json!({"text": "- look\n- change\n"}))).await;
    actor.call("x-grove/workspace/writeFile", of_session(json!({"name": "notes.md", "data": "notes\n"}))).await;
    for method in ["manifest", "plan", "files", "checkpoints", "todos"] {
        actor.call(&format!("x-grove/workspace/{method}"), of_session(json!({}))).await;
    }
}

/// Sessions whose host is killed in the middle of a turn, and while turns wait for a person.
pub(crate) async fn killed(world: &World) {
    let host = world.start().await;
    let mut actor = world.client(&host, Dialect::Ahp10, "actor").await;
    for session in ["scripted:/running", "scripted:/waiting", "scripted:/asking", "tape:/outlasting"] {
        actor.call("createSession", json!({"channel": session})).await;
        settle().await;
        actor.subscribe(session).await;
    }
    for session in ["running", "waiting", "asking"] {
        say(&mut actor, &format!("ahp-chat:/{session}"), "t1", "before").await;
    }
    actor.script("ahp-chat:/running", "t2", json!([{"say": "half"}, {"hang": true}])).await;
    let tool = json!({"tool": {"name": "shell", "input": "ls", "permission": "shell", "output": "a\n"}});
    actor.script("ahp-chat:/waiting", "t2", json!([{"say": "may I?"}, tool, {"say": "after"}])).await;
    actor.script("ahp-chat:/asking", "t2", json!([{"ask": "Which color?"}, {"say": "after"}])).await;
    let queued = format!("script:{}", json!([{"say": "from the queue"}]));
    let set = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q1", "message": message(&queued)});
    actor.dispatch("ahp-chat:/asking", set).await;
    actor.start_turn("ahp-chat:/outlasting", "t1", "work on").await;
    settle().await;
    host.kill().await;
}

/// A session that an SDK stores: this machine has its row in the register and its numbers in the journal.
pub(crate) async fn stored_by_client(world: &mut World) {
    let host = world.start().await;
    let mut sdk = world.sdk(&host, "storage");
    sdk.authenticate().await;
    let storage = world.storage("kept");
    *sdk.storage.lock().unwrap() = Some(storage);
    sdk.call("sessionFs.setProvider", storage_config()).await;
    sdk.call("session.create", json!({"sessionId": "kept", "model": "scripted"})).await;
    for text in ["one", "two"] {
        let steps = json!([{"say": text}]);
        sdk.call("session.send", json!({"sessionId": "kept", "prompt": format!("script:{steps}")})).await;
        settle().await;
    }
    sdk.call("session.getMessages", json!({"sessionId": "kept"})).await;
    sdk.call("session.list", json!({})).await;
    host.kill().await;
}

/// The params of `sessionFs.setProvider`.
pub(crate) fn storage_config() -> Value {
    json!({"initialCwd": "/virtual/project", "sessionStatePath": "/state", "conventions": "posix"})
}
