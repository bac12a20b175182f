//! Watching a host: metrics, the debug bundle, `grove du` and `grove gc`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grove_testkit::PATIENCE;
use serde_json::{Value, json};

use crate::run::script;
use crate::support::*;

/// A body above the size that is stored by reference.
const LARGE: usize = 100_000;

/// Runs a turn with a large output, in a session of its own.
fn run_turn(place: &TestHome) {
    let steps = json!([{"say": "hello"}, {"tool": {"name": "cat", "output": "x", "repeat": LARGE}}]);
    let ran = place.run(&["run", "--no-start", &script(&steps)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn metrics(host: &Host) -> String {
    let bearer = format!("Authorization: Bearer {}", host.token);
    let answer =
        host.http(&format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{bearer}", host.address));
    assert_eq!(answer.status, 200);
    answer.body
}

fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is missing in\n{text}")).parse().unwrap()
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// Sets the time of a file's last change to a month ago.
fn age(path: &Path) {
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    File::open(path).unwrap().set_modified(SystemTime::now() - month).unwrap();
}

#[test]
fn metrics_of_a_real_host_have_its_journal_its_store_and_its_process() {
    let host = TestHome::new().serve(&[]);
    assert_eq!(host.http(&format!("GET /metrics HTTP/1.1\r\nHost: {}", host.address)).status, 403);
    run_turn(&host.place);
    let text = metrics(&host);
    for (name, least) in [
        ("grove_journal_batches_total{sync=\"now\"}", 1.0),
        ("grove_journal_bytes_total", 1_000.0),
        ("grove_journal_write_seconds_count", 2.0),
        ("grove_journal_sync_seconds_count", 1.0),
        ("grove_store_calls_total{call=\"write\"}", 1.0),
        ("grove_store_call_seconds_count", 2.0),
        ("grove_tool_calls_total{outcome=\"succeeded\"}", 1.0),
        ("grove_connections_opened_total{dialect=\"ahp\"}", 1.0),
        ("process_open_fds", 5.0),
        ("process_resident_memory_bytes", 1_000_000.0),
    ] {
        assert!(sample(&text, name) >= least, "{name} is {}", sample(&text, name));
    }
    assert_eq!(sample(&text, &format!("grove_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
    assert!(!text.contains(&host.token), "metrics hold no secret");
}

#[test]
fn a_debug_bundle_has_facts_and_none_of_the_secrets() {
    let place = TestHome::new();
    let secrets = ["env-secret-4711", "host-secret-4712-0123456789abcdef", "logged-secret-4713", "prompt-secret-4714"];
    let [of_agent, of_host, of_log, of_prompt] = secrets;
    place.write(
        "home/.config/grove/grove.toml",
        format!("slow-ms = 250\n[agents.mine]\ncommand = [\"true\"]\nenv = {{ API_KEY = \"{of_agent}\" }}\n"),
    );
    let host = place.serve(&[]);
    let far = format!("[far]\naddress = \"ws://127.0.0.1:9/ws\"\ntoken = \"{of_host}\"\n");
    place.write("data/hosts.toml", far);
    fs::set_permissions(place.data().join("hosts.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&["run", "--no-start", &script(&json!([{"say": of_prompt}]))]).code, Some(0));
    // A log of a host, with everything that should never be there.
    let lines = [
        format!("INFO GET /ws?tkn={of_log}"),
        format!("INFO Authorization: Bearer {of_log}{of_log}"),
        format!("WARN the agent said {of_agent}, the far host {of_host}, this host {}", host.token),
        format!("{{\"apiKey\":\"{of_log}\",\"env\":{{\"A\":\"{of_log}\"}},\"fact\":\"kept\"}}"),
    ];
    fs::write(place.data().join("host.log"), lines.join("\n")).unwrap();
    fs::write(place.data().join("copilot-token"), format!("{of_log}-copilot\n")).unwrap();

    let file = place.path("bundle.tar");
    let ran = place.run(&["debug", "bundle", "--output", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bundle = String::from_utf8(fs::read(&file).unwrap()).unwrap();
    for secret in secrets.into_iter().chain([host.token.as_str()]) {
        assert!(!bundle.contains(secret), "{secret} is in the bundle");
    }
    for fact in
        ["slow-ms", "\"mine\"", "grove_turns_started_total 1", "queue_messages", "\"release\"", "\"fact\":\"kept\""]
    {
        assert!(bundle.contains(fact), "{fact} is missing in {bundle}");
    }
    assert_eq!(bundle.len() % 512, 0);
    let again = place.run(&["debug", "bundle", "--output", file.to_str().unwrap()]);
    assert_eq!(again.code, Some(1), "an existing file is not replaced");
    // `tar` reads it, where there is one.
    if let Ok(listed) = std::process::Command::new("tar").arg("-tf").arg(&file).output() {
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().any(|name| name == "grove-debug/metrics.txt"), "{listed}");
    }
    let titled = place.path("titled.tar");
    assert_eq!(place.run(&["debug", "bundle", "--with-titles", "--output", titled.to_str().unwrap()]).code, Some(0));
    assert!(fs::read_to_string(&titled).unwrap().contains(of_prompt), "a title repeats the prompt, on request");
}

#[test]
fn du_counts_every_file_of_the_data_folder_once() {
    let host = TestHome::new().serve(&[]);
    run_turn(&host.place);
    let place = host.stop();
    let ran = place.run(&["du", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let usage: Value = serde_json::from_str(&ran.stdout).unwrap();
    let total: usize = contents(&place.data())
        .into_iter()
        .filter(|(path, _)| !path.ends_with("host.sock"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    assert_eq!(usage["bytes"], json!(total), "{usage}");
    let session = &usage["sessions"][0];
    assert!(session["contentBytes"].as_u64().unwrap() >= LARGE as u64, "{usage}");
    assert!(session["logBytes"].as_u64().unwrap() > 0 && usage["sessions"].as_array().unwrap().len() == 1, "{usage}");
    let words = place.run(&["du"]).stdout;
    assert!(words.contains("journal") && words.contains(session["id"].as_str().unwrap()), "{words}");
}

#[test]
fn gc_of_a_healthy_folder_changes_no_session() {
    let host = TestHome::new().serve(&[]);
    run_turn(&host.place);
    run_turn(&host.place);
    let place = host.stop();
    let sessions = place.data().join("session-state");
    // Even what is old stays, if it is needed.
    contents(&sessions).keys().for_each(|path| age(path));
    let before = contents(&sessions);
    assert!(before.keys().any(|path| path.parent().unwrap().ends_with("content")), "{:?}", before.keys());
    assert_eq!(place.run(&["check"]).code, Some(0));
    let ran = place.run(&["gc", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&answer["removed"], &answer["hostRunning"]), (&json!([]), &json!(false)), "{answer}");
    assert_eq!(contents(&sessions), before);
    assert_eq!(place.run(&["check"]).code, Some(0));
}

#[test]
fn gc_removes_what_a_killed_host_left_and_beside_a_host_only_what_that_cannot_use() {
    let host = TestHome::new().serve(&[]);
    run_turn(&host.place);
    let place = host.place.clone();
    let session = fs::read_dir(place.data().join("session-state")).unwrap().next().unwrap().unwrap().path();
    let write = |path: PathBuf| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "garbage").unwrap();
        age(&path);
        path
    };
    let data = place.data();
    let [temporary, log] = ["port.new", "host.log.old"].map(|name| write(data.join(name)));
    let orphan = write(session.join("content").join("ab".repeat(32)));
    let import = write(data.join("session-state/x~import/events.jsonl"));
    let disposed = write(data.join("session-state/x~1/events.jsonl"));
    let agent = write(data.join("agents").join("0123456789abcdef01234567").join("stderr.log"));
    age(agent.parent().unwrap());
    let young = data.join("token.new");
    fs::write(&young, "being written").unwrap();

    let listed = place.run(&["gc", "--dry-run"]);
    assert!(listed.stdout.contains("port.new") && temporary.exists(), "{listed:?}");
    let beside = place.run(&["gc"]);
    assert!(beside.stderr.contains("a host is running"), "{beside:?}");
    assert!(!temporary.exists() && !log.exists() && orphan.exists() && import.exists() && agent.exists(), "{beside:?}");

    let place = host.kill();
    let ran = place.run(&["gc", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let kinds: Vec<&str> =
        answer["removed"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert!(["orphanedContent", "unfinishedImport", "agentFolder"].iter().all(|kind| kinds.contains(kind)), "{answer}");
    assert!(!orphan.exists() && !import.exists() && !agent.exists(), "{answer}");
    assert!(disposed.exists() && young.exists(), "a disposed session and a young file stay");
    let host = place.serve(&[]);
    assert_eq!(place.run(&["check"]).code, Some(0));
    drop(host);
}

/// Accepts one request after another, and gives the path and the body of each.
fn collector() -> (String, std::sync::mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            assert!(stream.read_line(&mut line).unwrap() > 0 && line.starts_with("POST "), "{line}");
            let path = line.split(' ').nth(1).unwrap().to_owned();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            if sender.send((path, serde_json::from_slice(&body).unwrap())).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

#[test]
fn spans_are_exported_to_a_collector() {
    let (endpoint, requests) = collector();
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", format!("[telemetry]\notlp-endpoint = \"{endpoint}\"\n"));
    let host = place.serve(&[]);
    run_turn(&place);
    let mut spans = Vec::new();
    while !spans.iter().any(|span: &Value| span["name"] == "turn") {
        let (path, request) = requests.recv_timeout(PATIENCE).expect("no span arrived");
        if path != "/v1/traces" {
            continue;
        }
        assert_eq!(request["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "grove");
        spans.extend(request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
    }
    let named =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let (turn, call) = (named("turn"), named("tool_call"));
    assert_eq!((&call["parentSpanId"], &call["traceId"]), (&turn["spanId"], &turn["traceId"]));
    assert_eq!((turn["traceId"].as_str().unwrap().len(), turn["spanId"].as_str().unwrap().len()), (32, 16));
    let attribute = |key: &str| {
        let found = turn["attributes"].as_array().unwrap().iter().find(|one| one["key"] == key);
        found.unwrap_or_else(|| panic!("{key}: {turn}"))["value"]["stringValue"].clone()
    };
    assert_eq!((attribute("grove.outcome"), attribute("grove.agent")), ("Completed".into(), "scripted".into()));
    let log = host.stop_and_read_log();
    assert!(!log.contains("turn{"), "the log is as without an export: {log}");
}

#[test]
fn metrics_are_exported_to_a_collector() {
    let (endpoint, requests) = collector();
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", format!("[telemetry]\notlp-endpoint = \"{endpoint}\"\n"));
    let host = place.serve(&[]);
    let (path, request) = requests.recv_timeout(PATIENCE).expect("no metrics arrived");
    assert_eq!(path, "/v1/metrics");
    let sent = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
    let text = metrics(&host);
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, _) = line.split_once(' ').unwrap();
        assert!(sent.iter().any(|metric| metric["name"] == name), "{name}");
    }
}

#[test]
fn a_collector_that_is_away_changes_nothing() {
    let place = TestHome::new();
    // Nothing listens there.
    place.write("home/.config/grove/grove.toml", "[telemetry]\notlp-endpoint = \"http://127.0.0.1:9\"\n");
    let host = place.serve(&[]);
    (0..3).for_each(|_| run_turn(&place));
    assert_eq!(sample(&metrics(&host), "grove_turns_finished_total{outcome=\"completed\"}"), 3.0);
}
