//! Files and contents in the Agent Host Protocol, within the host's limits.

use std::os::unix::fs::symlink;

use grove_testkit::ahp::{Client, contents};
use grove_wire::ahp::{Method, SnapshotState};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

async fn get(client: &mut Client, method: Method, uri: &str) -> Value {
    client.get(method, on_root(json!({"uri": uri}))).await
}

async fn code(client: &mut Client, method: Method, uri: &str) -> i64 {
    client.refused(method, on_root(json!({"uri": uri}))).await.code
}

#[tokio::test]
async fn files_inside_the_roots_are_listed_read_and_resolved() {
    let host = Host::start();
    let home = host.place.home();
    host.place.write("home/notes.txt", "a note");
    host.place.write("home/bytes.bin", [0xff, 0x00, 0xfe]);
    host.place.write("home/src/main.rs", "m");
    symlink(home.join("src"), home.join("shortcut")).unwrap();
    let mut client = host.ahp("a").await;
    let uri = |name: &str| file_uri(&home.join(name));
    let entry = |name: &str, kind: &str| json!({"name": name, "type": kind});
    assert_eq!(
        get(&mut client, Method::ResourceList, &file_uri(&home)).await,
        json!({"entries": [
            entry("bytes.bin", "file"), entry("notes.txt", "file"), entry("shortcut", "directory"),
            entry("src", "directory"),
        ]})
    );
    // Contents of files are only for sessions that work there.
    assert_eq!(code(&mut client, Method::ResourceRead, &uri("notes.txt")).await, -32009);
    let may_read = |name: &str| on_root(json!({"uri": uri(name), "read": true}));
    assert_eq!(client.refused(Method::ResourceRequest, may_read("notes.txt")).await.code, -32009);
    client.get(Method::ResourceRequest, may_read("src")).await;
    client.get(Method::CreateSession, json!({"channel": S, "workingDirectories": [file_uri(&home)]})).await;
    client.get(Method::ResourceRequest, may_read("notes.txt")).await;
    let read = get(&mut client, Method::ResourceRead, &uri("notes.txt")).await;
    assert_eq!((&read["data"], &read["encoding"]), (&json!("a note"), &json!("utf-8")));
    let params = on_root(json!({"uri": uri("notes.txt"), "encoding": "base64"}));
    let read = client.get(Method::ResourceRead, params).await;
    assert_eq!((&read["data"], &read["encoding"]), (&json!("YSBub3Rl"), &json!("base64")));
    let read = get(&mut client, Method::ResourceRead, &uri("bytes.bin")).await;
    assert_eq!((&read["data"], &read["encoding"]), (&json!("/wD+"), &json!("base64")));

    let found = get(&mut client, Method::ResourceResolve, &uri("notes.txt")).await;
    assert_eq!((&found["type"], &found["size"], &found["uri"]), (&json!("file"), &json!(6), &json!(uri("notes.txt"))));
    assert!(found["mtime"].as_str().unwrap().ends_with('Z') && found["etag"].is_string());
    let found = get(&mut client, Method::ResourceResolve, &uri("shortcut")).await;
    assert_eq!((&found["type"], &found["uri"]), (&json!("directory"), &json!(uri("src"))));
    let params = on_root(json!({"uri": uri("shortcut"), "followSymlinks": false}));
    assert_eq!(client.get(Method::ResourceResolve, params).await["type"], "symlink");

    for method in [Method::ResourceList, Method::ResourceRead, Method::ResourceResolve, Method::ResourceRequest] {
        assert_eq!(code(&mut client, method, &uri("none")).await, -32008, "{}", method.as_str());
        assert_eq!(code(&mut client, method, "http://localhost/x").await, -32602);
        assert_eq!(code(&mut client, method, "nonsense").await, -32602);
    }
    assert_eq!(code(&mut client, Method::ResourceList, &uri("notes.txt")).await, -32602);
    assert_eq!(code(&mut client, Method::ResourceRead, &uri("src")).await, -32602);
    get(&mut client, Method::ResourceRequest, &uri("notes.txt")).await;
    let write = |name: &str| on_root(json!({"uri": uri(name), "data": "changed", "encoding": "utf-8"}));
    assert_eq!(client.refused(Method::ResourceWrite, write("notes.txt")).await.code, -32009);
    client.get(Method::ResourceRequest, on_root(json!({"uri": uri("notes.txt"), "write": true}))).await;
    client.get(Method::ResourceWrite, write("notes.txt")).await;
    assert_eq!(std::fs::read_to_string(home.join("notes.txt")).unwrap(), "changed");
    assert_eq!(client.refused(Method::ResourceWrite, write("shortcut")).await.code, -32009);
}

