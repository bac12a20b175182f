//! Access control and secrets.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::*;

fn mode(path: impl AsRef<Path>) -> u32 {
    path.as_ref().metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_missing_or_wrong_token_is_403() {
    let host = Host::start();
    let ours = format!("Host: {}", host.address);
    assert_eq!(host.upgrade("/ws", &[&ours]).status, 403);
    let almost = format!("{}0", &host.token[..host.token.len() - 1]);
    let longer = format!("{}0", host.token);
    for wrong in ["", "wrong", &almost, &longer, &host.token.to_uppercase()] {
        if wrong == host.token {
            continue;
        }
        assert_eq!(host.upgrade(&format!("/ws?tkn={wrong}"), &[&ours]).status, 403, "{wrong}");
        let bearer = format!("Authorization: Bearer {wrong}");
        assert_eq!(host.upgrade("/ws", &[&ours, &bearer]).status, 403, "{wrong}");
    }
    let basic = format!("Authorization: Basic {}", host.token);
    assert_eq!(host.upgrade("/ws", &[&ours, &basic]).status, 403);
    assert_eq!(host.upgrade(&format!("/ws?token={}", host.token), &[&ours]).status, 403, "another name");
    let answer = host.upgrade("/ws?tkn=wrong", &[&ours]);
    assert!(!answer.body.contains(&host.token));
}

#[test]
fn the_token_is_taken_from_the_query_and_as_a_bearer() {
    let host = Host::start();
    let ours = format!("Host: {}", host.address);
    for path in ["/ws", "/"] {
        assert_eq!(host.upgrade(&format!("{path}?tkn={}", host.token), &[&ours]).status, 101);
        let bearer = format!("Authorization: Bearer {}", host.token);
        assert_eq!(host.upgrade(path, &[&ours, &bearer]).status, 101);
        let bearer = format!("authorization: bearer {}", host.token);
        assert_eq!(host.upgrade(&format!("{path}?tkn=wrong"), &[&ours, &bearer]).status, 101);
    }
}

#[test]
fn exactly_one_host_header_is_400_otherwise() {
    let host = Host::start();
    let ours = format!("Host: {}", host.address);
    let path = format!("/ws?tkn={}", host.token);
    assert_eq!(host.upgrade(&path, &[&ours, &ours]).status, 400);
    assert_eq!(host.upgrade(&path, &[&ours, "Host: evil.example"]).status, 400);
    assert_eq!(host.upgrade(&path, &[]).status, 400);
    assert_eq!(host.http(&format!("GET /healthz HTTP/1.1\r\n{ours}\r\n{ours}")).status, 400);
    assert_eq!(host.http("GET /healthz HTTP/1.0").status, 400);
}

#[test]
fn a_foreign_host_or_origin_is_refused_even_with_the_token() {
    let host = Host::start();
    let path = format!("/ws?tkn={}", host.token);
    let port = host.address.rsplit(':').next().unwrap();
    for foreign in ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", &format!("evil.example:{port}"), ""] {
        let header = format!("Host: {foreign}");
        assert_eq!(host.upgrade(&path, &[&header]).status, 403, "{foreign}");
        assert_eq!(host.http(&format!("GET /healthz HTTP/1.1\r\n{header}")).status, 403, "{foreign}");
    }
    for ours in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let header = format!("Host: {ours}");
        assert_eq!(host.upgrade(&path, &[&header]).status, 101, "{ours}");
        assert_eq!(host.upgrade(&path, &[&header, &format!("Origin: http://{ours}")]).status, 101, "{ours}");
    }
    let ours = format!("Host: {}", host.address);
    let foreign = [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        format!("https://{}", host.address),
        format!("http://{}.evil.example", host.address),
        "http://localhost".to_owned(),
        "file://".to_owned(),
        String::new(),
    ];
    for origin in foreign {
        let header = format!("Origin: {origin}");
        assert_eq!(host.upgrade(&path, &[&ours, &header]).status, 403, "{origin}");
        assert_eq!(host.http(&format!("GET /healthz HTTP/1.1\r\n{ours}\r\n{header}")).status, 403, "{origin}");
    }
}

#[test]
fn healthz_is_200_and_tells_more_to_those_who_hold_the_token() {
    let host = Host::start();
    let ours = format!("GET /healthz HTTP/1.1\r\nHost: {}", host.address);
    let answer = host.http(&ours);
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ok"}"#));
    let answer = host.http(&format!("{ours}\r\nAuthorization: Bearer {}", host.token));
    assert_eq!(answer.status, 200);
    let health: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&health["status"], &health["pid"]), (&json!("ok"), &json!(host.pid())));
    assert_eq!(
        (&health["sessions"], &health["runningTurns"], &health["connections"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert!(health["serverSeq"].is_u64());
}

#[test]
fn what_is_not_served_is_not_served() {
    let host = Host::start();
    let with_token = |line: &str| {
        let json = "Content-Type: application/json";
        host.http(&format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{json}\r\nAuthorization: Bearer {}",
            host.address, host.token
        ))
    };
    assert_eq!(with_token("GET /none-such").status, 404);
    assert_eq!(with_token("GET /token").status, 404);
    assert_eq!(with_token("POST /healthz").status, 405);
    assert_eq!(with_token("GET /ws").status, 426, "an address for WebSockets says so");
}

#[test]
fn what_the_host_keeps_is_for_its_owner_alone() {
    let host = Host::start();
    let data = host.place.data();
    let mut folders = vec![data.clone()];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => assert_eq!(mode(&path), 0o600, "{}", path.display()),
            }
        }
    }
    assert!(data.join("token").exists() && data.join("host.json").exists());
    assert_eq!(std::fs::read_to_string(data.join("token")).unwrap(), host.token);
    assert!(host.token.len() >= 64, "32 random bytes in hexadecimal");
}

