//! Actions on the sessions of all sources over the wire: `x-grove/sessions/…`, method by method.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_testkit::ahp;
use serde_json::{Value, json};

use crate::session_hub::{LOCAL, Page, Protocol, has, local, resource, row};
use crate::support::{Deadline, Host, TestHome, file_uri};

/// A page with a subscription, on a host with a session that has a turn.
async fn with_session(host: &Host) -> (Page, Value) {
    let mut maker = host.client("maker").await;
    maker.ready_session("scripted:/s").await;
    maker.run_script("scripted:/s", "t", json!([{"say": "hello"}])).await;
    let mut page = Page::open(host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    let listed = page.get("list", json!({})).await;
    (page, listed["sessions"][0].clone())
}

/// A new session in a folder that is trusted, distrusted or not decided.
async fn draft_in(page: &mut Page, place: &TestHome, trusted: Option<bool>) -> (String, String) {
    let folder = place.home().join("project");
    std::fs::create_dir_all(&folder).unwrap();
    let uri = file_uri(&folder);
    page.listed().await;
    if let Some(trusted) = trusted {
        page.get("answerTrust", json!({"providerId": LOCAL, "folder": uri, "trusted": trusted})).await;
    }
    let draft = page.get("create", json!({"folder": uri})).await;
    (draft["session"]["id"].as_str().unwrap().to_owned(), uri)
}

#[tokio::test]
async fn types_are_those_of_all_providers_or_those_that_a_session_can_have() {
    let host = Host::start();
    let (mut page, session) = with_session(&host).await;
    let ids = |types: Value| -> Vec<String> {
        let types = types["types"].as_array().unwrap().clone();
        types.iter().map(|offered| offered["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(page.get("types", json!({})).await);
    assert!(all.contains(&"scripted".to_owned()), "{all:?}");
    assert_eq!(ids(page.get("types", json!({"session": session["id"]})).await), ["scripted"], "it was sent");
    let (draft, _) = draft_in(&mut page, &host.place, None).await;
    assert!(ids(page.get("types", json!({"session": draft})).await).contains(&"scripted".to_owned()));
    assert_eq!(page.refused("types", json!({"session": "nobody:1"})).await.code, -32002);
    assert_eq!(page.refused("types", json!({"session": "nonsense"})).await.code, -32602);
}

#[tokio::test]
async fn a_new_session_that_is_dropped_is_gone() {
    let host = Host::start();
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    let (draft, _) = draft_in(&mut page, &host.place, Some(true)).await;
    page.told("view", |view| view["newSession"]["id"] == draft.as_str()).await;
    assert_eq!(page.get("unsetNewSession", json!({})).await, json!({}));
    let view = page.told("view", |view| view["newSession"].is_null()).await;
    assert!(view["activeSession"].is_null() && view["context"]["isNewChatSession"] == true, "{view}");
    let gone = page.refused("sendAndCreateChat", json!({"session": draft, "query": "hello"})).await;
    assert_eq!(gone.code, -32001, "{gone:?}");
    // If there is none, nothing happens.
    page.get("unsetNewSession", json!({})).await;
}

#[tokio::test]
async fn a_message_goes_to_a_chat_that_is_there() {
    let host = Host::start();
    let (mut page, session) = with_session(&host).await;
    let (id, chat) = (local("scripted:/s"), &session["chats"][0]["resource"]);
    let message = json!({"session": id, "chat": chat, "query": "script:[{\"say\": \"again\"}]"});
    let sent = page.get("sendRequest", message).await;
    assert_eq!(sent["session"]["id"], id.as_str());
    let mut client = host.client("looks").await;
    client.subscribe("scripted:/s").await.unwrap();
    client.until(|client| client.session("scripted:/s").turns.len() == 2).await;
    let no_chat = page.refused("sendRequest", json!({"session": id, "query": "x"})).await;
    assert!(no_chat.code == -32602 && no_chat.message.contains("chat"), "{no_chat:?}");
    let unknown = page.refused("sendRequest", json!({"session": id, "chat": "x:/y", "query": "x"})).await;
    assert_eq!(unknown.code, -32008, "{unknown:?}");
    let named = page.refused("sendAndCreateChat", json!({"session": id, "chat": chat, "query": "x"})).await;
    assert_eq!(named.code, -32602, "{named:?}");
}

#[tokio::test]
async fn a_model_is_chosen_before_and_after_the_first_message_and_who_looks_is_told() {
    let host = Host::start();
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    let (draft, _) = draft_in(&mut page, &host.place, Some(true)).await;
    let model = |name: &'static str| {
        move |view: &Value| view["newSession"]["modelId"] == name && view["activeSession"]["modelId"] == name
    };
    page.get("setModel", json!({"session": draft, "model": "scripted"})).await;
    page.told("view", model("scripted")).await;
    page.get("setModel", json!({"session": draft, "model": "scripted/slow-start"})).await;
    page.told("view", model("scripted/slow-start")).await;
    // Another connection of the same client sees it at once, and is notified as well.
    let mut page = Page::open(&host, "page", Protocol::V1).await;
    assert!(model("scripted/slow-start")(&page.get("subscribe", json!({})).await["view"]));
    let unknown = page.refused("setModel", json!({"session": draft, "model": "gpt-9"})).await;
    assert!(unknown.code == -32602 && unknown.message.contains("choose one of scripted"), "{unknown:?}");
    page.get("setModel", json!({"session": draft, "model": "scripted"})).await;
    page.told("view", model("scripted")).await;
    let sent = page.get("sendAndCreateChat", json!({"session": draft, "query": "script:[]"})).await;
    let id = sent["session"]["id"].as_str().unwrap().to_owned();
    page.told("changed", row(&id, |row| row["modelId"] == "scripted")).await;
    page.get("setModel", json!({"session": id, "model": "scripted/slow-start"})).await;
    page.told("changed", row(&id, |row| row["modelId"] == "scripted/slow-start")).await;
    assert_eq!(page.refused("setModel", json!({"session": id, "model": "gpt-9"})).await.code, -32602);
    let none = page.refused("setModel", json!({"session": local("scripted:/none"), "model": "scripted"})).await;
    assert_eq!(none.code, -32001);
}

#[tokio::test]
async fn another_type_of_a_new_session_is_told_to_those_who_look() {
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", "[agents.mine]\ncommand = [\"/bin/true\"]\n");
    let host = place.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    let (draft, _) = draft_in(&mut page, &place, None).await;
    let types = page.get("types", json!({"session": draft})).await;
    let other = types["types"].as_array().unwrap().iter().find(|offered| offered["id"] != "scripted").unwrap().clone();
    page.get("setSessionType", json!({"session": draft, "sessionType": other["id"]})).await;
    page.told("view", |view| view["newSession"]["sessionType"] == other["id"]).await;
}

#[tokio::test]
async fn the_main_chat_is_renamed_with_its_session() {
    let host = Host::start();
    let (mut page, session) = with_session(&host).await;
    let id = local("scripted:/s");
    let rename = |chat: &Value| json!({"session": id, "chat": chat, "title": "Better"});
    page.get("renameChat", rename(&session["chats"][0]["resource"])).await;
    let is_renamed = |row: &Value| row["title"] == "Better" && row["chats"][0]["title"] == "Better";
    page.told("changed", row(&id, is_renamed)).await;
    assert_eq!(page.refused("renameChat", rename(&json!("x:/y"))).await.code, -32008);
}

#[tokio::test]
async fn what_was_put_away_is_taken_out_again() {
    let host = Host::start();
    let (mut page, session) = with_session(&host).await;
    let id = local("scripted:/s");
    page.get("archive", json!({"session": id})).await;
    page.told("changed", row(&id, |row| row["isArchived"] == true)).await;
    let message = json!({"session": id, "chat": session["chats"][0]["resource"], "query": "x"});
    let archived = page.refused("sendRequest", message.clone()).await;
    assert!(archived.code == -32602 && archived.message.contains("archived"), "{archived:?}");
    page.get("unarchive", json!({"session": id})).await;
    page.told("changed", row(&id, |row| row["isArchived"] == false)).await;
    page.get("sendRequest", message).await;
    assert_eq!(page.refused("unarchive", json!({"session": local("scripted:/none")})).await.code, -32001);
}

#[tokio::test]
async fn a_session_is_marked_as_unread_and_read() {
    let host = Host::start();
    let (mut page, _) = with_session(&host).await;
    let id = local("scripted:/s");
    page.get("setRead", json!({"session": id, "read": true})).await;
    page.get("setRead", json!({"session": id, "read": false})).await;
    page.told("changed", row(&id, |row| row["isRead"] == false)).await;
    page.get("setRead", json!({"session": id, "read": true})).await;
    page.told("changed", row(&id, |row| row["isRead"] == true)).await;
    assert_eq!(page.refused("setRead", json!({"session": id})).await.code, -32602);
}

#[tokio::test]
async fn a_chat_is_deleted_and_the_last_one_takes_its_session_along() {
    let host = Host::start();
    let (mut page, session) = with_session(&host).await;
    let (id, main) = (local("scripted:/s"), session["chats"][0]["resource"].clone());
    let delete = |chat: &Value| json!({"session": id, "chat": chat});
    assert_eq!(page.get("deleteChat", delete(&json!("x:/y"))).await, json!({"deleted": false}));
    let added = page.get("sendAndCreateChat", json!({"session": id, "query": "script:[]"})).await;
    let chats = added["session"]["chats"].as_array().unwrap();
    assert_eq!(chats.len(), 2, "{added}");
    let second = chats.iter().map(|chat| &chat["resource"]).find(|chat| **chat != main).unwrap();
    let first = page.refused("deleteChat", delete(&main)).await;
    assert!(first.code == -32602 && first.message.contains("main chat"), "{first:?}");
    assert_eq!(page.get("deleteChat", delete(second)).await, json!({"deleted": true}));
    page.told("changed", row(&id, |row| row["chats"].as_array().unwrap().len() == 1)).await;
    assert_eq!(page.get("deleteChat", delete(&main)).await, json!({"deleted": true}));
    page.told("changed", has("removed", &id)).await;
    assert_eq!(page.listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn trust_that_is_taken_back_holds_and_outlives_the_host() {
    let place = TestHome::new();
    let mut host = place.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    let (draft, uri) = draft_in(&mut page, &place, Some(true)).await;
    let listed = || std::fs::read_to_string(place.data().join("trusted-folders.json")).unwrap();
    assert!(listed().contains("project"));
    page.get("answerTrust", json!({"providerId": LOCAL, "folder": uri, "trusted": false})).await;
    assert!(!listed().contains("project"), "{}", listed());
    let untrusted = page.refused("sendAndCreateChat", json!({"session": draft, "query": "x"})).await;
    assert_eq!((untrusted.code, untrusted.data), (-32009, None), "it was answered: nobody is asked again");
    drop(page);
    drop(host);
    host = place.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::V1).await;
    let (draft, _) = draft_in(&mut page, &place, None).await;
    assert_eq!(page.refused("sendAndCreateChat", json!({"session": draft, "query": "x"})).await.code, -32009);
    page.get("answerTrust", json!({"providerId": LOCAL, "folder": uri, "trusted": true})).await;
    page.get("sendAndCreateChat", json!({"session": draft, "query": "script:[]"})).await;
    let nobody = json!({"providerId": "nobody", "folder": uri, "trusted": false});
    assert_eq!(page.refused("answerTrust", nobody).await.code, -32002);
}

#[tokio::test]
async fn folders_of_two_hosts_are_offered_and_chosen_each_by_its_own_action() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let token = near.write("token", &far_host.token);
    let add = near.run(&["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    assert_eq!(add.code, Some(0), "{}", add.stderr);
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    let actions = page.get("browseActions", json!({})).await;
    let mut actions = actions["actions"].as_array().unwrap().clone();
    actions.retain(|action| action["label"] == "Folders");
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert_ne!(actions[0]["providerId"], actions[1]["providerId"]);
    for (action, (place, name)) in actions.iter().zip([(&near, "here"), (&far, "there")]) {
        let folder = place.home().join(name);
        std::fs::create_dir(&folder).unwrap();
        let query = format!("{}/", place.home().display());
        let browse = |more: Value| {
            let mut params = json!({"providerId": action["providerId"], "action": action["id"]});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params
        };
        // The other host may still be connecting.
        let deadline = Deadline::new("the other host does not answer");
        let offered = loop {
            deadline.check();
            match page.call("browse", browse(json!({"query": query}))).await {
                Ok(offered) => break offered,
                Err(error) => assert_eq!(error.code, -32603, "{error:?}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        let offers = offered["offers"].as_array().unwrap();
        assert_eq!((offers.len(), &offers[0]["label"]), (1, &json!(name)), "{offered}");
        assert!(offered.get("workspace").is_none(), "{offered}");
        let chosen = page.get("browse", browse(json!({"chosen": offers[0]["uri"]}))).await;
        assert_eq!((&chosen["workspace"]["uri"], &chosen["offers"]), (&json!(file_uri(&folder)), &json!([])));
        assert!(chosen["workspace"]["label"].as_str().unwrap().starts_with(name), "{chosen}");
        let none = page.get("browse", browse(json!({"chosen": format!("{}-none", file_uri(&folder))}))).await;
        assert_eq!(none, json!({"offers": []}));
    }
    let nobody = json!({"providerId": "nobody", "action": "folders"});
    assert_eq!(page.refused("browse", nobody).await.code, -32002);
    let unknown = json!({"providerId": actions[0]["providerId"], "action": "no-such-action"});
    let refused = page.refused("browse", unknown).await;
    assert_eq!(refused.code, -32602, "{refused:?}");
    assert!(refused.message.contains("no-such-action"), "{refused:?}");
}

#[tokio::test]
async fn what_is_attached_arrives_and_what_is_too_large_costs_nothing_but_itself() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    let (draft, uri) = draft_in(&mut page, &place, Some(true)).await;
    let file = format!("{uri}/notes.txt");
    std::fs::write(place.home().join("project/notes.txt"), "one\ntwo\n").unwrap();
    let pixels = BASE64_STANDARD.encode([137, 80, 78, 71]);
    let image = |data: &str| json!({"kind": "image", "mediaType": "image/png", "data": data});
    let send = |attached: Value| json!({"session": draft, "query": "script:[]", "attachedContext": attached});
    let broken = page.refused("sendAndCreateChat", send(json!([image("no base64!")]))).await;
    assert!(broken.code == -32602 && broken.message.contains("base64"), "{broken:?}");
    // The page's own message is just small enough. The session hub's message is too large for the host.
    let large = page.refused("sendAndCreateChat", send(json!([image(&"A".repeat(4_190_000))]))).await;
    assert!(large.code == -32602 && large.message.contains("a host takes 4177920"), "{large:?}");
    let attached = json!([
        {"kind": "file", "uri": file},
        {"kind": "folder", "uri": uri},
        {"kind": "selection", "uri": file, "firstLine": 2, "lastLine": 2, "text": "two"},
        image(&pixels),
    ]);
    // The new session still exists, on the same connection.
    let sent = page.get("sendAndCreateChat", send(attached)).await;
    let on_host = sent["session"]["resource"].as_str().unwrap().strip_prefix("agent-host-").unwrap().to_owned();
    assert_eq!(resource(&on_host), sent["session"]["resource"].as_str().unwrap());
    let mut client = ahp::Client::connect(&host.ws, &host.token, "looks").await;
    client.initialize(&[]).await;
    let chat = client.follow(&on_host).await;
    client.until(|client| client.chat(&chat).turns.len() == 1).await;
    let message = serde_json::to_value(&client.chat(&chat).turns[0].message).unwrap();
    let attachments = message["attachments"].as_array().unwrap();
    let kinds: Vec<_> = attachments.iter().map(|attached| attached["displayKind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["document", "directory", "selection", "image"], "{message}");
    assert_eq!((&attachments[0]["uri"], &attachments[1]["uri"]), (&json!(file), &json!(uri)));
    assert_eq!(attachments[2]["_meta"]["text"], "two");
    assert_eq!(attachments[2]["selection"]["range"]["start"], json!({"line": 1, "character": 0}));
    assert_eq!((&attachments[3]["data"], &attachments[3]["contentType"]), (&json!(pixels), &json!("image/png")));
}

#[tokio::test]
async fn a_token_without_folders_browses_inside_the_roots() {
    let place = TestHome::new();
    let (root, outside) = (place.path("root"), place.path("outside"));
    std::fs::create_dir_all(root.join("inside")).unwrap();
    std::fs::create_dir_all(outside.join("secret")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    let (root, outside) = (root.display().to_string(), outside.display().to_string());
    let host = place.serve(&["--default-directory", &root, "--browse-root", &root]);
    let added = host.place.run(&["token", "add", "phone", "--can", "read,prompt", "--json"]);
    let added: Value = serde_json::from_str(&added.stdout).unwrap();
    let mut owner = Page::open(&host, "owner", Protocol::Ahp).await;
    let mut phone = Page::with_token(&host, "phone", Protocol::Ahp, added["token"].as_str().unwrap()).await;
    owner.get("subscribe", json!({})).await;
    owner.listed().await;
    // A session in `/` gives the host itself access to everything.
    let everywhere = json!({"channel": "scripted:/s", "workingDirectories": ["file:///"]});
    owner.ask("createSession", everywhere).await.unwrap();
    let browse = |query: &str| json!({"providerId": LOCAL, "action": "folders", "query": query});
    let labels = |offered: &Value| {
        let offers = offered["offers"].as_array().unwrap().iter();
        offers.map(|offer| offer["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&owner.get("browse", browse("link/")).await), ["secret"]);
    assert_eq!(labels(&phone.get("browse", browse("in")).await), ["inside"]);
    assert_eq!(labels(&phone.get("browse", browse(&format!("{root}/in"))).await), ["inside"]);
    assert_eq!(labels(&phone.get("browse", browse("link/")).await), [""; 0], "it leads out of the roots");
    let chosen = json!({"providerId": LOCAL, "action": "folders", "chosen": format!("file://{outside}")});
    for params in [browse(&format!("{outside}/")), browse("/"), browse("../"), chosen] {
        let refused = phone.refused("browse", params).await;
        assert!(refused.code == -32009 && refused.message.contains("`folders`"), "{refused:?}");
    }
}
