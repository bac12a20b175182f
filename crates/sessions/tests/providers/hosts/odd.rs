//! Hosts that are not ours: one that says what its test says.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use grove_client::Endpoint;
use grove_sessions::provider::{Availability, SendOptions};
use grove_sessions::providers::hosts::{HostIdentity, HostProvider};
use grove_sessions::session::{FileOperation, SessionStatus, Workspace};
use grove_sessions::{ProviderError, SessionsProvider};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::harness::{options, until};

/// Answers requests as it is told, or not at all where that is `null`, and says what it is told to say.
pub(super) struct OddHost {
    endpoint: Endpoint,
    heard: Arc<Mutex<Vec<String>>>,
    say: mpsc::UnboundedSender<Value>,
}

pub(super) type Answer = Box<dyn FnMut(&str, &Value) -> Result<Value, Value> + Send>;

impl OddHost {
    pub(super) async fn start(mut answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let (say, mut said) = mpsc::unbounded_channel::<Value>();
        let methods = heard.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { continue };
                loop {
                    let mut out = tokio::select! {
                        Some(said) = said.recv() => match said {
                            Value::Null => break,
                            said => said,
                        },
                        message = socket.next() => match message {
                            Some(Ok(Message::Text(text))) => {
                                let message: Value = serde_json::from_str(&text).unwrap();
                                let method = message["method"].as_str().unwrap_or_default();
                                methods.lock().unwrap().push(method.to_owned());
                                if message.get("id").is_none() {
                                    continue;
                                }
                                match answer(method, &message["params"]) {
                                    Ok(Value::Null) => continue,
                                    Ok(result) => json!({"id": message["id"], "result": result}),
                                    Err(error) => json!({"id": message["id"], "error": error}),
                                }
                            }
                            Some(Ok(_)) => continue,
                            Some(Err(_)) | None => break,
                        },
                    };
                    out["jsonrpc"] = "2.0".into();
                    if socket.send(Message::text(out.to_string())).await.is_err() {
                        break;
                    }
                }
            }
        });
        Self { endpoint: Endpoint::tcp(&url, None).unwrap(), heard, say }
    }

    pub(super) fn provider(&self) -> Arc<HostProvider> {
        let identity = HostIdentity::other_host("odd", "odd").unwrap();
        let (provider, driver) = HostProvider::new(identity, self.endpoint.clone(), options());
        tokio::spawn(driver.run());
        Arc::new(provider)
    }

    pub(super) fn tell(&self, method: &str, params: Value) {
        self.say.send(json!({"method": method, "params": params})).unwrap();
    }

    fn hang_up(&self) {
        self.say.send(Value::Null).unwrap();
    }

    pub(super) fn heard(&self, method: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|heard| *heard == method).count()
    }
}

pub(super) fn initialized(version: &str) -> Value {
    let root = json!({"agents": [{"provider": "claude", "displayName": "Claude", "description": "", "models": []}]});
    json!({"protocolVersion": version, "serverSeq": 1,
        "snapshots": [{"resource": "ahp-root://", "state": root, "fromSeq": 1}]})
}

pub(super) fn row(name: &str, status: u32) -> Value {
    json!({"resource": format!("ahp-session:/{name}"), "provider": "claude", "title": name, "status": status,
        "createdAt": "2026-01-01T00:00:00.000Z", "modifiedAt": "2026-01-02T00:00:00.000Z",
        "workingDirectories": ["file:///srv/app"]})
}

pub(super) fn unknown() -> Value {
    json!({"code": -32601, "message": "no such method"})
}

/// A host of these rows.
fn with_rows(version: &'static str, rows: Vec<Value>) -> Answer {
    Box::new(move |method, _| match method {
        "initialize" => Ok(initialized(version)),
        "listSessions" => Ok(json!({"items": rows})),
        _ => Err(unknown()),
    })
}

#[tokio::test]
async fn a_host_of_the_older_version_with_plain_rows_is_listed() {
    let bits = [("input", 24 | 32), ("half", 16), ("both", 2 | 8), ("failed", 2), ("archived", 1 | 64)];
    let rows: Vec<Value> = bits.iter().map(|(name, bits)| row(name, *bits)).collect();
    let host = OddHost::start(with_rows("0.9.0", rows)).await;
    let provider = host.provider();
    until("the list", || provider.sessions().len() == bits.len()).await;
    let expected = [
        (SessionStatus::NeedsInput, true, false),
        (SessionStatus::Completed, false, false),
        (SessionStatus::InProgress, false, false),
        (SessionStatus::Error, false, false),
        (SessionStatus::Completed, false, true),
    ];
    for (session, expected) in provider.sessions().iter().zip(expected) {
        assert_eq!((session.status(), session.is_read(), session.is_archived()), expected, "{}", session.title());
        assert_eq!(&*session.workspace().unwrap().label, "app [odd]");
        assert_eq!(session.chats().len(), 1);
    }
    assert_eq!(&*provider.session_types()[0].label, "Claude [odd]");
    // It can say that one came which is there already.
    host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row("failed", 1)}));
    until("the change", || provider.sessions()[3].status() == SessionStatus::Completed).await;
    assert_eq!(provider.sessions().len(), bits.len());
}

