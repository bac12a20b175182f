//! A host that is not ours, which answers as its test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use grove_client::{Backoff, Endpoint};
use grove_core::Timestamp;
use grove_sessions::provider::{
    AttachedContext, Availability, BrowseOffer, BrowseOutcome, BrowseRequest, ProviderEvent, SendOptions,
};
use grove_sessions::providers::hosts::{
    CachedSessionList, HostIdentity, HostOptions, HostProvider, InMemorySessionListCache, SessionListCache,
};
use grove_sessions::session::{self, FileOperation, SessionStatus};
use grove_sessions::{ProviderError, SessionsProvider};
use grove_wire::ahp::SessionSummary;
use grove_wire::x_grove::{self, announcement::Announcement};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::harness::{options, pass, soon, told, until};

/// Answers requests as told, or not at all if that is `null`, and sends what the test wants.
pub(super) struct FaultyHost {
    endpoint: Endpoint,
    heard: Arc<Mutex<Vec<String>>>,
    say: mpsc::UnboundedSender<Value>,
}

pub(super) type AnswerFn = Box<dyn FnMut(&str, &Value) -> Result<Value, Value> + Send>;

impl FaultyHost {
    pub(super) async fn start(mut answer: AnswerFn) -> Self {
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
        self.provider_with(options())
    }

    fn provider_with(&self, options: HostOptions) -> Arc<HostProvider> {
        let identity = HostIdentity::other_host("odd", "odd").unwrap();
        let (provider, driver) = HostProvider::new(identity, self.endpoint.clone(), options);
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

/// A host with these rows.
fn with_rows(version: &'static str, rows: Vec<Value>) -> AnswerFn {
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
    let host = FaultyHost::start(with_rows("0.9.0", rows)).await;
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
    // It may announce a session that is already listed.
    host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row("failed", 1)}));
    until("the change", || provider.sessions()[3].status() == SessionStatus::Completed).await;
    assert_eq!(provider.sessions().len(), bits.len());
}

/// Here the work is counted; `bench/sessions` measures its time.
#[tokio::test]
async fn ten_thousand_rows_cost_one_list_and_a_change_is_told_alone() {
    let rows: Vec<Value> = (0..10_000).map(|name| row(&name.to_string(), 33)).collect();
    let host = FaultyHost::start(with_rows("1.0.0", rows)).await;
    let provider = host.provider();
    let mut events = provider.subscribe();
    soon("the list", provider.listed()).await;
    assert_eq!(provider.sessions().len(), 10_000);
    let told_until_now = told(&mut events);
    let added = |told: &&String| told.starts_with("added");
    assert_eq!(told_until_now.iter().filter(added).count(), 10_000, "each is told once");
    assert!(told_until_now.iter().all(|told| !told.starts_with("changed") && !told.starts_with("removed")));
    for (name, title) in [("9999", "One"), ("0", "Two"), ("9999", "Three")] {
        let session = format!("ahp-session:/{name}");
        let changed = json!({"channel": "ahp-root://", "session": session, "changes": {"title": title}});
        host.tell("root/sessionSummaryChanged", changed);
        let event = soon("the change", events.recv()).await.unwrap();
        let ProviderEvent::Sessions(change) = event else { panic!("{event:?}") };
        assert_eq!((change.added.len(), change.removed.len(), change.changed.len()), (0, 0, 1));
        assert_eq!(
            (change.changed[0].id().local(), &*change.changed[0].title()),
            (&*format!("remote-odd-{session}"), title)
        );
    }
    assert_eq!(told(&mut events), Vec::<String>::new());
    assert_eq!((host.heard("listSessions"), host.heard("subscribe")), (1, 0), "rows are not subscribed");
}

