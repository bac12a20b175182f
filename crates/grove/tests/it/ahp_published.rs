//! The published client of the Agent Host Protocol, which is independent of this host.
//!
//! Its reducers and ours fold the same actions to the state of a new snapshot.

use std::collections::BTreeMap;

use ahp::reducers::{
    apply_action_to_chat, apply_action_to_resource_watch, apply_action_to_root, apply_action_to_session,
};
use ahp::{ClientConfig, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_types::state::{ChatState, ResourceWatchState, RootState, SessionState};
use ahp_ws::WebSocketTransport;
use futures_util::FutureExt;
use grove_testkit::PATIENCE;
use grove_testkit::ahp::{message, must_be_same, turn_started};
use grove_wire::ahp::{Action, ROOT, SnapshotState, derive_session, reduce, status};
use serde::Serialize;
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

/// A channel's state in the published types.
enum PublishedState {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
    Watch(Box<ResourceWatchState>),
}

impl PublishedState {
    fn read(state: &Value) -> Self {
        fn read<T: serde::de::DeserializeOwned + std::fmt::Debug>(state: &Value) -> Box<T> {
            let state: T = serde_json::from_value(state.clone()).unwrap();
            assert!(!format!("{state:?}").contains("Unknown("), "{state:?}");
            Box::new(state)
        }
        let has = |key: &str| state.get(key).is_some();
        if has("chats") {
            PublishedState::Session(read(state))
        } else if has("turns") {
            PublishedState::Chat(read(state))
        } else if has("recursive") {
            PublishedState::Watch(read(state))
        } else {
            PublishedState::Root(read(state))
        }
    }

    fn reduce(&mut self, action: &StateAction) {
        match self {
            PublishedState::Root(root) => apply_action_to_root(root, action),
            PublishedState::Session(session) => apply_action_to_session(session, action),
            PublishedState::Chat(chat) => apply_action_to_chat(chat, action),
            PublishedState::Watch(watch) => apply_action_to_resource_watch(watch, action),
        };
    }

    /// The state as JSON, without values that no action carries.
    fn lawful(&self) -> Value {
        fn json(state: &impl Serialize) -> Value {
            serde_json::to_value(state).unwrap()
        }
        match self {
            PublishedState::Root(root) => json(root),
            PublishedState::Session(session) => {
                let mut state = json(session);
                state["status"] = json!(session.status & !status::ACTIVITY);
                state
            }
            PublishedState::Chat(chat) => {
                let mut state = json(chat);
                state["title"] = Value::Null;
                state
            }
            PublishedState::Watch(watch) => json(watch),
        }
    }
}

struct Published {
    client: ahp::Client,
    events: ahp::ClientEventStream,
    theirs: BTreeMap<String, PublishedState>,
    ours: BTreeMap<String, SnapshotState>,
    actions: Vec<(String, StateAction)>,
    added: usize,
}

impl Published {
    async fn connect(host: &Host) -> Self {
        let url = format!("{}?tkn={}", host.ws, host.token);
        let transport = WebSocketTransport::connect(&url).await.unwrap();
        // Its buffers silently skip actions that do not fit.
        let config = ClientConfig { subscription_buffer: 1 << 16, ..ClientConfig::default() };
        let client = ahp::Client::connect(transport, config).await.unwrap();
        let events = client.events();
        let supported = ahp_types::version::SUPPORTED_PROTOCOL_VERSIONS.iter().map(ToString::to_string).collect();
        let begun = client.initialize("published".to_owned(), supported, vec![ROOT.to_owned()]).await.unwrap();
        assert_eq!(begun.protocol_version, "1.0.0");
        let mut published =
            Self { client, events, theirs: BTreeMap::new(), ours: BTreeMap::new(), actions: Vec::new(), added: 0 };
        published.hold(ROOT, &serde_json::to_value(&begun.snapshots[0].state).unwrap());
        published
    }

    fn hold(&mut self, uri: &str, state: &Value) {
        self.theirs.insert(uri.to_owned(), PublishedState::read(state));
        self.ours.insert(uri.to_owned(), serde_json::from_value(state.clone()).unwrap());
    }

    async fn snapshot(&self, uri: &str) -> Value {
        let result: Value = self.client.request("subscribe", json!({"channel": uri})).await.unwrap();
        result["snapshot"]["state"].clone()
    }

    async fn subscribe(&mut self, uri: &str) {
        let (result, _) = self.client.subscribe(uri.to_owned()).await.unwrap();
        self.drain();
        self.hold(uri, &serde_json::to_value(result.snapshot.unwrap().state).unwrap());
    }

    fn take(&mut self, event: ahp::ClientEvent) {
        let envelope = match event.event {
            SubscriptionEvent::Action(envelope) => envelope,
            SubscriptionEvent::SessionAdded(_) => {
                self.added += 1;
                return;
            }
            _ => return,
        };
        assert!(!matches!(envelope.action, StateAction::Unknown(_)), "{:?}", envelope.action);
        if envelope.rejection_reason.is_some() {
            return;
        }
        if let Some(state) = self.theirs.get_mut(&event.channel) {
            state.reduce(&envelope.action);
        }
        if let Some(state) = self.ours.get_mut(&event.channel) {
            let action: Action = serde_json::from_value(serde_json::to_value(&envelope.action).unwrap()).unwrap();
            reduce::reduce(state, &action);
            if let SnapshotState::Session(session) = state {
                derive_session(session);
            }
        }
        self.actions.push((event.channel, envelope.action));
    }

    /// Handles all received messages. A response comes after all earlier actions, so they have arrived.
    fn drain(&mut self) {
        while let Some(Some(event)) = tokio::task::unconstrained(self.events.recv()).now_or_never() {
            self.take(event);
        }
    }

    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await.unwrap().unwrap();
            self.take(event);
        }
    }

    /// Checks that all subscribed states equal a new snapshot, with its reducers and with ours.
    async fn must_agree(&mut self) {
        let uris: Vec<String> = self.theirs.keys().cloned().collect();
        for uri in uris {
            let fresh = self.snapshot(&uri).await;
            self.drain();
            assert_eq!(self.theirs[&uri].lawful(), PublishedState::read(&fresh).lawful(), "{uri}");
            must_be_same("ours", &uri, self.ours[&uri].clone(), serde_json::from_value(fresh).unwrap());
        }
    }

    async fn dispatch(&mut self, channel: &str, action: Value) {
        let action: StateAction = serde_json::from_value(action).unwrap();
        assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
        self.client.dispatch(channel.to_owned(), action).await.unwrap();
    }

    async fn script(&mut self, chat: &str, turn: &str, steps: Value) {
        self.dispatch(chat, turn_started(turn, &format!("script:{steps}"))).await;
    }

    fn chat(&self, uri: &str) -> &ChatState {
        match &self.theirs[uri] {
            PublishedState::Chat(chat) => chat,
            _ => panic!("{uri} is no chat"),
        }
    }

    fn session(&self, uri: &str) -> &SessionState {
        match &self.theirs[uri] {
            PublishedState::Session(session) => session,
            _ => panic!("{uri} is no session"),
        }
    }

    async fn turn_end(&mut self, chat: &str, turn: &str) {
        self.until(|client| client.chat(chat).turns.iter().any(|done| done.id == turn)).await;
    }

    /// Waits for pending questions, and returns them.
    async fn asked(&mut self, session: &str) -> Value {
        self.until(|client| client.session(session).input_needed.is_some()).await;
        serde_json::to_value(&self.session(session).input_needed).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_client_folds_what_fresh_snapshots_say() {
    let host = Host::start();
    let folder = file_uri(&host.place.home());
    let mut client = Published::connect(&host).await;
    client.client.ping().await.unwrap();
    client.must_agree().await;
    let params = json!({
        "channel": S, "provider": "scripted", "workingDirectories": [folder], "config": {"mode": "ask"},
        "activeClient": active_client("published", &["look"]),
    });
    client.client.request::<_, Value>("createSession", params).await.unwrap();
    client.subscribe(S).await;
    client.subscribe(CHAT).await;
    client.until(|client| client.added == 1).await;
    client.must_agree().await;
    folds_a_streamed_turn(&mut client).await;
    folds_answers(&mut client).await;
    folds_a_queue_and_failures(&mut client).await;
    folds_further_chats_and_settings(&mut client).await;

    let watch: Value = client.client.request("createResourceWatch", on_root(json!({"uri": folder}))).await.unwrap();
    let watch = watch["channel"].as_str().unwrap().to_owned();
    client.subscribe(&watch).await;
    host.place.write("home/new.txt", "n");
    client.until(|client| client.actions.iter().any(|(channel, _)| *channel == watch)).await;
    client.must_agree().await;

    let seen: Vec<Value> = client.actions.iter().map(|(_, action)| serde_json::to_value(action).unwrap()).collect();
    assert!(seen.len() > 60, "{}", seen.len());
    client.client.shutdown().await;
}

/// Text, reasoning, a tool, content, a title and usage.
async fn folds_a_streamed_turn(client: &mut Published) {
    let script = json!([
        {"reason": "hm"}, {"say": "one two three", "chunks": 3}, {"tool": {"name": "ls", "input": "-a", "output": "x"}},
        {"part": {"mimeType": "image/png", "base64": "iVBORw0KGgo="}}, {"title": "Named"},
        {"usage": {"inputTokens": 3, "outputTokens": 5}},
    ]);
    client.script(CHAT, "streams", script).await;
    client.turn_end(CHAT, "streams").await;
    client.must_agree().await;
}

/// A permission, a question, and a tool that this client runs.
async fn folds_answers(client: &mut Published) {
    let tool = json!({
        "name": "sh", "input": "rm", "output": "x", "permission": "shell", "editable": true,
        "options": [{"id": "once", "label": "Once", "allows": true}],
    });
    client.script(CHAT, "asks", json!([{"tool": tool}, {"ask": "really?"}, {"clientTool": {"name": "look"}}])).await;
    let asked = client.asked(S).await;
    client.must_agree().await;
    client
        .dispatch(
            CHAT,
            json!({
                "type": "chat/toolCallConfirmed", "turnId": "asks", "toolCallId": asked[0]["toolCall"]["toolCallId"],
                "approved": true, "confirmed": "user-action", "selectedOptionId": "once", "editedToolInput": "ls",
            }),
        )
        .await;
    client.until(|client| format!("{:?}", client.session(S).input_needed).contains("ChatInput(")).await;
    client.must_agree().await;
    let answer = |state: &str| json!({"state": state, "value": {"kind": "text", "value": "yes"}});
    client.dispatch(CHAT, json!({
        "type": "chat/inputAnswerChanged", "requestId": "asks-ask-1", "questionId": "answer", "answer": answer("draft"),
    }))
    .await;
    client
        .dispatch(
            CHAT,
            json!({
                "type": "chat/inputCompleted", "requestId": "asks-ask-1", "response": "accept",
                "answers": {"answer": answer("submitted")},
            }),
        )
        .await;
    client.until(|client| format!("{:?}", client.session(S).input_needed).contains("ToolClientExecution(")).await;
    client.must_agree().await;
    client
        .dispatch(
            CHAT,
            json!({
                "type": "chat/toolCallContentChanged", "turnId": "asks", "toolCallId": "asks-call-2",
                "content": [{"type": "text", "text": "looking"}],
            }),
        )
        .await;
    client.dispatch(CHAT, json!({
        "type": "chat/toolCallComplete", "turnId": "asks", "toolCallId": "asks-call-2",
        "result": {"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "a tree"}]},
        "requiresResultConfirmation": true,
    }))
    .await;
    client.until(|client| format!("{:?}", client.session(S).input_needed).contains("ToolConfirmation(")).await;
    client.must_agree().await;
    client
        .dispatch(
            CHAT,
            json!({
                "type": "chat/toolCallResultConfirmed", "turnId": "asks", "toolCallId": "asks-call-2", "approved": true,
            }),
        )
        .await;
    client.turn_end(CHAT, "asks").await;
    client.must_agree().await;
}

/// Queued messages, a draft, a cancelled turn and a failed one.
async fn folds_a_queue_and_failures(client: &mut Published) {
    client.script(CHAT, "cancelled", json!([{"say": "x"}, {"tool": {"name": "sh", "permission": "write"}}])).await;
    client.asked(S).await;
    for (id, text) in [("b", "second"), ("a", "first")] {
        let message = message(&format!(r#"script:[{{"say":"{text}"}}]"#));
        client
            .dispatch(CHAT, json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message}))
            .await;
    }
    client.dispatch(CHAT, json!({"type": "chat/queuedMessagesReordered", "order": ["a", "b"]})).await;
    client.dispatch(CHAT, json!({"type": "chat/draftChanged", "draft": message("half a")})).await;
    client.until(|client| client.chat(CHAT).draft.is_some()).await;
    client.must_agree().await;
    client.dispatch(CHAT, json!({"type": "chat/turnCancelled", "turnId": "cancelled", "duration": 3})).await;
    client.turn_end(CHAT, "b").await;
    client.must_agree().await;
    client.script(CHAT, "fails", json!([{"fail": "on purpose"}])).await;
    client.turn_end(CHAT, "fails").await;
    client.must_agree().await;
}

async fn folds_further_chats_and_settings(client: &mut Published) {
    let side = "ahp-chat:/side";
    client.client.request::<_, Value>("createChat", json!({"channel": S, "chat": side})).await.unwrap();
    client.subscribe(side).await;
    client.script(side, "aside", json!([{"say": "aside", "chunks": 5}])).await;
    client.turn_end(side, "aside").await;
    client.dispatch(side, json!({"type": "chat/isReadChanged", "isRead": true})).await;
    client.dispatch(S, json!({"type": "session/isArchivedChanged", "isArchived": true})).await;
    client.dispatch(S, json!({"type": "session/configChanged", "config": {"n": 1}})).await;
    client.dispatch(S, json!({"type": "session/activeClientRemoved", "clientId": "published"})).await;
    client.until(|client| client.session(S).active_clients.is_empty()).await;
    client.must_agree().await;
    client.client.request::<_, Value>("disposeChat", json!({"channel": side})).await.unwrap();
    client.theirs.remove(side);
    client.ours.remove(side);
    client.must_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_client_comes_back() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    let mut client = Published::connect(&host).await;
    client.subscribe(S).await;
    client.subscribe(CHAT).await;
    speaker.run_script(CHAT, "t", json!([{"say": "seen"}])).await;
    client.turn_end(CHAT, "t").await;
    client.must_agree().await;
    let fresh: Value = client.client.request("subscribe", json!({"channel": CHAT})).await.unwrap();
    let seen = fresh["snapshot"]["fromSeq"].as_i64().unwrap();
    client.client.shutdown().await;
    speaker.run_script(CHAT, "u", json!([{"say": "missed"}])).await;

    let transport = WebSocketTransport::connect(&format!("{}?tkn={}", host.ws, host.token)).await.unwrap();
    client.client = ahp::Client::connect(transport, ClientConfig::default()).await.unwrap();
    client.events = client.client.events();
    let uris = vec![ROOT.to_owned(), S.to_owned(), CHAT.to_owned()];
    match client.client.reconnect("published".to_owned(), seen, uris).await.unwrap() {
        ahp_types::commands::ReconnectResult::Replay(replay) => {
            assert_eq!(replay.missing, Vec::<String>::new());
            for envelope in replay.actions {
                let channel = envelope.channel.clone();
                client.take(ahp::ClientEvent { channel, event: SubscriptionEvent::Action(envelope) });
            }
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(client.chat(CHAT).turns.len(), 2);
    client.must_agree().await;
}