#[tokio::test]
async fn ten_thousand_rows_cost_one_list_and_a_change_is_seen_at_once() {
    let rows: Vec<Value> = (0..10_000).map(|name| row(&name.to_string(), 33)).collect();
    let host = OddHost::start(with_rows("1.0.0", rows)).await;
    let provider = host.provider();
    until("the list", || provider.sessions().len() == 10_000).await;
    assert_eq!((host.heard("listSessions"), host.heard("subscribe")), (1, 0), "rows are not subscribed");
    let last = provider.sessions().pop().unwrap();
    let mut title = last.observe(|state| state.title());
    let began = Instant::now();
    let changes = json!({"title": "Changed"});
    host.tell(
        "root/sessionSummaryChanged",
        json!({"channel": "ahp-root://", "session": "ahp-session:/9999", "changes": changes}),
    );
    let changed = super::harness::soon("the change", title.changed()).await;
    println!("a change among 10,000 rows was seen after {:?}", began.elapsed());
    assert_eq!(changed.as_deref(), Some("Changed"));
}

#[tokio::test]
async fn versions_that_do_not_fit_are_explained() {
    let host = OddHost::start(Box::new(|_, _| {
        Err(json!({"code": -32005, "message": "no", "data": {"supportedVersions": ["^7.0.0"]}}))
    }))
    .await;
    let provider = host.provider();
    let message = || match provider.availability() {
        Availability::Incompatible { message } => Some(message),
        Availability::Ready | Availability::Connecting | Availability::Away { .. } => None,
    };
    until("the refusal", || message().is_some()).await;
    let message = message().unwrap();
    assert!(message.contains("^7.0.0") && message.contains("1.0.0") && message.contains("0.9.0"), "{message}");
}

#[tokio::test]
async fn a_list_that_does_not_come_is_asked_for_again_and_nothing_goes_before_it_does() {
    let mut lists = 0;
    let host = OddHost::start(Box::new(move |method, _| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => {
            lists += 1;
            if lists < 3 { Err(json!({"code": -32603, "message": "not now"})) } else { Ok(json!({"items": []})) }
        }
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("a connection", || provider.availability() == Availability::Ready).await;
    host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row("early", 1)}));
    until("a list", || host.heard("listSessions") >= 3).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(host.heard("listSessions"), 3);
}