#[test]
fn the_token_outlives_the_host_and_a_loosened_file_is_tightened() {
    let host = Host::start();
    let token = host.token.clone();
    let place = host.kill();
    let file = place.data().join("token");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let host = place.serve(&[]);
    assert_eq!(host.token, token);
    assert_eq!(mode(&file), 0o600);
    assert_ne!(Host::start().token, token, "another folder has another token");
}

#[test]
fn a_token_file_without_a_token_is_an_error_that_names_it() {
    let place = TestHome::new();
    place.write("data/token", "short");
    let ran = CommandResult::from(place.serve_command(&[]).output().unwrap());
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, said["error"]["code"].as_str()), (Some(1), Some("failed")));
    assert!(ran.stderr.contains("data/token"), "{}", ran.stderr);
}

/// Makes many valid and invalid requests, with a word in every place for user text.
async fn live_a_little(host: &Host, word: &str) {
    let mut client = host.client("a").await;
    client.get("createSession", json!({"session": S})).await;
    client.subscribe(S).await.unwrap();
    client.start_turn(S, "t", &format!("script:[{{\"say\": \"{word}\"}}]")).await;
    client.turn_end(S, "t").await;
    client.run_script(S, "u", json!([{"fail": word}])).await;
    client.start_turn(S, "v", &format!("script:[{{\"{word}\": 1}}]")).await;
    client.turn_end(S, "v").await;
    client.rejected(turn_started(S, "t", &json!([{"say": word}]))).await;
    client.rejected(json!({"type": word, "session": S, "text": word})).await;
    client
        .send_json(dispatch(99, json!({"type": "session/turnStarted", "turnId": word, "userMessage": {"text": word}})))
        .await;
    client.send_json(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"action": word}})).await;
    let unnumbered = client.json().await;
    assert_eq!((&unnumbered["id"], &unnumbered["error"]["code"]), (&json!(null), &json!(-32602)));
    client.send_json(json!({"jsonrpc": "2.0", "method": word, "params": [word]})).await;
    client.send(format!("{{{word}")).await;
    let malformed = client.json().await;
    assert_eq!(malformed["error"]["code"], -32700);
    client.settle().await;
    let ours = format!("Host: {}", host.address);
    assert_eq!(host.upgrade(&format!("/ws?tkn={}x", host.token), &[&ours]).status, 403);
    assert_eq!(host.upgrade(&format!("/nowhere?tkn={}", host.token), &[&ours]).status, 404);
    assert_eq!(host.upgrade(&format!("/ws?tkn={}", host.token), &["Host: evil.example"]).status, 403);
    let bearer = format!("Authorization: Bearer {}", host.token);
    assert_eq!(host.http(&format!("GET /healthz HTTP/1.1\r\n{ours}\r\n{bearer}")).status, 200);
    // A request head that is cut off, with the token in it.
    drop(std::io::Write::write_all(&mut host.tcp(), format!("GET /ws?tkn={} HTT", host.token).as_bytes()));
}

#[tokio::test]
async fn neither_token_nor_prompts_are_logged_by_default() {
    let host = Host::start();
    let token = host.token.clone();
    live_a_little(&host, "xyzzy").await;
    let log = host.stop_and_read_log();
    assert!(!log.contains(&token), "{log}");
    assert!(!log.contains("xyzzy"), "{log}");
}

#[tokio::test]
async fn the_token_is_not_logged_at_any_level() {
    for level in ["debug", "trace"] {
        let place = TestHome::new();
        let mut command = place.serve_command(&[]);
        command.env("GROVE_LOG", level);
        let host = place.start(command);
        let token = host.token.clone();
        live_a_little(&host, "xyzzy").await;
        let log = host.stop_and_read_log();
        assert!(log.contains("DEBUG"), "there is a log at all: {log}");
        assert!(!log.contains(&token), "at {level}");
    }
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "8.8.8.8:80"] {
        let place = TestHome::new();
        let mut command = place.grove(&["serve", "--json", "--listen", address]);
        let ran = CommandResult::from(command.arg("--data-dir").arg(place.data()).output().unwrap());
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, said["error"]["code"].as_str()), (Some(1), Some("failed")), "{address}");
        assert!(ran.stderr.contains("not a loopback address"), "{}", ran.stderr);
        assert!(!place.data().exists(), "nothing was begun");
    }
    for (key, value) in [("GROVE_LISTEN", "0.0.0.0:0"), ("GROVE_LISTEN", "nonsense")] {
        let place = TestHome::new();
        let mut command = place.grove(&["serve", "--json"]);
        let ran = CommandResult::from(command.arg("--data-dir").arg(place.data()).env(key, value).output().unwrap());
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(key) && ran.stderr.contains(value), "{}", ran.stderr);
    }
}
