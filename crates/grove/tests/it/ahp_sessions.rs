//! Sessions and chats in the Agent Host Protocol: creating, listing, renaming and disposing.

use grove_wire::ahp::{ChatState, Method, ROOT, SessionLifecycle, TurnState, status};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

#[tokio::test]
async fn a_session_may_be_named_as_clients_compute_it_or_plainly_and_is_found_under_both() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    client.create_session("ahp-session:/plain").await.unwrap();
    client.create_session("scripted:/computed").await.unwrap();
    client.get(Method::CreateSession, json!({"channel": "ahp-session:/named", "provider": "scripted"})).await;
    for id in ["plain", "computed", "named"] {
        for uri in [format!("scripted:/{id}"), format!("ahp-session:/{id}")] {
            let chat = client.follow(&uri).await;
            assert_eq!(client.session(&uri).provider, "scripted");
            assert_eq!(client.chat(&chat).resource, chat);
            client.must_agree(&uri).await;
        }
    }
    for used in ["ahp-session:/computed", "scripted:/plain", "scripted:/computed"] {
        let error = client.refused(Method::CreateSession, json!({"channel": used, "provider": "scripted"})).await;
        assert_eq!(error.code, -32003, "{used}: {error}");
    }
    for (uri, provider, code) in [
        ("ahp-session:/x", Some("nobody"), -32002),
        ("scripted:/x", Some("nobody"), -32002),
        ("nobody:/x", None, -32002),
        // It could not be found under the given name.
        ("nobody:/x", Some("scripted"), -32602),
    ] {
        let mut params = json!({"channel": uri});
        if let Some(provider) = provider {
            params["provider"] = json!(provider);
        }
        assert_eq!(client.refused(Method::CreateSession, params).await.code, code, "{uri} of {provider:?}");
    }
    for bad in ["", "nonsense", "scripted:/", "scripted:/../x", "ahp-chat:/x", ROOT, "ahp-terminal:/x"] {
        let error = client.refused(Method::CreateSession, json!({"channel": bad})).await;
        assert_eq!(error.code, -32602, "{bad}: {error}");
    }
}

#[tokio::test]
async fn a_session_begins_with_its_settings_its_directories_and_the_client_that_takes_part() {
    let host = Host::start();
    let folder = file_uri(&host.place.home());
    let mut client = host.ahp("a").await;
    let params = json!({
        "channel": S, "workingDirectories": [folder], "config": {"mode": "ask"},
        "activeClient": active_client("a", &["look"]),
    });
    client.get(Method::CreateSession, params).await;
    client.follow(S).await;
    let session = client.session(S);
    assert_eq!(session.working_directories, Some(vec![folder]));
    assert_eq!(session.config.as_ref().unwrap().values, *json!({"mode": "ask"}).as_object().unwrap());
    assert_eq!(session.active_clients[0].client_id, "a");
    assert_eq!(session.active_clients[0].tools[0].name, "look");
    client.dispatch(S, json!({"type": "session/configChanged", "config": {"mode": "go", "n": 1}})).await;
    client.dispatch(S, json!({"type": "session/configChanged", "config": {"n": 2}, "replace": true})).await;
    client.until(|client| client.session(S).config.as_ref().unwrap().values.len() == 1).await;
    client.must_agree(S).await;

    let other = json!({"channel": "scripted:/t", "activeClient": active_client("b", &[])});
    let error = client.refused(Method::CreateSession, other).await;
    assert_eq!(error.code, -32602, "nobody takes part in another's name: {error}");
    assert_eq!(client.refused(Method::Subscribe, json!({"channel": "scripted:/t"})).await.code, -32001);
}