#[tokio::test]
async fn a_message_on_its_way_is_given_up_when_the_host_goes_away() {
    let host = OddHost::start(Box::new(|method, _| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => Ok(json!({"items": []})),
        "createSession" => Ok(Value::Null),
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("a connection", || provider.availability() == Availability::Ready).await;
    let draft = provider.create_new_session(&Workspace::new("file:///srv/app", "app")).await.unwrap();
    let sending = tokio::spawn({
        let (provider, id) = (provider.clone(), draft.id().clone());
        async move { provider.send_and_create_chat(&id, SendOptions::new("First line\nsecond")).await }
    });
    until("the temporary row", || !provider.sessions().is_empty()).await;
    assert_eq!(provider.sessions(), std::slice::from_ref(&draft));
    assert_eq!((&*draft.title(), draft.status(), draft.loading()), ("First line", SessionStatus::InProgress, true));
    until("the request", || host.heard("createSession") == 1).await;
    host.hang_up();
    let sent = super::harness::soon("the end of it", sending).await.unwrap();
    assert!(matches!(sent, Err(ProviderError::Away { .. })), "{sent:?}");
    until("no row", || provider.sessions().is_empty()).await;
    until("the return", || provider.availability() == Availability::Ready).await;
    let again = provider.send_and_create_chat(draft.id(), SendOptions::new("x")).await;
    assert!(matches!(again, Err(ProviderError::UnknownSession(_))), "drafts do not outlive the connection: {again:?}");
}

#[tokio::test]
async fn an_open_session_tells_of_its_changeset_mode_and_lifecycle() {
    let side = |uri: &str| json!({"uri": uri, "content": {"uri": format!("before:{uri}")}});
    let state = move |channel: &str| match channel {
        "ahp-session:/1" => json!({"provider": "claude", "title": "One", "status": 1, "lifecycle": "creating",
            "activeClients": [], "chats": [], "defaultChat": "ahp-chat:/1",
            "config": {"schema": {"type": "object", "properties": {}}, "values": {"mode": "plan", "model": "opus"}},
            "changesets": [
                {"label": "Turn", "uriTemplate": "claude:/1/turn/{turnId}", "changeKind": "turn"},
                {"label": "All", "uriTemplate": "claude:/1/changes", "changeKind": "session"}]}),
        "ahp-chat:/1" => json!({"resource": "ahp-chat:/1", "title": "", "status": 1,
            "modifiedAt": "2026-01-02T00:00:00.000Z", "turns": []}),
        _ => json!({"status": "ready", "files": [
            {"id": "a", "edit": {"before": side("file:///a"), "after": side("file:///a"), "diff": {"added": 3}}},
            {"id": "b", "edit": {"after": side("file:///b")}}]}),
    };
    let host = OddHost::start(Box::new(move |method, params| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => Ok(json!({"items": [row("1", 1)]})),
        "subscribe" => {
            let channel = params["channel"].as_str().unwrap();
            Ok(json!({"snapshot": {"resource": channel, "state": state(channel), "fromSeq": 2}}))
        }
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("the list", || !provider.sessions().is_empty()).await;
    let row = provider.sessions().remove(0);
    assert!(!row.loading() && row.changes().is_empty());
    let opened = provider.open(row.id()).unwrap();
    until("the changes", || !row.changes().is_empty()).await;
    let told: Vec<_> = row.changes().iter().map(|it| (it.uri.to_string(), it.operation, it.insertions)).collect();
    let expected =
        [("file:///a".to_owned(), FileOperation::Modified, 3), ("file:///b".to_owned(), FileOperation::Created, 0)];
    assert_eq!(told, expected);
    assert_eq!((row.mode().unwrap().id.as_ref(), row.model_id().as_deref()), ("plan", Some("opus")));
    assert!(row.loading(), "it is being made");
    drop(opened);
    until("the end of listening", || host.heard("unsubscribe") >= 3).await;
    assert_eq!(row.changes().len(), 2, "what is known stays");
    until("the end of loading", || !row.loading()).await;
}

#[tokio::test]
async fn chats_that_no_list_tells_of_are_told_by_the_open_session_and_cannot_be_renamed() {
    let turn = json!({"id": "t", "startedAt": "2026-01-03T00:00:00.000Z", "duration": 7, "state": "complete",
        "message": {"text": "", "origin": {"kind": "user"}, "model": {"id": "opus"}}, "responseParts": []});
    let chat = |name: &str, title: &str, status: u32| {
        json!({"resource": format!("ahp-chat:/{name}"), "title": title, "status": status,
            "modifiedAt": "2026-01-03T00:00:00.000Z"})
    };
    let state = move |channel: &str| match channel {
        "ahp-session:/1" => json!({"provider": "claude", "title": "One", "status": 1, "lifecycle": "ready",
            "activeClients": [], "defaultChat": "ahp-chat:/1",
            "chats": [chat("1", "", 1), chat("2", "Review", 1), chat("3", "Broken", 2)]}),
        channel => {
            let mut state = chat(channel.rsplit('/').next().unwrap(), "", if channel.ends_with('3') { 2 } else { 1 });
            state["turns"] = if channel.ends_with('2') { json!([turn]) } else { json!([]) };
            state
        }
    };
    let host = OddHost::start(Box::new(move |method, params| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => Ok(json!({"items": [row("1", 1)]})),
        "subscribe" => {
            let channel = params["channel"].as_str().unwrap();
            Ok(json!({"snapshot": {"resource": channel, "state": state(channel), "fromSeq": 2}}))
        }
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("the list", || !provider.sessions().is_empty()).await;
    let row = provider.sessions().remove(0);
    assert_eq!(row.chats().len(), 1);
    let _opened = provider.open(row.id()).unwrap();
    until("the chats", || row.chats().len() == 3).await;
    let review = row.chats()[1].clone();
    assert_eq!((&*review.title(), review.model_id().as_deref()), ("Review", Some("opus")));
    assert_eq!((row.last_turn_end(), row.updated_at()), (review.last_turn_end(), review.updated_at()));
    assert!(review.last_turn_end() > Some(review.updated_at()));
    assert_eq!((row.status(), row.chat_error().as_ref()), (SessionStatus::Completed, Some(row.chats()[2].resource())));
    let renamed = provider.rename_chat(row.id(), review.resource(), "x").await;
    let Err(ProviderError::Unsupported { what, .. }) = renamed else { panic!("{renamed:?}") };
    assert!(what.contains("its host does not know how"), "{what}");
}

#[tokio::test]
async fn what_another_tool_left_on_a_host_is_not_listed_as_its_own() {
    let mut left = row("left", 1);
    left["_meta"] = json!({"history": {"source": "codex"}});
    let host = OddHost::start(with_rows("1.0.0", vec![row("own", 1), left])).await;
    let provider = host.provider();
    until("the list", || !provider.sessions().is_empty()).await;
    assert_eq!(provider.sessions().len(), 1);
}
