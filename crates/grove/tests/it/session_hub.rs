//! The sessions of every source over the wire: `x-grove/sessions/…`, on connections of both protocols.

use std::collections::VecDeque;
use std::time::Duration;

use grove_testkit::Client;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::{Value, json};

use crate::support::{Deadline, Host, TestHome, file_uri};

pub(crate) const LOCAL: &str = "local-agent-host";

/// A page: a connection of either protocol, and its notifications.
pub(crate) struct Page {
    client: Client,
    told: VecDeque<Value>,
    last_id: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    V1,
    Ahp,
}

impl Protocol {
    /// The params of `initialize`.
    fn hello(self, name: &str) -> Value {
        match self {
            Protocol::V1 => json!({"protocolVersion": 1, "clientId": name}),
            Protocol::Ahp => json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": name}),
        }
    }
}

impl Page {
    pub(crate) async fn open(host: &Host, name: &str, protocol: Protocol) -> Self {
        let client = host.connect(name).await;
        let mut page = Self { client, told: VecDeque::new(), last_id: 0 };
        page.ask("initialize", protocol.hello(name)).await.unwrap();
        page
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.client.send(request.to_string()).await;
        loop {
            let mut frame = self.frame().await;
            if frame.get("id").is_none() {
                self.told.push_back(frame);
                continue;
            }
            assert_eq!(frame["id"], id, "{frame}");
            return match frame.get("error") {
                None => Ok(frame["result"].take()),
                Some(error) => Err(ErrorObject {
                    code: error["code"].as_i64().unwrap(),
                    message: error["message"].as_str().unwrap().to_owned(),
                    data: error.get("data").cloned(),
                }),
            };
        }
    }

    async fn frame(&mut self) -> Value {
        let text = self.client.frame().await.expect("the connection is open");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.ask(&format!("x-grove/sessions/{method}"), params).await
    }

    pub(crate) async fn get(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap()
    }

    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> ErrorObject {
        self.call(method, params).await.unwrap_err()
    }

    /// The next notification of a method that matches; others before it are dropped.
    pub(crate) async fn told(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let method = format!("x-grove/sessions/{method}");
        loop {
            let frame = match self.told.pop_front() {
                Some(frame) => frame,
                None => self.frame().await,
            };
            if frame["method"] == method.as_str() && fits(&frame["params"]) {
                return frame["params"].clone();
            }
        }
    }

    /// The number of unread notifications with a session in a list of the change.
    fn count_told(&self, list: &str, session: &str) -> usize {
        let changed = self.told.iter().filter(|frame| frame["method"] == "x-grove/sessions/changed");
        changed
            .flat_map(|frame| frame["params"][list].as_array().cloned().unwrap_or_default())
            .filter(|row| row["id"] == session)
            .count()
    }

