//! Isolation: content stays off this disk, facts of this machine away from the storage client, and sessions away from
//! other hosts.

use grove_fs::{MemoryFs, SessionFs};
use grove_host::Config;
use grove_wire::ahp::ToolCallState;
use serde_json::{Value, json};

use super::{URI, asks, begun, lent, quiet};
use crate::harness::TestHost;
use crate::storage_client;

/// Everything on this host's disk.
async fn disk(host: &TestHost) -> Vec<u8> {
    async fn all(fs: &MemoryFs, folder: String, bytes: &mut Vec<u8>) {
        for entry in fs.readdir_with_types(&folder).await.unwrap() {
            let path = if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
            bytes.extend(path.as_bytes());
            match entry.kind {
                grove_fs::FileKind::Folder => Box::pin(all(fs, path, bytes)).await,
                _ => bytes.extend(fs.read_file(&path).await.unwrap()),
            }
        }
    }
    let mut bytes = host.journal.bytes.lock().unwrap().clone();
    for fs in [&host.sessions, &host.other, &host.register] {
        all(fs, String::new(), &mut bytes).await;
    }
    bytes
}

#[tokio::test(start_paused = true)]
async fn the_disk_has_no_word_of_an_entrusted_session_also_after_a_clean_stop() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "turn-id", json!([{"say": "secret-answer"}, {"title": "secret-title"}])).await;
    let (_, approve) = asks(&mut client, &chat, "t2").await;
    client.dispatch(&chat, approve).await;
    client.turn_end(&chat, "t2").await;
    let plan = json!({"channel": URI, "content": "secret-plan"});
    client.ask("x-grove/workspace/plan/update", plan).await.ok();
    client.run_script(&chat, "t3", json!([{"say": "secret ".repeat(20_000)}])).await;
    quiet(&storage_client).await;
    let fork = host.host.fork_client_stored(&lent(), &"s".into(), None, Some("secret-fork".into())).await.unwrap();
    host.host.stop().await;
    let check = async |host: &TestHost, when: &str| {
        let disk = String::from_utf8_lossy(&disk(host).await).into_owned();
        for word in ["secret", "hello", "/state", "/virtual", "make", "it ran", "turn-id", "scripted:/s"] {
            assert!(!disk.contains(word), "{when}: {word} is in {disk}");
        }
        assert!(disk.contains(fork.as_str()), "what is known is known");
    };
    check(&host, "after a stop").await;
    assert!(storage_client.log("s").await.contains("secret-answer"));
    host.kill_and_restart(Config::default()).await;
    assert_eq!(host.host.status().await.unwrap().sessions, 0, "recovery knows nothing of it");
    check(&host, "after a restart").await;
    assert_eq!(host.host.client_storage(&lent()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_not_told_where_works_where_its_provider_says() {
    let (host, storage_client, client, _chat) = begun().await;
    let state = serde_json::to_value(client.session(URI)).unwrap();
    assert!(state.to_string().contains("/virtual/project"), "{state}");
    let mut other = host.ahp("b").await;
    other.ask("resourceList", json!({"channel": "ahp-root://", "uri": "file:///virtual"})).await.unwrap_err();
    for asked in storage_client.asked() {
        for path in ["path", "src", "dest"].into_iter().filter_map(|name| asked.params[name].as_str()) {
            assert!(path == "/state" || path.starts_with("/state/"), "{} {}", asked.method, asked.params);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_entrusted_session_stays_where_it_is() {
    let (host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    for (method, store) in [("x-grove/migrate", "local"), ("x-grove/fork", "local"), ("x-grove/fork", "lent")] {
        let refused = client.ask(method, json!({"channel": URI, "store": store})).await.unwrap_err();
        assert!(refused.message.contains("the store of a storage client"), "{method}: {}", refused.message);
    }
    assert!(host.host.set_default_store(&lent()).is_err());
    quiet(&storage_client).await;
    let busy =
        host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap_err();
    assert!(busy.to_string().contains("sessions are active"), "{busy}");
    assert_eq!(host.sessions.readdir("").await.unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_session_at_a_provider_does_not_go_to_another_host() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "hello there"}])).await;
    quiet(&storage_client).await;
    client.barrier().await;
    let (log, before) = (storage_client.log("s").await, client.session(URI).clone());
    let to = json!({"host": "lab", "session": URI, "stamp": "x"});
    for (method, mut params) in
        [("files", json!({})), ("read", json!({"path": "events.jsonl", "offset": 0})), ("leave", json!({"to": to}))]
    {
        params["channel"] = json!(URI);
        let refused = client.ask(&format!("x-grove/handover/{method}"), params).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{method}: {refused}");
        assert!(refused.message.contains("this session is stored by a client"), "{refused}");
        assert!(refused.message.contains("export its conversation"), "{refused}");
    }
    quiet(&storage_client).await;
    client.barrier().await;
    assert_eq!((storage_client.log("s").await, client.session(URI).clone()), (log, before), "nothing has changed");
    client.run_script(&chat, "t2", json!([{"say": "it goes on"}])).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_storage_client_hands_back_allows_nothing_and_opens_no_folder_but_its_own() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    quiet(&storage_client).await;
    host.kill_and_restart(Config::default()).await;
    let files = storage_client.open("s");
    let mut file: Value = serde_json::from_slice(&files.read_file("state/session.json").await.unwrap()).unwrap();
    let always = json!({"id": "a", "label": "Always", "allows": true, "lasting": true});
    file["details"]["permissions"] = json!({"allowAll": true});
    file["details"]["remembered"] = json!([{"kind": "shell", "about": "sh", "option": always}]);
    file["workingDirectories"] = json!(["file:///", "file:///virtual/project/below", "file:///virtual/projects"]);
    files.write_file("state/session.json", &serde_json::to_vec(&file).unwrap()).await.unwrap();

    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
    let mut client = host.ahp("late").await;
    let chat = client.follow(URI).await;
    assert_eq!(client.session(URI).working_directories, Some(vec!["file:///virtual/project/below".to_owned()]));
    client.ask("resourceList", json!({"channel": "ahp-root://", "uri": "file:///"})).await.unwrap_err();
    let allowed = client.ask("x-grove/permissions", json!({"channel": URI})).await.unwrap();
    assert_eq!((&allowed["allowAll"], &allowed["remembered"]), (&json!(false), &json!([])), "{allowed}");
    // A person is asked: with what the file says, the tool would run at once.
    client.script(&chat, "t2", json!([{"tool": {"name": "sh", "permission": "shell"}}, {"say": "done"}])).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
}

#[tokio::test(start_paused = true)]
async fn the_folder_of_a_session_that_a_client_stores_is_set_by_that_client_alone() {
    let (_host, _lender, mut client, _chat) = begun().await;
    let set = json!({"channel": URI, "directory": "/"});
    let refused = client.ask("x-grove/setWorkingDirectory", set).await.unwrap_err();
    assert_eq!(refused.code, -32602, "{refused}");
    assert!(refused.message.contains("it names the working directory when it resumes"), "{refused}");
}