#[tokio::test]
async fn versions_that_do_not_fit_are_explained() {
    let host = FaultyHost::start(Box::new(|_, _| {
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

/// The list of a host. `None`: it does not answer.
type Lists = Arc<Mutex<Option<Vec<Value>>>>;

fn that_lists(rows: &Lists) -> AnswerFn {
    let rows = rows.clone();
    Box::new(move |method, _| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => match &*rows.lock().unwrap() {
            Some(rows) => Ok(json!({"items": rows})),
            None => Err(json!({"code": -32603, "message": "not now"})),
        },
        _ => Err(unknown()),
    })
}

fn titles(provider: &HostProvider) -> Vec<String> {
    provider.sessions().iter().map(|session| session.title().to_string()).collect()
}

#[tokio::test]
async fn what_is_remembered_goes_only_after_a_list_that_came_whole() {
    let rows = Lists::default();
    let host = FaultyHost::start(that_lists(&rows)).await;
    let remembered = [row("gone", 1), row("kept", 1)].map(|row| serde_json::from_value::<SessionSummary>(row).unwrap());
    let list_cache = Arc::new(InMemorySessionListCache::default());
    list_cache.keep(CachedSessionList::new(Timestamp(1), &remembered));
    let provider = host.provider_with(HostOptions { list_cache, ..options() });
    until("a connection", || provider.availability() == Availability::Ready).await;
    // Everything that the connection knows of the host's list.
    host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row("early", 1)}));
    until("the early one", || titles(&provider).contains(&"early".to_owned())).await;
    until("lists that do not come", || host.heard("listSessions") >= 3).await;
    assert_eq!(titles(&provider), ["gone", "kept", "early"]);
    *rows.lock().unwrap() = Some(vec![row("kept", 1), row("early", 1)]);
    until("the list", || titles(&provider) == ["kept", "early"]).await;
}

#[tokio::test]
async fn a_list_that_does_not_come_is_asked_for_again_and_nothing_goes_before_it_does() {
    let rows: Lists = Arc::new(Mutex::new(Some(vec![row("gone", 1), row("kept", 1)])));
    let host = FaultyHost::start(that_lists(&rows)).await;
    let reconnect =
        Backoff { first: Duration::from_millis(20), longest: Duration::from_secs(60), ..Backoff::default() };
    let provider = host.provider_with(HostOptions { reconnect, ..options() });
    let listed = || titles(&provider);
    soon("the first list", provider.listed()).await;
    assert_eq!(listed(), ["gone", "kept"]);
    let list_cache = provider.sessions().remove(1);

    *rows.lock().unwrap() = None;
    let before = host.heard("listSessions");
    host.hang_up();
    until("the loss", || provider.availability() != Availability::Ready).await;
    until("the return", || provider.availability() == Availability::Ready).await;
    until("lists that do not come", || {
        assert_eq!(listed(), ["gone", "kept"], "a list that did not come says nothing");
        host.heard("listSessions") >= before + 4
    })
    .await;
    // Events are applied meanwhile.
    host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row("early", 1)}));
    until("the early one", || listed() == ["gone", "kept", "early"]).await;
    // Without waits that grow it would be asked for another fifty times. A slow machine asks less often. Each list goes over
    // a socket, so the clock cannot be paused meanwhile.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = host.heard("listSessions") - before;
    assert!(asked < 16, "{asked} lists");
    assert_eq!(listed(), ["gone", "kept", "early"]);
    assert!(provider.seen_at().is_some(), "they are what was seen before");

    *rows.lock().unwrap() = Some(vec![row("kept", 1), row("early", 1)]);
    until("the list", || listed() == ["kept", "early"]).await;
    until("what is so now", || provider.seen_at().is_none()).await;
    assert_eq!(provider.sessions()[0], list_cache, "the same session, not another of its name");
    let asked = host.heard("listSessions");
    pass(Duration::from_secs(1)).await;
    assert_eq!(host.heard("listSessions"), asked, "one that came is not asked for again");
}