#[tokio::test]
async fn a_folder_may_be_named_from_the_home_folder_and_a_relative_one_is_refused_before_there_is_a_session() {
    let host = Host::start();
    host.place.write("home/my-project/x", "");
    let mut client = host.ahp("a").await;
    let folder = file_uri(&host.place.home().join("my-project"));
    for (n, named) in ["~/my-project", "~//my-project", "~/my-project/", &folder].into_iter().enumerate() {
        let session = format!("scripted:/n{n}");
        client.get(Method::CreateSession, json!({"channel": session, "workingDirectories": [named]})).await;
        client.follow(&session).await;
        assert_eq!(client.session(&session).working_directories, Some(vec![folder.clone()]), "{named}");
        let found = client.get(Method::ResourceResolve, json!({"channel": ROOT, "uri": named})).await;
        assert_eq!((&found["uri"], &found["type"]), (&json!(folder), &json!("directory")), "{named}");
    }
    for (n, named) in ["~", "~/", "~//"].into_iter().enumerate() {
        let session = format!("scripted:/home{n}");
        client.get(Method::CreateSession, json!({"channel": session, "workingDirectories": [named]})).await;
        client.follow(&session).await;
        let home = file_uri(&host.place.home());
        assert_eq!(client.session(&session).working_directories, Some(vec![home]), "{named}");
    }
    for bad in ["my-project", "./x", "~you/x", "~~", ""] {
        let params = json!({"channel": "scripted:/bad", "workingDirectories": [bad]});
        let error = client.refused(Method::CreateSession, params).await;
        assert_eq!(error.code, -32602, "{bad}: {error}");
        assert!(error.message.contains("nor an absolute path"), "{error}");
    }
    assert_eq!(client.refused(Method::Subscribe, json!({"channel": "scripted:/bad"})).await.code, -32001);
}

#[tokio::test]
async fn a_creation_that_fails_is_told_with_its_error() {
    let host = Host::start();
    let mut first = host.client("v1").await;
    let params = json!({"session": S, "model": "scripted/fails-to-start"});
    first.get("createSession", params).await;
    let mut client = host.ahp("a").await;
    client.subscribe(S).await.unwrap();
    client.until(|client| client.session(S).lifecycle == SessionLifecycle::Failed).await;
    assert!(client.session(S).creation_error.is_some());
    client.must_agree(S).await;
    let reason = client.rejected(CHAT, grove_testkit::ahp::turn_started("t", "go")).await;
    assert!(reason.contains("dispose it"), "{reason}");
}

#[tokio::test]
async fn lists_are_told_in_pages_the_newest_change_first() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    for n in 0..5 {
        client.ready_session(&format!("scripted:/s{n}")).await;
    }
    let main = client.session("scripted:/s2").default_chat.clone().unwrap();
    client.run_script(&main, "t", json!([{"say": "hello"}])).await;
    async fn all(client: &mut grove_testkit::ahp::Client, limit: u64) -> Vec<String> {
        let mut found = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut params = on_root(json!({"limit": limit}));
            if !cursor.is_null() {
                params["cursor"] = cursor;
            }
            let page = client.get(Method::ListSessions, params).await;
            let items = page["items"].as_array().unwrap();
            assert!(items.len() as u64 <= limit);
            found.extend(items.iter().map(|item| item["resource"].as_str().unwrap().to_owned()));
            match page.get("nextCursor") {
                Some(next) => cursor = next.clone(),
                None => return found,
            }
        }
    }
    let whole = all(&mut client, 100).await;
    assert_eq!((whole.len(), whole[0].as_str()), (5, "scripted:/s2"));
    for limit in [1, 2, 5] {
        assert_eq!(all(&mut client, limit).await, whole);
    }
    for cursor in ["", "x", "12", "-1:s0", "99999999999999999999:s0"] {
        let error = client.refused(Method::ListSessions, on_root(json!({"cursor": cursor}))).await;
        assert_eq!(error.code, -32602, "{cursor}");
    }
    let host = host.stop().serve(&[]);
    let mut client = host.ahp("b").await;
    assert_eq!(all(&mut client, 2).await, whole, "also of what is not loaded");
    let row = &client.get(Method::ListSessions, on_root(json!({}))).await["items"][0];
    assert_eq!((&row["provider"], &row["status"]), (&json!("scripted"), &json!(status::IDLE)));
    assert_eq!(row["chats"][0]["resource"], row["defaultChat"]);
}