#[tokio::test]
async fn nothing_outside_the_roots_is_seen_not_even_whether_it_is_there() {
    let host = Host::start();
    let home = host.place.home();
    let outside = host.place.write("outside/secret", "s");
    symlink(host.place.path("outside"), home.join("way-out")).unwrap();
    symlink(host.place.path("nowhere"), home.join("leads-nowhere")).unwrap();
    let mut client = host.ahp("a").await;
    let data = host.place.data().join("token");
    let paths = [
        outside.clone(),
        host.place.path("none-such"),
        "/etc/passwd".into(),
        home.join("../outside/secret"),
        home.join("way-out/secret"),
        home.join("leads-nowhere"),
        data,
    ];
    for path in paths {
        for method in [
            Method::ResourceList,
            Method::ResourceRead,
            Method::ResourceResolve,
            Method::ResourceRequest,
            Method::CreateResourceWatch,
        ] {
            let code = code(&mut client, method, &file_uri(&path)).await;
            assert_eq!(code, -32009, "{} {}", method.as_str(), path.display());
        }
    }
    // A session gives access to its folder for as long as it exists.
    let folder = file_uri(outside.parent().unwrap());
    client.get(Method::CreateSession, json!({"channel": S, "workingDirectories": [folder]})).await;
    assert_eq!(get(&mut client, Method::ResourceRead, &file_uri(&outside)).await["data"], "s");
    client.get(Method::DisposeSession, json!({"channel": S})).await;
    assert_eq!(code(&mut client, Method::ResourceRead, &file_uri(&outside)).await, -32009);
}

#[tokio::test]
async fn a_watch_tells_what_changes_to_whoever_made_it() {
    let host = Host::start();
    let home = host.place.home();
    let mut client = host.ahp("a").await;
    let params = on_root(json!({
        "uri": file_uri(&home), "recursive": true, "excludes": {"items": ["**/target/**"]},
    }));
    let params = match client.call::<Value>(Method::CreateResourceWatch, params.clone()).await {
        Ok(result) => result,
        Err(error) => panic!("{params}: {error}"),
    };
    let channel = params["channel"].as_str().unwrap().to_owned();
    host.place.write("home/before.txt", "seen though nobody listened yet");
    client.subscribe(&channel).await.unwrap();
    match &client.states[&channel] {
        SnapshotState::ResourceWatch(watch) => {
            assert_eq!((watch.root.as_str(), watch.recursive), (file_uri(&home).as_str(), true))
        }
        other => panic!("{other:?}"),
    }
    let changed = |client: &Client, name: &str, kind: &str| {
        let uri = file_uri(&host.place.home().join(name));
        let mut changes = client.envelopes.iter().filter(|envelope| envelope.channel == channel).flat_map(|envelope| {
            assert_eq!(envelope.action["type"], "resourceWatch/changed");
            envelope.action["changes"]["items"].as_array().unwrap()
        });
        changes.any(|change| change["uri"] == uri && change["type"] == kind)
    };
    client.until(|client| changed(client, "before.txt", "added")).await;
    host.place.write("home/deep/file.txt", "x");
    client.until(|client| changed(client, "deep/file.txt", "added") || changed(client, "deep", "added")).await;
    host.place.write("home/target/ignored", "x");
    std::fs::write(home.join("before.txt"), "more").unwrap();
    client.until(|client| changed(client, "before.txt", "updated")).await;
    std::fs::remove_file(home.join("before.txt")).unwrap();
    client.until(|client| changed(client, "before.txt", "deleted")).await;
    assert!(!changed(&client, "target/ignored", "added"));
    client.must_agree(&channel).await;

    let mut other = host.ahp("b").await;
    assert_eq!(other.refused(Method::Subscribe, json!({"channel": channel})).await.code, -32008);
    client.unsubscribe(&channel).await;
    assert_eq!(
        client.refused(Method::Subscribe, json!({"channel": channel})).await.code,
        -32008,
        "it went with its last"
    );
}