#[tokio::test]
async fn the_repositories_of_sessions_are_offered_the_newest_first_and_each_once() {
    let at = |name: &str, minute: usize, meta: Value| {
        let mut row = row(name, 1);
        row["modifiedAt"] = format!("2026-01-02T{:02}:{:02}:00.000Z", minute / 60, minute % 60).into();
        row["_meta"] = meta;
        row
    };
    let mut rows = vec![
        at("old", 1, json!({"repositoryPath": "/srv/my app", "repositoryUrl": "https://example.org/acme/tool.git"})),
        at(
            "worktree",
            900,
            json!({"repositoryPath": "/srv/site", "worktreePath": "/srv/fix", "repositoryNwo": "acme/site"}),
        ),
        at("plain", 901, json!({})),
        at("new", 902, json!({"repositoryPath": "/srv/site", "repositoryNwo": "acme/site"})),
        at("clone", 903, json!({"repositoryPath": "/srv/copy", "repositoryNwo": "acme/site"})),
    ];
    rows.extend(
        (2..302).map(|number| at(&format!("n{number}"), number, json!({"repositoryPath": format!("/n/{number}")}))),
    );
    let host = FaultyHost::start(with_rows("1.0.0", rows)).await;
    let provider = host.provider();
    soon("the list", provider.listed()).await;
    let actions = provider.browse_actions();
    let shown: Vec<_> = actions.iter().map(|action| (&*action.label, action.icon.as_str())).collect();
    assert_eq!(shown, [("Folders", "folder"), ("Repositories", "repo")]);
    let browse = async |chosen: Option<&str>, query: Option<&str>| {
        let (chosen, query) = (chosen.map(Into::into), query.map(ToOwned::to_owned));
        provider.browse(&BrowseRequest { action: actions[1].id.clone(), chosen, query }).await
    };
    let offered = async |query: Option<&str>| match browse(None, query).await.unwrap() {
        BrowseOutcome::Offered(offers) => {
            let texts =
                |it: BrowseOffer| (it.uri.to_string(), it.label.to_string(), it.description.unwrap().to_string());
            offers.into_iter().map(texts).collect()
        }
        BrowseOutcome::Nothing => Vec::new(),
        BrowseOutcome::Chosen(workspace) => panic!("{workspace:?}"),
    };
    let offer = |uri: &str, label: &str, path: &str| (uri.to_owned(), label.to_owned(), path.to_owned());
    let all = offered(None).await;
    let (copy, site) = (offer("file:///srv/copy", "site", "/srv/copy"), offer("file:///srv/site", "site", "/srv/site"));
    assert_eq!(all[..3], [copy.clone(), site.clone(), offer("file:///n/301", "301", "/n/301")]);
    assert_eq!(all.len(), 200, "who misses one types more of its name");
    assert_eq!(offered(Some("ACME/s")).await, [copy, site]);
    assert_eq!(offered(Some("tool")).await, [offer("file:///srv/my%20app", "tool", "/srv/my app")]);
    assert!(offered(Some("/srv/fix")).await.is_empty(), "a worktree is no repository");

    let Ok(BrowseOutcome::Chosen(chosen)) = browse(Some("file:///srv/site"), None).await else {
        panic!("nothing was chosen")
    };
    assert_eq!((chosen.uri.as_str(), &*chosen.label), ("file:///srv/site", "site [odd]"));
    assert_eq!(chosen.repositories[0].identity.as_deref(), Some("github.com/acme/site"));
    assert!(chosen.requires_workspace_trust);
    let draft = provider.create_new_session(&chosen).await.unwrap();
    assert_eq!(draft.metadata().text("repositoryNwo"), Some("acme/site"));
    assert_eq!(draft.metadata().text("remoteAgentHost"), Some("odd"));
}

#[tokio::test]
async fn the_repository_of_a_folder_is_asked_for_once_and_gives_github_what_the_row_does_not() {
    let at = |name: &str, folder: &str, meta: Value| {
        let mut row = row(name, 1);
        row["workingDirectories"] = json!([folder]);
        row["_meta"] = meta;
        row
    };
    let pull = "https://github.com/acme/other/pull/7";
    let rows = vec![
        at("1", "file:///srv/app", json!({})),
        at("2", "file:///srv/app", json!({})),
        at("3", "file:///srv/app", json!({"repositoryNwo": "acme/other", "pullRequestUrl": pull})),
        at("4", "file:///srv/elsewhere", json!({"repositoryUrl": "https://example.org/acme/app.git"})),
        at("5", "file:///srv/none", json!({})),
    ];
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let answer = {
        let asked = asked.clone();
        move |method: &str, params: &Value| match method {
            "initialize" => {
                let mut answer = initialized("1.0.0");
                let manifests = |offered| {
                    matches!(offered, x_grove::Method::Workspace(x_grove::workspace::WorkspaceMethod::Manifest))
                };
                answer["_meta"] = Announcement::of(manifests).meta().into();
                Ok(answer)
            }
            "listSessions" => Ok(json!({"items": rows})),
            "x-grove/workspace/manifest" => {
                let session = params["channel"].as_str().unwrap().to_owned();
                let repository = (!session.ends_with('5')).then_some("acme/app");
                asked.lock().unwrap().push(session);
                Ok(json!({"id": "x", "path": "/x", "repository": repository, "userNamed": false, "summaryCount": 0,
                    "forkCount": 0}))
            }
            _ => Err(unknown()),
        }
    };
    let host = FaultyHost::start(Box::new(answer)).await;
    let provider = host.provider();
    until("all answers", || asked.lock().unwrap().len() == 2 && provider.sessions()[0].github_info().is_some()).await;
    let github = |session: &grove_sessions::Session| {
        let info = session.github_info()?;
        Some(format!("{}/{} {:?}", info.owner, info.repo, info.pull_request.as_ref().map(|pull| pull.number)))
    };
    let told: Vec<_> = provider.sessions().iter().map(github).collect();
    let app = || Some("acme/app None".to_owned());
    assert_eq!(told, [app(), app(), Some("acme/other Some(7)".to_owned()), None, None]);
    let folder = |session: &String| match session.as_str() {
        "ahp-session:/1" | "ahp-session:/2" => "app",
        "ahp-session:/5" => "none",
        _ => "one of which a row tells",
    };
    let mut folders: Vec<_> = asked.lock().unwrap().iter().map(folder).collect();
    folders.sort_unstable();
    assert_eq!(folders, ["app", "none"], "one session of each folder of which no row tells");
}

