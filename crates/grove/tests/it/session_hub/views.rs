//! The views, changes and trusted folders of a client.

use serde_json::{Value, json};

use super::{LOCAL, Page, Protocol, local, resource};
use crate::support::{Deadline, Host, TestHome, file_uri};

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