    /// The ids of all sessions.
    pub(crate) async fn listed(&mut self) -> Vec<String> {
        let listed = self.get("list", json!({})).await;
        let rows = listed["sessions"].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// The id of a session of this host.
pub(crate) fn local(uri: &str) -> String {
    format!("{LOCAL}:agent-host-{uri}")
}

pub(crate) fn resource(uri: &str) -> String {
    format!("agent-host-{uri}")
}

pub(crate) fn has(list: &str, session: &str) -> impl Fn(&Value) -> bool {
    move |params| {
        let rows = params[list].as_array().into_iter().flatten();
        rows.into_iter().any(|row| row["id"] == session || *row == *session)
    }
}

#[tokio::test]
async fn a_session_that_another_client_makes_is_added_once_on_every_protocol() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    maker.ready_session("scripted:/before").await;
    for protocol in [Protocol::V1, Protocol::Ahp] {
        let uri = format!("scripted:/made-{protocol:?}");
        let mut page = Page::open(&host, &format!("page-{protocol:?}"), protocol).await;
        let began = page.get("subscribe", json!({})).await;
        assert_eq!(began["view"]["context"]["isNewChatSession"], true);
        assert!(page.listed().await.contains(&local("scripted:/before")));
        page.told.clear();
        maker.ready_session(&uri).await;
        let added = page.told("changed", has("added", &local(&uri))).await;
        let row = &added["added"][0];
        assert_eq!(
            (row["providerId"].as_str(), row["resource"].as_str()),
            (Some(LOCAL), Some(resource(&uri).as_str()))
        );
        assert_eq!(row["context"], json!({"chatSessionProviderId": LOCAL}));
        maker.run_script(&uri, "t", json!([{"say": "hello"}])).await;
        page.told("changed", |params| {
            has("changed", &local(&uri))(params) && params["changed"][0]["status"] == "completed"
        })
        .await;
        page.listed().await;
        assert_eq!(page.count_told("added", &local(&uri)), 0, "it is added once");
        // A client without a subscription gets no notifications.
        page.get("unsubscribe", json!({})).await;
        page.told.clear();
        maker.ready_session(&format!("{uri}-unheard")).await;
        page.listed().await;
        assert_eq!(page.count_told("added", &local(&format!("{uri}-unheard"))), 0);
    }
}

#[tokio::test]
async fn pages_have_every_session_once_and_groups_come_with_the_first() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    for number in 0..6 {
        maker.ready_session(&format!("scripted:/{number}")).await;
    }
    let folder = host.place.home().join("project");
    std::fs::create_dir(&folder).unwrap();
    let in_folder = json!({"session": "scripted:/6", "provider": "scripted", "workingDirectory": file_uri(&folder)});
    maker.call::<Value>("createSession", in_folder).await.unwrap();
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    let whole = page.listed().await;
    assert_eq!(whole.len(), 7);
    let (mut found, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({"limit": 3, "cursor": cursor});
        let part = page.get("list", params).await;
        assert_eq!(part["groups"].is_array(), cursor.is_null(), "{part}");
        assert_eq!(part["total"], 7);
        found.extend(part["sessions"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        cursor = part["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, whole);
    let first = page.get("list", json!({})).await;
    let rows = first["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == local("scripted:/6").as_str()).unwrap();
    assert!(row["group"].as_str().is_some_and(|key| key.ends_with("/home/project")), "{row}");
    let groups = json!([{"key": row["group"], "heading": "project"}, {"heading": "Unknown"}]);
    assert_eq!(first["groups"], groups);
    // A removed heading is announced together with its cause.
    page.get("subscribe", json!({})).await;
    page.get("delete", json!({"sessions": [local("scripted:/6")]})).await;
    let gone = page.told("changed", has("removed", &local("scripted:/6"))).await;
    assert_eq!(gone["groups"], json!([{"heading": "Unknown"}]));
    assert_eq!(page.refused("list", json!({"cursor": "x"})).await.code, -32602);
}

#[tokio::test]
async fn each_client_looks_at_a_session_of_its_own_and_finds_it_again() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    maker.ready_session("scripted:/a").await;
    maker.ready_session("scripted:/b").await;
    let mut one = Page::open(&host, "one", Protocol::Ahp).await;
    let mut two = Page::open(&host, "two", Protocol::V1).await;
    one.get("subscribe", json!({})).await;
    two.get("subscribe", json!({})).await;
    one.get("open", json!({"resource": resource("scripted:/a")})).await;
    let view = one.told("view", |view| view["activeSession"]["id"] == local("scripted:/a").as_str()).await;
    let context = &view["context"];
    assert_eq!(context["activeSessionProviderId"], LOCAL);
    assert_eq!(context["isActiveSessionBackgroundProvider"], true);
    assert_eq!(context["isActiveSessionArchived"], false);
    let chat = view["activeSession"]["chats"][0]["resource"].clone();
    assert_eq!(view["activeChat"], chat);
    one.get("openChat", json!({"session": local("scripted:/a"), "chat": chat})).await;
    let unknown = one.refused("openChat", json!({"session": local("scripted:/a"), "chat": "x:/y"})).await;
    assert_eq!(unknown.code, -32008);
    assert_eq!(one.refused("open", json!({"resource": "x:/y"})).await.code, -32001);
    two.get("open", json!({"resource": resource("scripted:/b")})).await;
    two.told("view", |view| view["activeSession"]["id"] == local("scripted:/b").as_str()).await;
    // Each client keeps its own view, also after reconnecting.
    drop(one);
    let mut again = Page::open(&host, "one", Protocol::V1).await;
    let began = again.get("subscribe", json!({})).await;
    assert_eq!(began["view"]["activeSession"]["id"], local("scripted:/a").as_str());
    again.get("archive", json!({"session": local("scripted:/a")})).await;
    let left = again.told("view", |view| view["activeSession"].is_null()).await;
    assert_eq!(left["context"]["isNewChatSession"], true);
    again.get("openNewSessionView", json!({})).await;
    // The provider of new sessions is the same for all clients.
    assert_eq!(again.refused("setActiveProvider", json!({"providerId": "nobody"})).await.code, -32002);
    again.get("setActiveProvider", json!({"providerId": "history-pi"})).await;
    two.told("view", |view| view["activeProviderId"] == "history-pi").await;
}

#[tokio::test]
async fn the_session_that_was_last_open_is_looked_at_again_by_whoever_wants_to() {
    let host = Host::start();
    host.client("maker").await.ready_session("scripted:/a").await;
    let mut one = Page::open(&host, "one", Protocol::Ahp).await;
    assert_eq!(one.get("restore", json!({})).await, json!({}), "nothing was open");
    one.get("open", json!({"resource": resource("scripted:/a")})).await;
    assert_eq!(one.get("restore", json!({})).await, json!({}), "it is looked at");
    let remembered = host.place.data().join("sessions-layer.json");
    let deadline = Deadline::new("nothing is remembered");
    while !std::fs::read_to_string(&remembered).is_ok_and(|text| text.contains("scripted:/a")) {
        deadline.check();
    }
    drop(one);
    let host = host.kill().serve(&[]);
    let mut two = Page::open(&host, "two", Protocol::V1).await;
    let began = two.get("subscribe", json!({})).await;
    assert!(began["view"]["activeSession"].is_null(), "nobody is taken there unasked: {began}");
    assert_eq!(two.get("restore", json!({})).await["session"]["id"], local("scripted:/a"));
    two.told("view", |view| view["activeSession"]["id"] == local("scripted:/a").as_str()).await;
}

#[tokio::test]
async fn an_archived_session_gives_way_to_a_new_one_and_chats_are_renamed_over_the_wire() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let folder = place.home().join("project");
    std::fs::create_dir(&folder).unwrap();
    let uri = file_uri(&folder);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    page.get("answerTrust", json!({"providerId": LOCAL, "folder": uri, "trusted": true})).await;
    let draft = page.get("create", json!({"folder": uri})).await["session"]["id"].clone();
    let send = |session: &Value, query: &str| json!({"session": session, "query": query});
    let sent = page.get("sendAndCreateChat", send(&draft, r#"script:[{"say":"one"}]"#)).await["session"].clone();
    let two = page.get("sendAndCreateChat", send(&sent["id"], r#"script:[{"say":"two"}]"#)).await["session"].clone();
    let chat = two["chats"][1]["resource"].clone();
    page.get("renameChat", json!({"session": sent["id"], "chat": chat, "title": "Review"})).await;
    let named = |params: &Value| {
        let rows = params["changed"].as_array().into_iter().flatten();
        rows.into_iter().any(|row| row["id"] == sent["id"] && row["chats"][1]["title"] == "Review")
    };
    page.told("changed", named).await;
    page.get("archive", json!({"session": sent["id"]})).await;
    let view = page.told("view", |view| view["newSession"].is_object()).await;
    let new = &view["newSession"];
    assert_eq!((&new["providerId"], &new["sessionType"]), (&json!(LOCAL), &sent["sessionType"]));
    assert_eq!((&new["workspace"]["uri"], &view["activeSession"]["id"]), (&json!(uri), &new["id"]));
    assert_eq!(view["context"]["isNewChatSession"], true);
}

#[tokio::test]
async fn deleting_several_goes_on_after_one_that_cannot_be() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    maker.ready_session("scripted:/a").await;
    maker.ready_session("scripted:/b").await;
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    let (a, b, none) = (local("scripted:/a"), local("scripted:/b"), local("scripted:/none"));
    let deleted = page.get("delete", json!({"sessions": [a, none, b]})).await;
    assert_eq!(deleted["deleted"], json!([a, b]));
    assert!(deleted["error"].as_str().unwrap().contains("scripted:/none"), "{deleted}");
    assert_eq!(page.listed().await, Vec::<String>::new());
    assert_eq!(page.refused("delete", json!({"sessions": ["x"]})).await.code, -32602);
    assert_eq!(page.refused("archive", json!({"session": none})).await.code, -32001);
}

#[tokio::test]
async fn a_folder_is_asked_for_once_and_remembered_in_the_hosts_list() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let folder = place.home().join("project");
    std::fs::create_dir(&folder).unwrap();
    let uri = file_uri(&folder);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    let types = page.get("typesForFolder", json!({"folder": uri})).await;
    let found = types["types"].as_array().unwrap();
    assert!(found.iter().any(|offered| offered["id"].as_str().unwrap().contains("scripted")), "{types}");
    let draft = page.get("create", json!({"folder": uri})).await["session"].clone();
    let session = draft["id"].as_str().unwrap().to_owned();
    page.told("view", |view| view["newSession"]["id"] == session.as_str()).await;
    assert!(!page.listed().await.contains(&session), "it is not listed before its first message");
    let message = json!({"session": session, "query": "hello"});
    let needed = page.refused("sendAndCreateChat", message.clone()).await;
    assert_eq!((needed.code, needed.data), (-32009, Some(json!({"providerId": LOCAL, "folder": uri}))));
    page.get("answerTrust", json!({"providerId": LOCAL, "folder": uri, "trusted": true})).await;
    let sent = page.get("sendAndCreateChat", message).await["session"].clone();
    assert!(sent["group"].is_string(), "{sent}");
    let named = |row: &Value| row["id"] == sent["id"] && row["title"] == "hello";
    let has_title = |params: &Value| params["changed"].as_array().into_iter().flatten().any(named);
    let view = page.told("view", |view| view["activeSession"]["id"] == sent["id"]).await;
    assert_eq!(view["context"]["isNewChatSession"], false);
    page.told("changed", has_title).await;
    // A second session in that folder, by another client, needs no answer any more; nor after a restart.
    let listed = std::fs::read_to_string(place.data().join("trusted-folders.json")).unwrap();
    assert!(listed.contains("project"), "{listed}");
    drop(page);
    drop(host);
    let host = place.serve(&[]);
    let mut other = Page::open(&host, "other", Protocol::V1).await;
    assert!(other.listed().await.contains(&sent["id"].as_str().unwrap().to_owned()));
    let draft = other.get("create", json!({"folder": uri})).await["session"].clone();
    other.get("sendAndCreateChat", json!({"session": draft["id"], "query": "again"})).await;
    let refused = other.refused("setSessionType", json!({"session": sent["id"], "sessionType": "x"})).await;
    assert!(refused.code == -32602 && refused.message.contains("has been sent already"), "{refused:?}");
}

#[tokio::test]
async fn the_hosts_connection_to_itself_begins_with_the_first_who_lists_and_keeps_no_host_alive() {
    let mut host = TestHome::new().serve(&["--idle-exit", "1"]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    assert_eq!(host.connections(), 1);
    page.listed().await;
    assert_eq!(host.connections(), 2);
    let providers = page.get("providers", json!({})).await;
    let local = &providers["providers"][0];
    assert_eq!((&local["id"], &local["availability"]), (&json!(LOCAL), &json!("ready")));
    assert!(providers["providers"].as_array().unwrap().iter().any(|provider| provider["environment"] == "history"));
    drop(page);
    assert!(host.exit().success());
}

#[tokio::test]
async fn what_other_hosts_have_and_other_tools_left_is_in_the_same_list_once() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let user = json!({"type": "user", "uuid": "u", "sessionId": "s", "cwd": "/w", "version": "2.1.0",
        "timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": "user", "content": "old words"}});
    near.write("home/.claude/projects/-w/s.jsonl", format!("{user}\n"));
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/far").await;
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    // A host that is added while the hub runs is listed for the next client.
    let token = near.write("token", &far_host.token);
    let add = near.run(&["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    assert_eq!(add.code, Some(0), "{}", add.stderr);
    let mut later = Page::open(&host, "later", Protocol::V1).await;
    later.listed().await;
    let is_far = |row: &Value| row["title"].is_string() && row["id"].as_str().unwrap().ends_with("scripted:/far");
    let has_far = |params: &Value| params["added"].as_array().into_iter().flatten().any(is_far);
    page.told("changed", has_far).await;
    // Scanning the stores takes time.
    let deadline = Deadline::new("the stores are not looked at");
    let rows = loop {
        deadline.check();
        let listed = page.get("list", json!({})).await["sessions"].take();
        let rows = listed.as_array().unwrap().clone();
        if rows.len() > 1 {
            break rows;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let of = |provider: &str| rows.iter().filter(|row| row["providerId"] == provider).count();
    assert_eq!((rows.len(), of("history-claude"), of(LOCAL)), (2, 1, 0), "{rows:?}");
    let old = rows.iter().find(|row| row["providerId"] == "history-claude").unwrap();
    assert_eq!((&old["title"], &old["chats"][0]["interactivity"]), (&json!("old words"), &json!("readOnly")));
    let refused = page.refused("archive", json!({"session": old["id"]})).await;
    assert!(refused.code == -32602 && refused.message.contains("read-only"), "{refused:?}");
    let view = page.get("open", json!({"resource": old["resource"]})).await;
    assert_eq!(view["session"]["id"], old["id"]);
    let view = page.told("view", |view| view["activeSession"]["id"] == old["id"]).await;
    assert_eq!(view["context"]["isActiveSessionBackgroundProvider"], false);
    let ran = near.run(&["hosts", "rm", "lab"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut last = Page::open(&host, "last", Protocol::Ahp).await;
    assert_eq!(last.listed().await.len(), 1);
}

#[tokio::test]
async fn what_is_said_wrongly_is_refused_in_words() {
    let host = Host::start();
    let mut page = Page::open(&host, "page", Protocol::V1).await;
    let missing = page.refused("open", json!({})).await;
    assert!(missing.code == -32602 && missing.message.contains("resource"), "{missing:?}");
    let nobody = page.refused("archive", json!({"session": "nobody:1"})).await;
    assert!(nobody.code == -32002 && nobody.message.contains("no sessions provider nobody"), "{nobody:?}");
    let actions = page.get("browseActions", json!({})).await;
    let action = &actions["actions"][0];
    assert_eq!(action["providerId"], LOCAL);
    page.listed().await;
    let home = format!("{}/", host.place.home().display());
    std::fs::create_dir(host.place.home().join("found")).unwrap();
    let params = json!({"providerId": LOCAL, "action": action["id"], "query": home});
    let offered = page.get("browse", params).await;
    assert_eq!(offered["offers"][0]["label"], "found", "{offered}");
}

fn told(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// The provider of another host, once it matches.
async fn until_provider(page: &mut Page, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Deadline::new("the provider of the other host is not so");
    loop {
        let providers = page.get("providers", json!({})).await;
        let other = providers["providers"].as_array().unwrap().iter().find(|one| one["environment"] == "otherHost");
        match other {
            Some(other) if fits(other) => return other.clone(),
            _ => deadline.check(),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_listed(page: &mut Page, count: usize) -> Vec<String> {
    let deadline = Deadline::new("the list is another");
    loop {
        let listed = page.listed().await;
        if listed.len() == count {
            return listed;
        }
        deadline.check();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The output of `grove ls` about sessions of other hosts.
fn ls(place: &TestHome) -> Value {
    serde_json::from_str(&told(place, &["ls", "--json", "--no-start"])).unwrap()
}

/// The time of the session hub's last answer, in milliseconds since 1970.
fn seen_by_ls(place: &TestHome) -> u64 {
    grove_wire::ahp::time::parse(ls(place)["away"][0]["seenAt"].as_str().unwrap()).unwrap().0
}

#[tokio::test]
async fn what_either_saw_last_of_a_host_is_shown_by_both_while_it_is_away_and_after_a_restart() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/one").await;
    let host = near.serve(&[]);
    // Its socket is in the same place when it is started again.
    told(&near, &["hosts", "add", "lab", &format!("unix:{}", far.data().join("host.sock").display())]);

    // Only the session hub has seen it.
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    let seen = until_listed(&mut page, 1).await;
    let kept = near.data().join("hosts-seen/lab.json");
    let deadline = Deadline::new("it is not written down");
    while !kept.exists() {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(until_provider(&mut page, |lab| lab["availability"] == "ready").await.get("seenAt"), None);
    let near = host.kill();
    let far = far_host.kill();
    let before = seen_by_ls(&near);
    let rows = ls(&near)["sessions"].clone();
    assert_eq!((&rows[0]["resource"], &rows[0]["cached"]), (&json!("scripted:/one"), &json!(true)));
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::V1).await;
    assert_eq!(page.listed().await, seen, "at once, and under the same id");
    let lab = until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(lab["seenAt"], before);
    drop(page);

    // Only `grove ls` has seen the other sessions, while the session hub does not run.
    let near = host.kill();
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/two").await;
    assert_eq!(ls(&near)["sessions"].as_array().unwrap().len(), 2);
    let _far = far_host.kill();
    let later = seen_by_ls(&near);
    assert!(later > before);
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    assert_eq!(page.listed().await.len(), 2);
    let lab = until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(lab["seenAt"], later);
}

#[tokio::test]
async fn hosts_that_come_change_and_go_are_noticed_while_somebody_looks() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/far").await;
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    assert_eq!(page.listed().await.len(), 0);

    let token = near.write("token", &far_host.token);
    told(&near, &["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    let is_far = |row: &Value| row["id"].as_str().unwrap().ends_with("scripted:/far");
    let added = |params: &Value| params["added"].as_array().into_iter().flatten().any(is_far);
    page.told("changed", added).await;
    let listed = until_listed(&mut page, 1).await;

    // A token that the host refuses, and then the right one again.
    let hosts = near.data().join("hosts.toml");
    let text = std::fs::read_to_string(&hosts).unwrap();
    page.told.clear();
    std::fs::write(&hosts, text.replace(&far_host.token, "00000000000000000000000000000000")).unwrap();
    until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(page.listed().await, listed);
    std::fs::write(&hosts, "[lab").unwrap();
    let deadline = Deadline::new("the host does not look at the list");
    let is_noticed = || std::fs::read_to_string(near.path("stderr")).unwrap().contains("cannot read the list of hosts");
    while !is_noticed() {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(page.listed().await, listed, "a list that somebody is writing costs nothing");
    std::fs::write(&hosts, &text).unwrap();
    until_provider(&mut page, |lab| lab["availability"] == "ready").await;
    assert_eq!(page.listed().await, listed);
    for list in ["added", "removed"] {
        assert_eq!(page.count_told(list, &listed[0]), 0, "{list}");
    }

    // Another name is another provider of the same id.
    std::fs::write(&hosts, text.replace("[lab]", "[den]")).unwrap();
    until_provider(&mut page, |den| den["label"] == "den" && den["availability"] == "ready").await;
    assert_eq!(until_listed(&mut page, 1).await, listed);
    told(&near, &["hosts", "rm", "den"]);
    until_listed(&mut page, 0).await;
    assert!(!near.data().join("hosts-seen/den.json").exists());
}

#[tokio::test]
async fn what_grove_adds_is_announced_on_both_protocols_as_the_document_lists_it() {
    let host = Host::start();
    let document = include_str!("../../../../docs/protocol.md");
    let section = document.split("## What Grove adds").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `x-grove/"));
    let documented: Vec<String> = rows.map(|row| format!("x-grove/{}", row.split('`').next().unwrap())).collect();
    for (name, protocol) in [("one", Protocol::V1), ("two", Protocol::Ahp)] {
        let client = host.connect(name).await;
        let mut page = Page { client, told: VecDeque::new(), last_id: 0 };
        let begun = page.ask("initialize", protocol.hello(name)).await.unwrap();
        let announced = &begun["_meta"]["x-grove"];
        assert_eq!(announced["version"], 1, "{protocol:?}");
        assert_eq!(announced["methods"], json!(documented), "{protocol:?}");
        for method in &documented {
            let answer = page.ask(method, json!({})).await;
            assert!(answer.is_ok() || answer.is_err_and(|error| error.code != -32601), "{method}");
        }
        assert_eq!(page.ask("x-grove/later", json!({})).await.unwrap_err().code, -32601);
    }
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", "[history]\nenabled = false\n");
    let host = place.serve(&[]);
    let client = host.connect("three").await;
    let mut page = Page { client, told: VecDeque::new(), last_id: 0 };
    let begun = page.ask("initialize", Protocol::Ahp.hello("three")).await.unwrap();
    let announced = begun["_meta"]["x-grove"]["methods"].as_array().unwrap().clone();
    let left_out: Vec<&String> = documented.iter().filter(|method| !announced.contains(&json!(method))).collect();
    assert_eq!(left_out, ["x-grove/history/list", "x-grove/history/scan"]);
    assert_eq!(place.run(&["ls", "--all"]).code, Some(0));
}