#[tokio::test]
async fn images_go_to_no_model_that_its_host_says_cannot_see_them() {
    let model = |id: &str, vision: bool| json!({"id": id, "provider": "claude", "name": id, "supportsVision": vision});
    let models = json!([model("sees", true), model("blind", false)]);
    let host = FaultyHost::start(Box::new(move |method, _| match method {
        "initialize" => {
            let mut answer = initialized("1.0.0");
            answer["snapshots"][0]["state"]["agents"][0]["models"] = models.clone();
            Ok(answer)
        }
        "listSessions" => Ok(json!({"items": [row("1", 1)]})),
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    soon("the list", provider.listed()).await;
    let image = AttachedContext::Image { media_type: "image/png".into(), data: Arc::from([1_u8]) };
    let options = || SendOptions { attached_context: vec![image.clone()], ..SendOptions::new("look") };
    let listed = provider.sessions().remove(0);
    let draft = provider.create_new_session(&session::SessionWorkspace::new("file:///srv/app", "app")).await.unwrap();
    for session in [&listed, &draft] {
        let (id, chat) = (session.id(), session.main_chat().resource().clone());
        provider.set_model(id, "blind").await.unwrap();
        let refused =
            [provider.send_request(id, &chat, options()).await, provider.send_and_create_chat(id, options()).await];
        for refused in refused {
            let Err(ProviderError::Refused(why)) = refused else { panic!("{refused:?}") };
            assert!(why.starts_with("blind takes no images"), "{why}");
        }
    }
    assert_eq!((host.heard("createSession"), host.heard("createChat"), host.heard("subscribe")), (0, 0, 0));
    provider.set_model(draft.id(), "sees").await.unwrap();
    let sent = provider.send_and_create_chat(draft.id(), options()).await;
    assert!(sent.is_err() && host.heard("createSession") == 1, "it is the host that refuses now: {sent:?}");
}

#[tokio::test]
async fn a_message_on_its_way_is_given_up_when_the_host_goes_away() {
    let host = FaultyHost::start(Box::new(|method, _| match method {
        "initialize" => Ok(initialized("1.0.0")),
        "listSessions" => Ok(json!({"items": []})),
        "createSession" => Ok(Value::Null),
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("a connection", || provider.availability() == Availability::Ready).await;
    let draft = provider.create_new_session(&session::SessionWorkspace::new("file:///srv/app", "app")).await.unwrap();
    let sending = tokio::spawn({
        let (provider, id) = (provider.clone(), draft.id().clone());
        async move { provider.send_and_create_chat(&id, SendOptions::new("First line\nsecond")).await }
    });
    until("the temporary row", || !provider.sessions().is_empty()).await;
    assert_eq!(provider.sessions(), std::slice::from_ref(&draft));
    assert_eq!((&*draft.title(), draft.status(), draft.loading()), ("First line", SessionStatus::InProgress, true));
    until("the request", || host.heard("createSession") == 1).await;
    host.hang_up();
    let sent = soon("the end of it", sending).await.unwrap();
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
    let host = FaultyHost::start(Box::new(move |method, params| match method {
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
    let host = FaultyHost::start(Box::new(move |method, params| match method {
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
    let host = FaultyHost::start(with_rows("1.0.0", vec![row("own", 1), left])).await;
    let provider = host.provider();
    until("the list", || !provider.sessions().is_empty()).await;
    assert_eq!(provider.sessions().len(), 1);
}