#[tokio::test]
async fn lists_are_told_of_changes_where_the_root_is_subscribed_to() {
    let host = Host::start();
    let mut deaf = host.ahp("deaf").await;
    let mut client = host.ahp_connect("a").await;
    client.initialize(&[ROOT]).await;
    let mut doer = host.ahp_with_session("doer").await;
    client.until(|client| client.told("root/sessionAdded").len() == 1).await;
    let added = client.told("root/sessionAdded")[0].clone();
    assert_eq!((&added["channel"], &added["summary"]["resource"]), (&json!(ROOT), &json!(S)));
    client.until(|client| client.root().active_sessions == Some(1)).await;

    doer.run_script(CHAT, "t", json!([{"title": "Named"}, {"tool": {"name": "sh", "output": "x"}}])).await;
    doer.dispatch(S, json!({"type": "session/isReadChanged", "isRead": true})).await;
    doer.dispatch(S, json!({"type": "session/isArchivedChanged", "isArchived": true})).await;
    let changes = |client: &grove_testkit::ahp::Client, name: &str| -> Vec<Value> {
        let changed = client.told("root/sessionSummaryChanged");
        changed.iter().filter_map(|params| params["changes"].get(name).cloned()).collect()
    };
    let archived = status::IDLE | status::IS_READ | status::IS_ARCHIVED;
    client.until(|client| changes(client, "status").contains(&json!(archived))).await;
    assert!(changes(&client, "title").contains(&json!("Named")));
    assert!(changes(&client, "status").contains(&json!(status::IN_PROGRESS)));
    for changed in client.told("root/sessionSummaryChanged") {
        assert_eq!(changed["session"], S);
        for identity in ["resource", "provider", "createdAt"] {
            assert_eq!(changed["changes"].get(identity), None, "{changed}");
        }
    }
    let last = client.get(Method::ListSessions, on_root(json!({}))).await["items"][0].clone();
    for name in ["title", "status", "modifiedAt", "chats"] {
        assert_eq!(changes(&client, name).last(), Some(&last[name]), "what was told last of {name} is so");
    }

    doer.get(Method::DisposeSession, json!({"channel": S})).await;
    client.until(|client| !client.told("root/sessionRemoved").is_empty()).await;
    assert_eq!(client.told("root/sessionRemoved")[0], &json!({"channel": ROOT, "session": S}));
    client.until(|client| client.root().active_sessions == Some(0)).await;
    client.must_agree(ROOT).await;
    assert_eq!(doer.refused(Method::DisposeSession, json!({"channel": S})).await.code, -32001);
    assert_eq!(doer.refused(Method::Subscribe, json!({"channel": CHAT})).await.code, -32008);
    deaf.barrier().await;
    assert_eq!(deaf.notifications, []);
}

#[tokio::test]
async fn each_client_is_told_of_a_session_by_the_name_that_it_uses() {
    let host = Host::start();
    let mut computed = host.ahp_connect("computed").await;
    computed.initialize(&[ROOT]).await;
    assert_eq!(computed.ready_session(S).await, CHAT);
    let mut plain = host.ahp_connect("plain").await;
    plain.initialize(&[ROOT]).await;
    assert_eq!(plain.follow(PLAIN).await, PLAIN_CHAT);
    plain.script(PLAIN_CHAT, "t", json!([{"tool": {"name": "sh", "permission": "shell"}}])).await;
    for (client, session, chat) in [(&mut computed, S, CHAT), (&mut plain, PLAIN, PLAIN_CHAT)] {
        client.until(|client| client.session(session).input_needed.is_some()).await;
        let needed = serde_json::to_value(client.session(session).input_needed.as_ref().unwrap()).unwrap();
        assert_eq!(needed[0]["chat"], chat);
        assert_eq!(client.session(session).chats[0].resource, chat);
        let is_theirs = |channel: &String| [ROOT, session, chat].contains(&channel.as_str());
        assert!(client.envelopes.iter().map(|envelope| &envelope.channel).all(is_theirs));
        let row = client.get(Method::ListSessions, on_root(json!({}))).await["items"][0].clone();
        assert_eq!((&row["resource"], &row["defaultChat"]), (&json!(session), &json!(chat)));
        assert_eq!(row["chats"][0]["resource"], chat);
        let told = client.told("root/sessionSummaryChanged");
        assert_eq!(told.last().unwrap()["session"], session);
        client.must_agree_on_all().await;
    }
    plain
        .dispatch(
            PLAIN_CHAT,
            json!({
                "type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "t-call-0", "approved": true,
                "confirmed": "user-action",
            }),
        )
        .await;
    assert_eq!(computed.turn_end(CHAT, "t").await, plain.turn_end(PLAIN_CHAT, "t").await);
}

