//! The sessions of every source over the wire: `x-grove/sessions/…`, on connections of both protocols.

mod inbox;
mod rows;
mod sources;
mod views;

use std::collections::VecDeque;

use grove_testkit::Client;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::{Value, json};

use crate::support::{Host, TestHome, file_uri};

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
        Self::with_token(host, name, protocol, &host.token).await
    }

    pub(crate) async fn with_token(host: &Host, name: &str, protocol: Protocol, token: &str) -> Self {
        let client = Client::connect(&host.ws, token, name).await;
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

/// A filter for changes with the row of a session.
pub(crate) fn row(session: &str, fits: impl Fn(&Value) -> bool) -> impl Fn(&Value) -> bool {
    move |params| {
        let rows = ["added", "changed"].into_iter().filter_map(|list| params[list].as_array()).flatten();
        rows.into_iter().any(|row| row["id"] == session && fits(row))
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
    assert_eq!(left_out, ["x-grove/history/list", "x-grove/history/scan", "x-grove/history/import"]);
    assert_eq!(place.run(&["ls", "--all"]).code, Some(0));
}
