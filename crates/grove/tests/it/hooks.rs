//! Hooks that are programs: called before and after changes of a session's tree, with their own token.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::support::*;

const URI: &str = "scripted:/s";

/// A program that a shell runs.
fn program(place: &TestHome, name: &str, script: &str) -> PathBuf {
    let path = place.write(name, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A host with one hook, and a client at the second of two answers.
async fn with_hook(place: TestHome, events: &[&str], script: &str) -> (Host, Client, String) {
    let path = program(&place, "hook.sh", script);
    let config = place.write(
        "home/.config/grove/grove.toml",
        format!("[hooks.mine]\nevents = {}\ncommand = [{path:?}]\ntimeout = 10\n", json!(events)),
    );
    assert!(config.exists());
    let host = place.serve(&[]);
    let mut client = Client::connect(&host.ws, &host.token, "a").await;
    client.initialize(&[]).await;
    let chat = client.ready_session(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two")] {
        client.run_script(&chat, turn, json!([{"say": text}])).await;
    }
    (host, client, chat)
}

async fn answer_of(client: &mut Client, text: &str) -> String {
    let rows = client.ask("x-grove/tree", json!({"channel": URI})).await.unwrap();
    let row = rows["rows"].as_array().unwrap().iter().find(|row| row["text"] == text).unwrap().clone();
    row["id"].as_str().unwrap().to_owned()
}

async fn go(client: &mut Client, entry: &str) -> Result<Value, String> {
    let asked = client.ask("x-grove/navigate", json!({"channel": URI, "entry": entry, "summarize": true})).await;
    asked.map_err(|error| error.message)
}

#[tokio::test]
async fn a_program_reads_a_line_and_its_answer_holds() {
    let place = TestHome::new();
    let heard = place.path("heard.json");
    let script = format!(
        "head -n 1 > {}\necho '{{\"summary\": {{\"summary\": \"by a program\", \"details\": {{\"n\": 1}}}}}}'",
        heard.display()
    );
    let (_host, mut client, _) = with_hook(place, &["session_before_tree"], &script).await;
    let one = answer_of(&mut client, "one").await;
    let gone = go(&mut client, &one).await.unwrap();
    let all = client.ask("x-grove/entries", json!({"channel": URI})).await.unwrap();
    let summary = all["entries"].as_array().unwrap().iter().find(|line| line["id"] == gone["summaryEntry"]).unwrap();
    assert_eq!((&summary["summary"], &summary["fromExtension"]), (&json!("by a program"), &json!(true)));
    let told: Value = serde_json::from_slice(&std::fs::read(heard).unwrap()).unwrap();
    assert_eq!((&told["type"], &told["session"]), (&json!("session_before_tree"), &json!(URI)));
    assert_eq!(told["preparation"]["entriesToSummarize"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_program_that_forbids_fails_or_takes_too_long_changes_nothing() {
    for (script, words) in [
        ("echo '{\"cancel\": true, \"reason\": \"guarded\"}'", "the hook mine forbids it: guarded"),
        ("echo broken >&2; exit 3", "broken"),
        ("echo not json", "not a valid JSON object"),
        ("exec sleep 60", "longer than 10 s"),
    ] {
        let (_host, mut client, _) = with_hook(TestHome::new(), &["session_before_tree"], script).await;
        let one = answer_of(&mut client, "one").await;
        let before = client.ask("x-grove/entries", json!({"channel": URI})).await.unwrap();
        let refused = go(&mut client, &one).await.unwrap_err();
        assert!(refused.contains(words), "{refused}");
        assert_eq!(client.ask("x-grove/entries", json!({"channel": URI})).await.unwrap(), before);
    }
}

#[tokio::test]
async fn an_abort_closes_a_programs_stdin_and_ends_it() {
    let place = TestHome::new();
    let (begun, closed) = (place.path("begun"), place.path("closed"));
    // `cat` ends when stdin does.
    let script = format!("head -n 1 > {}; cat > /dev/null; echo > {}", begun.display(), closed.display());
    let (host, mut client, _) = with_hook(place, &["session_before_tree"], &script).await;
    let one = answer_of(&mut client, "one").await;
    let mut other = Client::connect(&host.ws, &host.token, "b").await;
    other.initialize(&[]).await;
    let (refused, ()) = tokio::join!(go(&mut client, &one), async {
        let waits = Deadline::new("the hook does not begin");
        while !begun.exists() {
            waits.check();
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(other.ask("x-grove/abort", json!({"channel": URI})).await.unwrap()["aborted"], true);
    });
    assert!(refused.unwrap_err().contains("nothing has changed"));
    let waits = Deadline::new("the hook's stdin is not closed");
    while !closed.exists() {
        waits.check();
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_does_the_same_with_a_token_that_opens_one_chat_and_ends_with_it() {
    let place = TestHome::new();
    let (answers, token) = (place.path("answers"), place.path("token"));
    let script = format!(
        r#"read line
printf %s "$GROVE_HOOK_TOKEN" > {token}
ask() {{ python3 - "$1" <<'E'
import os, sys, urllib.request
request = urllib.request.Request(os.environ["GROVE_HOOK_URL"], sys.argv[1].encode(),
    {{"Authorization": "Bearer " + os.environ["GROVE_HOOK_TOKEN"], "Content-Type": "application/json"}})
print(urllib.request.urlopen(request).read().decode())
E
}}
ask '{{"jsonrpc": "2.0", "id": 1, "method": "x-grove/navigate", "params": {{"entry": null}}}}' >> {answers}.part
ask '{{"jsonrpc": "2.0", "id": 2, "method": "listSessions", "params": {{}}}}' >> {answers}.part
ask 'nonsense' >> {answers}.part
ask '{{"jsonrpc": "2.0", "id": 3, "method": "x-grove/handover/files", "params": {{}}}}' >> {answers}.part
ask '{{"jsonrpc": "2.0", "id": 4, "method": "x-grove/handover/read", "params": {{"path": "session.json", "offset": 0}}}}' >> {answers}.part
ask '{{"jsonrpc": "2.0", "id": 5, "method": "x-grove/workspace/setPlan", "params": {{"text": "mine"}}}}' >> {answers}.part
ask '{{"jsonrpc": "2.0", "id": 6, "method": "x-grove/migrate", "params": {{"store": "local"}}}}' >> {answers}.part
mv {answers}.part {answers}"#,
        token = token.display(),
        answers = answers.display()
    );
    let (host, mut client, chat) = with_hook(place, &["session_compact"], &script).await;
    client.run_script(&chat, "long", json!([{"say": "word ".repeat(40_000)}])).await;
    client.run_script(&chat, "short", json!([{"say": "end"}])).await;
    client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    client.until(|client| client.chat(&chat).turns.is_empty()).await;
    let waits = Deadline::new("the hook does not end");
    while !answers.exists() {
        waits.check();
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let said = std::fs::read_to_string(&answers).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said[0]["result"], json!({"moved": true, "leaf": null}));
    assert_eq!((&said[1]["error"]["code"], &said[2]["error"]["code"]), (&json!(-32601), &json!(-32700)));
    // It gives no access to the session's files.
    for closed in &said[3..] {
        assert_eq!(closed["error"]["code"], -32009, "{closed}");
    }
    assert_eq!(client.ask("x-grove/workspace/plan", json!({"channel": URI})).await.unwrap()["text"], json!(null));
    // It is valid for nothing else, and expires.
    let token = std::fs::read_to_string(token).unwrap();
    assert_eq!(token.len(), 64);
    let ours = format!("Host: {}", host.address);
    assert_eq!(host.upgrade(&format!("/ws?tkn={token}"), &[&ours]).status, 403);
    let waits = Deadline::new("the token still opens something");
    let body = r#"{"jsonrpc": "2.0", "id": 1, "method": "x-grove/tree", "params": {}}"#;
    let head = format!(
        "POST /x-grove HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        host.address,
        body.len()
    );
    while host.http(&head).status != 403 {
        waits.check();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
