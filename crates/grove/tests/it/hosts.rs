//! Other hosts by name: `grove hosts`, and the transports of a real host.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use grove_client::{Ahp, Client, Credentials, Endpoint, Fingerprint, Options};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};

use crate::support::*;
use crate::terminal::Terminal;

/// A certificate with its key in files of a place, and its fingerprint.
pub(crate) fn certificate(place: &TestHome, name: &str) -> (PathBuf, PathBuf, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let cert_file = place.write(&format!("{name}.pem"), cert.pem());
    let key_file = place.write(&format!("{name}.key"), signing_key.serialize_pem());
    (cert_file, key_file, Fingerprint::of(cert.der()).to_string())
}

/// The endpoint file of a host.
fn said(place: &TestHome) -> Value {
    serde_json::from_str(&fs::read_to_string(place.data().join("host.json")).unwrap()).unwrap()
}

/// `grove hosts add` with this stdin.
fn add(place: &TestHome, args: &[&str], stdin: &str) -> CommandResult {
    let mut command = place.grove(&["hosts", "add"]);
    command.args(args).arg("--data-dir").arg(place.data());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The program may not read it.
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).ok();
    CommandResult::from(child.wait_with_output().unwrap())
}

fn listed(place: &TestHome) -> Vec<Value> {
    let ran = place.run(&["hosts", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["hosts"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_host_behind_tls_is_reached_by_name_with_its_pin_and_token() {
    let far = TestHome::new();
    let (cert, key, pin) = certificate(&far, "tls");
    let (_, _, other_pin) = certificate(&far, "other");
    let host = far.serve(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let remote = said(&far)["remote"].clone();
    assert_eq!(remote["certificate"], pin.as_str());
    let address = remote["ws"].as_str().unwrap().to_owned();
    assert!(address.starts_with("wss://127.0.0.1:"), "{address}");
    assert!(host.ws.starts_with("ws://127.0.0.1:"), "this machine goes on as before");
    host.client_with_session("a").await;

    let near = TestHome::new();
    let token = near.write("token", &host.token);
    let token = token.to_str().unwrap();
    let ran = add(&near, &["lab", &address, "--pin", &pin, "--token-file", token], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = add(&near, &["wrong", &address, "--pin", &other_pin, "--token-file", token], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = listed(&near);
    assert_eq!(
        all[0],
        json!({
            "name": "lab", "address": address, "pin": pin, "reachable": true, "program": "grove",
            "version": env!("CARGO_PKG_VERSION"), "sessions": 1,
        })
    );
    assert_eq!((&all[1]["name"], &all[1]["reachable"]), (&json!("wrong"), &json!(false)));
    let why = all[1]["error"].as_str().unwrap();
    assert!(why.contains("another certificate than the pinned one"), "{why}");

    let ran = near.run(&["hosts"]);
    assert!(ran.stdout.contains("lab") && ran.stdout.contains("reachable"), "{}", ran.stdout);
    assert!(ran.stderr.contains("wrong: the host shows another certificate"), "{}", ran.stderr);
    assert!(!format!("{ran:?}").contains(&host.token));
    assert_eq!(far.run(&["status"]).code, Some(0), "its own commands need no pin");
}

#[test]
fn without_a_pin_and_a_person_what_the_host_shows_is_said_and_nothing_kept() {
    let far = TestHome::new();
    let (cert, key, pin) = certificate(&far, "tls");
    let host = far.serve(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let near = TestHome::new();
    let address = said(&far)["remote"]["ws"].as_str().unwrap().to_owned();
    let ran = add(&near, &["lab", &address], &host.token);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains(&format!("--pin {pin}")), "{}", ran.stderr);
    assert_eq!(listed(&near), Vec::<Value>::new());
}

#[test]
fn a_person_is_asked_about_the_certificate_and_types_the_token_unseen() {
    let far = TestHome::new();
    let (cert, key, pin) = certificate(&far, "tls");
    let host = far.serve(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let address = said(&far)["remote"]["ws"].as_str().unwrap().to_owned();
    let near = TestHome::new();
    let mut no = Terminal::run(&near, &["hosts", "add", "lab", &address]);
    no.until("[y/n]");
    no.enter("n");
    no.until("nothing was added");
    let mut yes = Terminal::run(&near, &["hosts", "add", "lab", &address]);
    yes.until(&pin);
    yes.until("[y/n]");
    yes.enter("y");
    yes.until("it is not shown");
    yes.enter(&format!("{}x\u{7f}", host.token));
    yes.until("lab is wss://");
    assert!(!yes.screen().contains(&host.token));
    assert_eq!(listed(&near)[0]["reachable"], true);
}

#[test]
fn other_machines_are_served_with_tls_or_where_somebody_wants_it_without() {
    let place = TestHome::new();
    for (args, words) in [
        (&["--listen", "0.0.0.0:0"][..], &["--tls-cert", "--insecure", "ssh://"][..]),
        (&["--listen", "0.0.0.0:0", "--tls-cert", "x"], &["--tls-key"]),
        (&["--tls-key", "x"], &["--tls-cert"]),
        (&["--tls-cert", "none.pem", "--tls-key", "none.key"], &["none.pem cannot be read"]),
        (&["--copilot-listen", "0.0.0.0:0", "--insecure"], &["this machine only"]),
    ] {
        let ran = CommandResult::from(place.serve_command(args).output().unwrap());
        let error: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, error["error"]["code"].as_str()), (Some(1), Some("failed")), "{args:?}");
        for word in words {
            assert!(ran.stderr.contains(word), "no {word} in {}", ran.stderr);
        }
    }
    let host = place.serve(&["--listen", "0.0.0.0:0", "--insecure"]);
    let remote = said(&place)["remote"].clone();
    let port = remote["ws"].as_str().unwrap().strip_prefix("ws://0.0.0.0:").unwrap().strip_suffix("/ws").unwrap();
    assert_eq!(remote["certificate"], Value::Null);
    let near = TestHome::new();
    let ran = add(&near, &["lab", &format!("ws://127.0.0.1:{port}/ws")], &format!("{}\n", host.token));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = add(&near, &["guest", &format!("ws://127.0.0.1:{port}/ws")], "0123456789abcdef0123456789abcdef");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = listed(&near);
    assert_eq!((&all[1]["name"], &all[1]["reachable"]), (&json!("lab"), &json!(true)), "{all:?}");
    assert!(all[0]["error"].as_str().unwrap().contains("refused this client"), "{all:?}");
    assert!(host.stop_and_read_log().contains("--insecure"));
}

#[tokio::test]
async fn the_socket_in_the_data_folder_is_its_owners_and_goes_with_the_host() {
    let host = Host::start();
    let path = host.place.data().join("host.sock");
    assert_eq!(said(&host.place)["unix"], json!(path));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let near = TestHome::new();
    let ran = add(&near, &["here", &format!("unix:{}", path.display())], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(listed(&near)[0]["reachable"], true);
    let endpoint =
        Endpoint::new(&format!("unix:{}", path.display()).parse().unwrap(), &Credentials::default()).unwrap();
    let client = Client::connect(endpoint, Ahp::default(), Options::default()).await.unwrap();
    assert_eq!(host.connections(), 1);
    client.close().await;
    let place = host.kill();
    assert!(path.exists(), "nobody could take it away");
    let again = place.serve(&[]);
    assert_eq!(listed(&near)[0]["reachable"], true, "the next host listens in its place");
    again.stop();
    assert!(!path.exists());
}

#[test]
fn a_data_folder_whose_path_is_too_long_for_a_socket_is_reached_all_the_same() {
    let place = TestHome::new();
    let data = place.path(&"long".repeat(40));
    let host = place.serve(&["--data-dir", data.to_str().unwrap()]);
    assert!(!data.join("host.sock").exists());
    let status = CommandResult::from(place.grove(&["status", "--data-dir"]).arg(&data).output().unwrap());
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    assert!(host.stop_and_read_log().contains("loopback is used instead"));
}

#[test]
fn whoever_adds_a_host_behind_a_readable_connection_is_told_so() {
    let place = TestHome::new();
    let token = "0123456789abcdef0123456789abcdef";
    let ran = add(&place, &["far", "ws://203.0.113.7:7777/"], token);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("can read the host's token") && ran.stderr.contains("wss://"), "{}", ran.stderr);
    let ran = add(&place, &["near", "ws://127.0.0.1:7777/"], token);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn hosts_are_kept_by_name_for_their_owner_alone() {
    let place = TestHome::new();
    let ran = place.run(&["hosts"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("grove hosts add"), "{}", ran.stderr);
    assert!(!place.data().exists(), "asking leaves nothing behind");

    assert_eq!(add(&place, &["dev", "ssh://me@dev-box/srv"], "").code, Some(0));
    let file = place.data().join("hosts.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for (args, words) in [
        (&["dev", "ssh://other"][..], "grove hosts rm dev"),
        (&["local", "ssh://other"], "no name for a host"),
        (&["Lab!", "ssh://other"], "no name for a host"),
        (&["lab", "ssh://other", "--token-file", "x"], "needs no token"),
        (&["lab", "ssh://other", "--pin", &"00".repeat(32)], "has a certificate to pin"),
        (&["lab", "ws://127.0.0.1:1"], "contains no token"),
        (&["lab", "ws://127.0.0.1:1", "--token-file", "none"], "none cannot be read"),
        (&["lab", "wss://127.0.0.1:1"], "cannot get the host's certificate"),
    ] {
        let ran = add(&place, args, "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(ran.stderr.contains(words), "no {words} in {}", ran.stderr);
    }
    for args in [&["lab", "dev-box"][..], &["lab", "ws://h/?tkn=secret"], &["lab", "wss://h", "--pin", "x"]] {
        assert_eq!(add(&place, args, "").code, Some(2), "{args:?}");
    }
    // The file's mode was changed.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = place.run(&["hosts", "rm", "nobody"]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("it is private now"), "{}", ran.stderr);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.run(&["hosts", "rm", "dev"]).code, Some(0));
    assert_eq!(listed(&place), Vec::<Value>::new());
}

#[test]
fn a_host_that_cannot_be_used_is_named_and_costs_the_others_nothing() {
    let place = TestHome::new();
    std::fs::create_dir_all(place.data()).unwrap();
    let text = "[bad]\naddress = 'nonsense'\n[gone]\naddress = 'ws://127.0.0.1:1/'\n";
    std::fs::write(place.data().join("hosts.toml"), text).unwrap();
    place.run(&["hosts"]);
    let ran = place.run(&["hosts"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("unusable") && ran.stdout.contains("gone"), "{}", ran.stdout);
    assert!(ran.stderr.contains("the address of \"bad\" is invalid"), "{}", ran.stderr);
    let names: Vec<Value> = listed(&place).iter().map(|host| host["name"].clone()).collect();
    assert_eq!(names, ["gone", "bad"]);
    let ran = place.run(&["ls", "--json"]);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    let away: Vec<&Value> = said["away"].as_array().unwrap().iter().map(|away| &away["host"]).collect();
    assert_eq!(away, ["gone", "bad"]);
    let ran = place.run(&["ls", "--host", "bad"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("the address of \"bad\" is invalid"), "{}", ran.stderr);
    let ran = place.run(&["hosts", "rm", "bad"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