#[tokio::test]
async fn a_chats_name_may_be_computed_from_its_sessions_plain_one() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    client.create_session(PLAIN).await.unwrap();
    client.subscribe(PLAIN).await.unwrap();
    // The main chat of `ahp-session:/s`.
    let chat = "ahp-chat://default/YWhwLXNlc3Npb246L3M";
    client.subscribe(chat).await.unwrap();
    assert_eq!(client.chat(chat).resource, chat);
    client.run_script(chat, "t", json!([{"say": "heard under this name"}])).await;
    client.must_agree_on_all().await;
    let row = client.get(Method::ListSessions, on_root(json!({}))).await["items"][0].clone();
    assert_eq!(row["resource"], PLAIN);
    client.cut().await;
    host.ahp_subscriber("b").await.run_script(CHAT, "u", json!([{"say": "missed"}])).await;
    host.ahp_reconnect(&mut client).await;
    assert_eq!(client.chat(chat).turns.len(), 2);
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_chat_that_is_plainly_named_changes_nothing_about_its_sessions_name() {
    let host = Host::start();
    let mut client = host.ahp_connect("a").await;
    client.initialize(&[ROOT]).await;
    client.ready_session(S).await;
    client.get(Method::CreateChat, json!({"channel": S, "chat": "ahp-chat:/side"})).await;
    client.subscribe("ahp-chat:/side").await.unwrap();
    client.run_script("ahp-chat:/side", "t", json!([{"say": "aside"}])).await;
    client.barrier().await;
    assert_eq!(client.told("root/sessionSummaryChanged").last().unwrap()["session"], S);
    let row = client.get(Method::ListSessions, on_root(json!({}))).await["items"][0].clone();
    assert_eq!((&row["resource"], &row["chats"][1]["resource"]), (&json!(S), &json!("ahp-chat:/side")));
    // Another name for it gets no notifications, so it cannot be subscribed.
    let alias = json!({"channel": "ahp-chat://side/c2NyaXB0ZWQ6L3M"});
    assert_eq!(client.refused(Method::Subscribe, alias).await.code, -32008);
}

const SIDE: &str = "ahp-chat://side/c2NyaXB0ZWQ6L3M";