#[tokio::test]
async fn a_body_that_a_turn_refers_to_is_read_as_a_resource() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let script = json!([
        {"part": {"mimeType": "image/png", "base64": "iVBORw0KGgo="}},
        {"tool": {"name": "cat", "output": "0123456789", "repeat": 20_000}},
    ]);
    let turn = client.run_script(CHAT, "t", script).await;
    let found = contents(&turn.response_parts);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].content_type.as_deref(), found[0].size_hint), (Some("image/png"), Some(8)));
    let read = get(&mut client, Method::ResourceRead, &found[0].uri).await;
    assert_eq!((&read["data"], &read["encoding"]), (&json!("iVBORw0KGgo="), &json!("base64")));
    assert_eq!(read["contentType"], "image/png");
    let read = get(&mut client, Method::ResourceRead, &found[1].uri).await;
    assert_eq!(read["data"].as_str().unwrap(), "0123456789".repeat(20_000));
    client.must_agree_on_all().await;
    let uri = found[0].uri.clone();
    let host = host.stop().serve(&[]);
    let mut client = host.ahp("b").await;
    assert_eq!(get(&mut client, Method::ResourceRead, &uri).await["data"], "iVBORw0KGgo=");
    assert_eq!(code(&mut client, Method::ResourceRead, "grove-content://s/none").await, -32008);
}

#[tokio::test]
async fn a_reference_is_completed_with_what_lies_in_the_sessions_folder() {
    let host = Host::start();
    host.place.write("home/src/main.rs", "m");
    host.place.write("home/src/map.rs", "m");
    host.place.write("home/style.css", "s");
    let mut client = host.ahp("a").await;
    let params = json!({"channel": S, "workingDirectories": [file_uri(&host.place.home())]});
    client.get(Method::CreateSession, params).await;
    client.follow(S).await;
    async fn complete(client: &mut Client, text: &str, offset: usize) -> Vec<(String, u64, u64)> {
        let params = json!({"channel": CHAT, "kind": "userMessage", "text": text, "offset": offset});
        let found = client.get(Method::Completions, params).await;
        let item = |item: &Value| {
            let at = |name: &str| item[name].as_u64().unwrap();
            (item["insertText"].as_str().unwrap().to_owned(), at("rangeStart"), at("rangeEnd"))
        };
        found["items"].as_array().unwrap().iter().map(item).collect()
    }
    let found = complete(&mut client, "see 🌲 @s", 9).await;
    assert_eq!(found, [("@src/".to_owned(), 7, 9), ("@style.css".to_owned(), 7, 9)]);
    let found = complete(&mut client, "@src/ma and more", 7).await;
    assert_eq!(found, [("@src/main.rs".to_owned(), 0, 7), ("@src/map.rs".to_owned(), 0, 7)]);
    for text in ["nothing", "@../", "@/etc/pa", "@src/zzz", "a@s"] {
        assert_eq!(complete(&mut client, text, text.len()).await, [], "{text}");
    }
    let nowhere = json!({"channel": "ahp-chat:/none", "kind": "userMessage", "text": "@", "offset": 1});
    assert_eq!(client.refused(Method::Completions, nowhere).await.code, -32008);
}

#[tokio::test]
async fn settings_are_resolved_for_the_agents_there_are() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    let resolved = client.get(Method::ResolveSessionConfig, on_root(json!({"provider": "scripted"}))).await;
    assert_eq!(resolved, json!({"schema": {"type": "object", "properties": {}}, "values": {}}));
    client.get(Method::ResolveSessionConfig, on_root(json!({"config": {"x": 1}}))).await;
    let error = client.refused(Method::ResolveSessionConfig, on_root(json!({"provider": "nobody"}))).await;
    assert_eq!(error.code, -32002);
    let params = on_root(json!({"provider": "scripted", "property": "x"}));
    assert_eq!(client.get(Method::SessionConfigCompletions, params).await, json!({"items": []}));
    let params = on_root(json!({"resource": "https://example.org", "token": "t"}));
    assert_eq!(client.refused(Method::Authenticate, params).await.code, -32008, "nobody asks for a token");
}
