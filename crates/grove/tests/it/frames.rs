//! `grove serve --log-frames`: the log of messages.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::*;

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_frame_is_logged_and_no_secret_is() {
    let place = TestHome::new();
    let path = place.path("frames.jsonl");
    let host = place.serve(&["--log-frames", path.to_str().unwrap()]);
    let token = host.token.clone();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"say": "hello"}])).await;
    client.send_json(request(json!(90), "authenticate", json!({"resource": "r", "token": "hunter2"}))).await;
    client.json().await;
    let deep =
        json!({"headers": [{"Authorization": "Basic hunter3"}, "Bearer hunter4"], "url": format!("?tkn={token}")});
    client.send_json(request(json!(91), "nonsense", deep)).await;
    client.json().await;
    client.send(format!("{{\"token\": \"{token}\"")).await;
    client.json().await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(client);
    host.stop();

    let text = std::fs::read_to_string(&path).unwrap();
    for secret in [token.as_str(), "hunter"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let all = lines(&path);
    assert_eq!(all[0]["method"], "initialize");
    assert_eq!(all[0]["_ahpLog"]["dir"], "c2s");
    assert_eq!((&all[1]["id"], &all[1]["_ahpLog"]["dir"]), (&all[0]["id"], &json!("s2c")));
    assert!(all.iter().all(|line| line["_ahpLog"]["connectionId"] == "1"));
    let find = |id: u64| all.iter().find(|line| line["id"] == id && line["method"].is_string()).unwrap();
    assert_eq!(find(90)["params"], json!({"resource": "r", "token": "[redacted]"}));
    assert_eq!(find(91)["params"]["headers"], json!([{"Authorization": "[redacted]"}, "Bearer [redacted]"]));
    assert!(all.iter().any(|line| line["unreadableBytes"].is_u64()));
    let said = |line: &Value| line["params"]["envelope"]["action"]["content"] == "hello";
    assert!(all.iter().any(|line| said(line) && line["_ahpLog"]["dir"] == "s2c"));

    // The next host appends to the same file.
    let host = place.serve(&["--log-frames", path.to_str().unwrap()]);
    host.client("a").await;
    host.stop();
    let more = lines(&path);
    assert_eq!(more[..all.len()], all);
    assert_eq!(more[all.len()]["method"], "initialize");
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_that_names_it() {
    let place = TestHome::new();
    let ran = CommandResult::from(place.serve_command(&["--log-frames", "/none/such"]).output().unwrap());
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, said["error"]["code"].as_str()), (Some(1), Some("failed")));
    assert!(ran.stderr.contains("/none/such"), "{}", ran.stderr);
}