#[tokio::test]
async fn chats_of_a_session_run_beside_one_another_and_last() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.get(Method::CreateChat, json!({"channel": S, "chat": SIDE})).await;
    let first = json!({"text": r#"script:[{"say":"at once"}]"#, "origin": {"kind": "user"}});
    client.get(Method::CreateChat, json!({"channel": S, "chat": "ahp-chat:/third", "initialMessage": first})).await;
    client.until(|client| client.session(S).chats.len() == 3).await;
    let resources: Vec<String> = client.session(S).chats.iter().map(|chat| chat.resource.clone()).collect();
    assert_eq!(resources, [CHAT, SIDE, "ahp-chat:/third"]);
    client.subscribe(SIDE).await.unwrap();
    client.subscribe("ahp-chat:/third").await.unwrap();
    client.until(|client| client.chat("ahp-chat:/third").turns.len() == 1).await;
    for used in [SIDE, "ahp-chat:/side", CHAT, PLAIN_CHAT, "ahp-chat:/third"] {
        let error = client.refused(Method::CreateChat, json!({"channel": S, "chat": used})).await;
        assert_eq!(error.code, -32010, "{used}: {error}");
    }
    for no_chat in ["nonsense", S] {
        let error = client.refused(Method::CreateChat, json!({"channel": S, "chat": no_chat})).await;
        assert_eq!(error.code, -32602, "{no_chat}: {error}");
        assert!(error.message.contains("is not a chat's URI"), "{error}");
    }
    let nowhere = json!({"channel": "scripted:/none", "chat": "ahp-chat:/x"});
    assert_eq!(client.refused(Method::CreateChat, nowhere).await.code, -32001);
    let forked = json!({"channel": S, "chat": "ahp-chat:/x", "source": {"kind": "fork", "chat": CHAT, "turnId": "t"}});
    assert_eq!(client.refused(Method::CreateChat, forked).await.code, -32602);

    client.script(CHAT, "main-1", json!([{"say": "a"}, {"ask": "go on?"}])).await;
    client.script(SIDE, "side-1", json!([{"say": "b"}, {"ask": "go on?"}])).await;
    client.until(|client| client.session(S).input_needed.as_ref().is_some_and(|needed| needed.len() == 2)).await;
    assert!(client.chat(CHAT).active_turn.is_some() && client.chat(SIDE).active_turn.is_some(), "both run at once");
    for (chat, turn) in [(SIDE, "side-1"), (CHAT, "main-1")] {
        let answers = json!({"answer": {"state": "submitted", "value": {"kind": "text", "value": "yes"}}});
        client
            .dispatch(
                chat,
                json!({
                    "type": "chat/inputCompleted", "requestId": format!("{turn}-ask-1"), "response": "accept",
                    "answers": answers,
                }),
            )
            .await;
        assert_eq!(client.turn_end(chat, turn).await.state, TurnState::Complete);
    }
    client.barrier().await;
    client.must_agree_on_all().await;

    // A chat's title is sent on the session's channel.
    let titles: Vec<String> = client.session(S).chats.iter().map(|chat| chat.title.clone()).collect();
    let chats = [CHAT, SIDE, "ahp-chat:/third"].into_iter().zip(titles);
    let seen: Vec<_> = chats.map(|(uri, title)| ChatState { title, ..client.chat(uri).clone() }).collect();
    let host = host.stop().serve(&[]);
    let mut client = host.ahp("b").await;
    for chat in seen {
        let state = serde_json::to_value(client.subscribe(&chat.resource.clone()).await.unwrap().state).unwrap();
        assert_eq!(state, serde_json::to_value(&chat).unwrap(), "it is there after a restart");
    }
    client.follow(S).await;
    client.run_script(SIDE, "side-2", json!([{"say": "and goes on"}])).await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_chat_that_is_disposed_goes_under_the_name_that_it_had() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut plain = host.ahp("plain").await;
    plain.follow(PLAIN).await;
    client.get(Method::CreateChat, json!({"channel": S, "chat": SIDE})).await;
    client.subscribe(SIDE).await.unwrap();
    client.script(SIDE, "t", json!([{"hang": true}])).await;
    client.until(|client| client.chat(SIDE).active_turn.is_some()).await;
    client.get(Method::DisposeChat, json!({"channel": SIDE})).await;
    client.until(|client| client.session(S).chats.len() == 1).await;
    let removed = client.envelopes.iter().find(|envelope| envelope.action["type"] == "session/chatRemoved").unwrap();
    assert_eq!(removed.action["chat"], SIDE);
    assert_eq!(client.chat(SIDE).turns[0].state, TurnState::Cancelled, "its turn ended first");
    client.must_agree(S).await;
    plain
        .until(|plain| plain.session(PLAIN).chats.len() == 1 && plain.kinds(PLAIN).contains(&"session/chatRemoved"))
        .await;
    plain.must_agree(PLAIN).await;
    assert_eq!(client.refused(Method::Subscribe, json!({"channel": SIDE})).await.code, -32008);
    assert_eq!(client.refused(Method::DisposeChat, json!({"channel": SIDE})).await.code, -32008);
    assert_eq!(client.refused(Method::DisposeChat, json!({"channel": CHAT})).await.code, -32600, "the main one stays");
    assert_eq!(client.refused(Method::DisposeChat, json!({"channel": S})).await.code, -32008);
    client.get(Method::CreateChat, json!({"channel": S, "chat": SIDE})).await;
    client.subscribe(SIDE).await.unwrap();
    assert_eq!(client.chat(SIDE).turns, [], "a new one of that name is new");
    client.run_script(SIDE, "u", json!([{"say": "new"}])).await;
    let host = host.stop().serve(&[]);
    let mut client = host.ahp("b").await;
    client.subscribe(SIDE).await.unwrap();
    assert_eq!(client.chat(SIDE).turns.len(), 1);
}

#[tokio::test]
async fn titles_and_flags_are_a_persons_to_change() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_subscriber("b").await;
    client.dispatch(S, json!({"type": "session/titleChanged", "title": "By hand"})).await;
    // Some clients rename a session on its chat's channel.
    client.dispatch(CHAT, json!({"type": "session/titleChanged", "title": "By chat"})).await;
    client.dispatch(S, json!({"type": "session/isArchivedChanged", "isArchived": true})).await;
    client.dispatch(CHAT, json!({"type": "chat/isArchivedChanged", "isArchived": true})).await;
    client.run_script(CHAT, "t", json!([{"say": "x"}])).await;
    other.turn_end(CHAT, "t").await;
    assert_eq!(other.chat(CHAT).status & status::IS_READ, 0, "a turn leaves something to read");
    assert_eq!(other.session(S).status & status::IS_READ, 0);
    client.dispatch(CHAT, json!({"type": "chat/isReadChanged", "isRead": true})).await;
    client.dispatch(S, json!({"type": "session/isReadChanged", "isRead": true})).await;
    let flags = status::IS_READ | status::IS_ARCHIVED;
    for client in [&mut client, &mut other] {
        client.until(|client| client.session(S).status & flags == flags).await;
        assert_eq!(client.chat(CHAT).status & flags, flags);
        assert_eq!(client.session(S).chats[0].status & flags, flags, "the row says so too");
        assert_eq!(
            (client.session(S).title.as_str(), client.session(S).chats[0].title.as_str()),
            ("By chat", "By chat")
        );
        client.must_agree_on_all().await;
    }
}

#[tokio::test]
async fn a_session_is_the_same_after_a_restart() {
    let host = Host::start();
    let folder = file_uri(&host.place.home());
    let mut client = host.ahp("a").await;
    let params = json!({
        "channel": S, "workingDirectories": [folder], "config": {"mode": "ask"},
        "activeClient": active_client("a", &["look"]),
    });
    client.get(Method::CreateSession, params).await;
    client.follow(S).await;
    client.get(Method::CreateChat, json!({"channel": S, "chat": SIDE})).await;
    client.subscribe(SIDE).await.unwrap();
    let script = json!([
        {"reason": "hm"}, {"say": "text", "chunks": 2}, {"tool": {"name": "ls", "input": "-a", "output": "x"}},
        {"part": {"mimeType": "image/png", "base64": "iVBORw0KGgo="}}, {"title": "Named"},
        {"usage": {"inputTokens": 3, "outputTokens": 5}}, {"fail": "on purpose"},
    ]);
    client.run_script(CHAT, "t", script.clone()).await;
    let message = json!({
        "text": "script:[]", "origin": {"kind": "user"}, "model": {"id": "scripted", "config": {"effort": "high"}},
        "attachments": [
            {"type": "resource", "label": "b", "uri": "file:///b", "displayKind": "document"},
            {"type": "simple", "label": "a", "modelRepresentation": "words"},
        ],
        "_meta": {"k": 1},
    });
    client
        .dispatch(
            SIDE,
            json!({
                "type": "chat/turnStarted", "turnId": "u", "startedAt": "2026-10-10T10:00:00.000Z", "message": message,
            }),
        )
        .await;
    client.turn_end(SIDE, "u").await;
    client.dispatch(SIDE, json!({"type": "chat/draftChanged", "draft": message})).await;
    client.dispatch(SIDE, json!({"type": "chat/isReadChanged", "isRead": true})).await;
    client.dispatch(S, json!({"type": "session/isArchivedChanged", "isArchived": true})).await;
    let seq = client.dispatch(S, json!({"type": "session/configChanged", "config": {"n": 1}})).await;
    client.answer_to(seq).await;
    client.must_agree_on_all().await;
    let mut seen = Vec::new();
    for uri in [S, CHAT, SIDE] {
        seen.push(client.subscribe(uri).await.unwrap().state);
    }
    let list = client.get(Method::ListSessions, on_root(json!({}))).await;
    let host = host.stop().serve(&[]);
    let mut client = host.ahp("b").await;
    assert_eq!(client.get(Method::ListSessions, on_root(json!({}))).await, list);
    for (uri, seen) in [S, CHAT, SIDE].into_iter().zip(seen) {
        let state = client.subscribe(uri).await.unwrap().state;
        assert_eq!(serde_json::to_value(state).unwrap(), serde_json::to_value(seen).unwrap(), "{uri}");
    }
}
