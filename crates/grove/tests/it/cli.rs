//! The command line for people and scripts.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn status_says_where_the_host_is_and_what_it_does() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    client.ready_session("scripted:/other").await;

    let ran = host.place.run(&["status"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let pid = format!("process {}", host.pid());
    for words in [
        "is running at",
        &format!("http://{}", host.address),
        &pid,
        "2 sessions (2 of them in memory), 1 running turns, 1 connections",
        "attached to s: host",
    ] {
        assert!(ran.stdout.contains(words), "no {words} in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains(&host.token));

    let ran = host.place.run(&["status", "--json"]);
    assert_eq!(ran.code, Some(0));
    let mut status: Value = serde_json::from_str(&ran.stdout).unwrap();
    // The client comes without a name in this protocol.
    let attended = |session: &str| {
        let client = json!({"clientId": "a", "token": "host", "dialect": "v1", "kind": "client"});
        json!({"session": session, "clients": [client], "more": 0})
    };
    for session in status["attendedSessions"].as_array_mut().unwrap() {
        assert!(session["clients"][0].as_object_mut().unwrap().remove("since").unwrap().is_u64());
    }
    let expected = json!({
        "running": true,
        "http": format!("http://{}", host.address),
        "ws": host.ws,
        "page": format!("http://{}/", host.address),
        "pid": host.pid(),
        "version": env!("CARGO_PKG_VERSION"),
        "sessions": 2,
        "loadedSessions": 2,
        "runningTurns": 1,
        "connections": 1,
        "serverSeq": status["serverSeq"],
        "storageProblem": null,
        "damage": [],
        "damageCount": 0,
        "allowAllSessions": [],
        "allowAllCount": 0,
        "attendedSessions": [attended("scripted:/other"), attended("scripted:/s")],
        "attendedCount": 2,
        "watchesFolders": cfg!(target_os = "linux"),
    });
    assert_eq!(status, expected);
    assert!(status["serverSeq"].as_u64().unwrap() >= client.seen);
}

#[test]
fn without_a_host_status_and_stop_exit_with_3() {
    let place = TestHome::new();
    for args in [&["status"][..], &["status", "--json"], &["stop"], &["stop", "--json"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(3), "{args:?}");
        match args.contains(&"--json") {
            true => {
                let said: Value = serde_json::from_str(&ran.stdout).unwrap();
                assert_eq!(said["error"]["code"], "noHost", "{args:?}: {said}");
                let next = said["error"]["next"].as_str().unwrap_or_default();
                assert_eq!(next.contains("grove start"), args[0] == "status", "{said}");
                assert_eq!(said.get("running"), (args[0] == "status").then_some(&json!(false)), "{said}");
            }
            false => assert_eq!(ran.stdout, "", "{args:?}"),
        }
        assert!(ran.stderr.contains("no host is running"), "{}", ran.stderr);
        assert!(ran.stderr.contains(place.data().to_str().unwrap()), "{}", ran.stderr);
    }
    assert!(!place.data().exists(), "asking leaves nothing behind");
}

#[test]
fn stop_ends_the_host_and_returns_when_it_is_gone() {
    for json in [false, true] {
        let mut host = Host::start();
        let ran = host.place.run(if json { &["stop", "--json"] } else { &["stop"] });
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        match json {
            true => assert_eq!(
                serde_json::from_str::<Value>(&ran.stdout).unwrap(),
                json!({"stopped": true, "pid": host.pid(), "turnsCancelled": 0, "turnsGoOn": 0, "turnsWaiting": 0})
            ),
            false => assert!(ran.stdout.contains(&format!("stopped process {}", host.pid()))),
        }
        assert_eq!(host.exit().code(), Some(0));
        assert_eq!(host.place.run(&["status"]).code, Some(3));
        let again = host.place.serve(&[]);
        assert_eq!(host.place.run(&["status"]).code, Some(0), "the folder is free at once");
        drop(again);
    }
}

#[tokio::test]
async fn stop_cancels_what_runs_where_that_is_wanted() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    drop(client);
    let ran = host.place.run(&["stop", "--turns", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        said,
        json!({"stopped": true, "pid": host.pid(), "turnsCancelled": 1, "turnsGoOn": 0, "turnsWaiting": 0})
    );
    let again = host.place.serve(&[]);
    let state = serde_json::to_value(again.snapshot(S).await).unwrap();
    assert_eq!((&state["turns"][0]["state"], &state["activeTurn"]), (&json!("cancelled"), &Value::Null), "{state}");
}

#[tokio::test]
async fn stop_keeps_a_turn_that_waits_for_a_permission_and_says_so() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"tool": {"name": "sh", "permission": "shell"}}, {"say": "done"}])).await;
    client
        .until(|client| client.session(S).active_turn.as_ref().is_some_and(|t| !t.pending_permissions.is_empty()))
        .await;
    let ran = host.place.run(&["stop"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("1 turn waits for your answer"), "{}", ran.stdout);
    let host = host.place.serve(&[]);
    host.reconnect(&mut client).await;
    let request = client.active(S).pending_permissions.keys().next().cloned().expect("the question is still there");
    client.dispatch(permission_resolved(S, "t", &request, true)).await;
    assert_eq!(client.turn_end(S, "t").await.state, grove_wire::v1::TurnState::Complete);
}

#[test]
fn serve_without_json_says_how_to_connect() {
    let place = TestHome::new();
    let mut command = place.grove(&["serve"]);
    let mut child =
        command.arg("--data-dir").arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        said.push_str(&line);
        if line.contains("Ctrl-C") {
            break;
        }
    }
    let endpoint: Value =
        serde_json::from_str(&std::fs::read_to_string(place.data().join("host.json")).unwrap()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for said_of in [endpoint["ws"].as_str().unwrap(), endpoint["http"].as_str().unwrap(), "data/token", "grove open"] {
        assert!(said.contains(said_of), "no {said_of} in {said}");
    }
    assert!(!said.contains(endpoint["token"].as_str().unwrap()), "what is no terminal may be a log");
    assert!(endpoint["ws"].as_str().unwrap().starts_with("ws://127.0.0.1:"), "loopback is where it listens by default");
}

/// `grove config show --json` in a place, with more arguments and variables.
fn config(place: &TestHome, args: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut command = place.grove(&["config", "show", "--json"]);
    command.env_remove("GROVE_LISTEN");
    let ran = CommandResult::from(command.args(args).envs(variables.iter().copied()).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn config_show_names_every_setting_with_its_value_and_source() {
    let place = TestHome::new();
    let home = place.home();
    let default = |value: Value| json!({"value": value, "source": {"kind": "default"}});
    let defaults = json!({
        "data-dir": default(json!(home.join(".local/share/grove"))),
        "listen": default(json!("127.0.0.1:4747")),
        "tls-cert": default(json!(null)),
        "tls-key": default(json!(null)),
        "insecure": default(json!(false)),
        "host-names": default(json!([])),
        "query-token": default(json!(false)),
        "copilot-listen": default(json!(null)),
        "replay-actions": default(json!(10_000)),
        "replay-bytes": default(json!(32 << 20)),
        "turn-silence": default(json!(1_800)),
        "idle-exit": default(json!(600)),
        "durability": default(json!("power")),
        "default-directory": default(json!(home)),
        "browse-roots": default(json!([home])),
        "read-roots": default(json!([])),
        "default-agent": default(json!("scripted")),
        "max-agents": default(json!(16)),
        "agent-idle": default(json!(600)),
        "agent-start": default(json!(15)),
        "agent-cancel": default(json!(5)),
        "session-idle": default(json!(600)),
        "spill-bytes": default(json!(64 << 10)),
        "slow-ms": default(json!(500)),
        "compact-at": default(json!(85)),
        "compact-keep": default(json!(20_000)),
        "store": default(json!("local")),
        "log-dir": default(json!(null)),
        "stores": default(json!([])),
        "hooks": default(json!([])),
        "history": default(json!({"enabled": true, "keep": false, "roots": []})),
        "limits": default(json!({})),
        "telemetry": default(json!({"otlp-endpoint": null})),
        "notify": default(json!({
            "webhook": false,
            "events": ["waiting", "finished", "failed"],
            "quiet": null,
            "detail": "title",
            "contact": "mailto:grove@example.com",
            "allow-private-push": false,
        })),
        "copilot": default(json!({"models": {}})),
        "mcp": default(json!([])),
        "agents": default(json!([])),
    });
    assert_eq!(config(&place, &[], &[]), defaults);

    let file = place.write(
        "home/.config/grove/grove.toml",
        "replay-actions = 5\nlisten = \"127.0.0.1:4321\"\nturn-silence = 9\n\
         read-roots = [\"/r\", \"/s\"]\ndata-dir = \"/d\"\nmax-agents = 3\ncompact-at = 70\nstore = \"work\"\n\
         spill-bytes = 1000\ntls-cert = \"/f.pem\"\ntls-key = \"/t.key\"\n\
         [stores.work]\nfolder = \"/w\"\n\
         [history]\nkeep = true\n\
         [hooks.guard]\nevents = [\"session_tree\"]\ncommand = [\"guard\"]\n\
         [agents.mine]\ncommand = [\"mine\"]\nenv = { KEY = \"hunter2\" }\n",
    );
    let from_file = |value: Value| json!({"value": value, "source": {"kind": "file", "name": file}});
    let variable = |name: &str, value: Value| json!({"value": value, "source": {"kind": "environment", "name": name}});
    let variables = [
        ("GROVE_TURN_SILENCE", "7"),
        ("GROVE_TLS_CERT", "/t.pem"),
        ("GROVE_DATA_DIR", "/e"),
        ("GROVE_BROWSE_ROOTS", "/b:/c"),
        ("GROVE_DEFAULT_AGENT", "mine"),
        ("GROVE_AGENT_IDLE", "5"),
        ("GROVE_LOG_DIR", "/l"),
        ("GROVE_COPILOT_LISTEN", "127.0.0.1:4141"),
    ];
    let shown = config(&place, &["--data-dir", "/f"], &variables);
    let expected = json!({
        "data-dir": {"value": "/f", "source": {"kind": "flag", "name": "--data-dir"}},
        "listen": from_file(json!("127.0.0.1:4321")),
        "tls-cert": variable("GROVE_TLS_CERT", json!("/t.pem")),
        "tls-key": from_file(json!("/t.key")),
        "insecure": default(json!(false)),
        "host-names": default(json!([])),
        "query-token": default(json!(false)),
        "copilot-listen": variable("GROVE_COPILOT_LISTEN", json!("127.0.0.1:4141")),
        "replay-actions": from_file(json!(5)),
        "replay-bytes": default(json!(32 << 20)),
        "turn-silence": variable("GROVE_TURN_SILENCE", json!(7)),
        "idle-exit": default(json!(600)),
        "durability": default(json!("power")),
        "default-directory": default(json!(home)),
        "browse-roots": variable("GROVE_BROWSE_ROOTS", json!(["/b", "/c"])),
        "read-roots": from_file(json!(["/r", "/s"])),
        "default-agent": variable("GROVE_DEFAULT_AGENT", json!("mine")),
        "max-agents": from_file(json!(3)),
        "agent-idle": variable("GROVE_AGENT_IDLE", json!(5)),
        "agent-start": default(json!(15)),
        "agent-cancel": default(json!(5)),
        "session-idle": default(json!(600)),
        "spill-bytes": from_file(json!(1_000)),
        "slow-ms": default(json!(500)),
        "compact-at": from_file(json!(70)),
        "compact-keep": default(json!(20_000)),
        "store": from_file(json!("work")),
        "log-dir": variable("GROVE_LOG_DIR", json!("/l")),
        "stores": from_file(json!(["work"])),
        "hooks": from_file(json!(["guard"])),
        "history": from_file(json!({"enabled": true, "keep": true, "roots": []})),
        "limits": default(json!({})),
        "telemetry": default(json!({"otlp-endpoint": null})),
        "notify": default(json!({
            "webhook": false,
            "events": ["waiting", "finished", "failed"],
            "quiet": null,
            "detail": "title",
            "contact": "mailto:grove@example.com",
            "allow-private-push": false,
        })),
        "copilot": default(json!({"models": {}})),
        "mcp": default(json!([])),
        "agents": from_file(json!(["mine"])),
    });
    assert_eq!(shown, expected);
    assert_eq!(config(&place, &[], &variables)["data-dir"], variable("GROVE_DATA_DIR", json!("/e")));
    assert_eq!(config(&place, &[], &[])["data-dir"], from_file(json!("/d")));

    let other = place.write("other.toml", "replay-actions = 6");
    let of_other = json!({"value": 6, "source": {"kind": "file", "name": other}});
    assert_eq!(config(&place, &["--config", other.to_str().unwrap()], &[])["replay-actions"], of_other);
    assert_eq!(config(&place, &[], &[("GROVE_CONFIG", other.to_str().unwrap())])["replay-actions"], of_other);
}

#[test]
fn config_show_is_readable() {
    let place = TestHome::new();
    let ran = CommandResult::from(place.grove(&["config", "show"]).output().unwrap());
    assert_eq!(ran.code, Some(0));
    let file = place.home().join(".config/grove/grove.toml");
    assert!(ran.stdout.contains(&format!("{} (does not exist)", file.display())), "{}", ran.stdout);
    place.write("home/.config/grove/grove.toml", "replay-actions = 5");
    let mut command = place.grove(&["config", "show"]);
    let ran = CommandResult::from(command.env_remove("GROVE_LISTEN").env("GROVE_TURN_SILENCE", "7").output().unwrap());
    assert!(!ran.stdout.contains("does not exist"));
    let line = |name: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("replay-actions"), format!("replay-actions 5 file {}", file.display()));
    assert_eq!(line("turn-silence"), "turn-silence 7 environment GROVE_TURN_SILENCE");
    assert_eq!(line("listen"), "listen 127.0.0.1:4747 default");
}

#[tokio::test]
async fn the_file_and_the_environment_reach_the_host() {
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", format!("default-directory = {:?}", place.path("from-file")));
    let mut command = place.serve_command(&[]);
    command.env("GROVE_REPLAY_ACTIONS", "3");
    let host = place.start(command);
    let mut client = host.connect("a").await;
    let folder = client.initialize(&[]).await.default_directory.unwrap();
    assert_eq!(folder, file_uri(&place.path("from-file")));
    client.ready_session(S).await;
    let mut other = host.subscriber("b").await;
    client.run_script(S, "t", json!([{"say": "12345678", "chunks": 8}])).await;
    assert!(!host.reconnect(&mut other).await, "a replay of three actions does not reach that far");
}

fn fails(place: &TestHome, args: &[&str], words: &[&str]) {
    let ran = CommandResult::from(place.grove(args).env_remove("GROVE_LISTEN").output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{args:?}: {}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "no {word} in {}", ran.stderr);
    }
}

#[test]
fn a_mistake_in_grove_toml_is_named_by_every_command() {
    let place = TestHome::new();
    let cases = [
        ("lisen = \"127.0.0.1:1\"", &["`lisen`", "listen"][..]),
        ("[serve]\nlisten = \"127.0.0.1:1\"", &["`serve`"]),
        ("listen = \"nowhere\"", &["nowhere", "listen"]),
        ("replay-actions = -1", &["-1", "replay-actions"]),
        ("turn-silence = \"long\"", &["long", "turn-silence"]),
        ("browse-roots = \"/a\"", &["browse-roots"]),
        ("browse-roots = [1]", &["browse-roots"]),
        ("listen = ", &["TOML"]),
        ("max-agents = 0", &["`0`", "max-agents"]),
        ("spill-bytes = 0", &["`0`", "spill-bytes"]),
        ("[agents.mine]\nname = \"x\"", &["[agents.mine]", "command"]),
        ("[agents.claude]\nenvs = {}", &["[agents.claude]", "`envs`"]),
    ];
    for (text, words) in cases {
        let file = place.write("home/.config/grove/grove.toml", text);
        let mut words = words.to_vec();
        words.push(file.to_str().unwrap());
        for args in [&["config", "show"][..], &["status"], &["stop"], &["serve"]] {
            fails(&place, args, &words);
        }
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let place = TestHome::new();
    for args in [
        &[][..],
        &["dance"],
        &["serve", "--dance"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--replay-actions", "-1"],
        &["config"],
        &["ahp-bridge"],
        &["start", "--idle-exit", "soon"],
        &["completions"],
        &["completions", "tcsh"],
        &["serve", "--max-agents", "0"],
        &["agents", "add", "mine"],
        &["agents", "add", "mine", "--"],
        &["agents", "rm"],
        &["logs"],
        &["logs", "s", "--lines", "few"],
    ] {
        let ran = CommandResult::from(place.grove(args).output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn help_says_what_each_command_does() {
    let place = TestHome::new();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--help"],
            &[
                "host for coding-agent sessions",
                "serve",
                "start",
                "open",
                "ahp-bridge",
                "status",
                "stop",
                "config",
                "completions",
                "Exit codes",
                "GROVE_DATA_DIR",
            ],
        ),
        (&["-h"], &["host for coding-agent sessions", "serve"]),
        (&["help", "serve"], &["Run the host"]),
        (
            &["serve", "--help"],
            &[
                "Run the host",
                "--listen",
                "--json",
                "--replay-actions",
                "--turn-silence",
                "--browse-root",
                "--read-root",
                "--data-dir",
                "--idle-exit",
                "--log-frames",
                "--log-agent-frames",
                "--default-agent",
                "--max-agents",
                "--agent-idle",
                "--session-idle",
                "--spill-bytes",
                "--compact-at",
                "--compact-keep",
            ],
        ),
        (&["start", "--help"], &["in the background", "--idle-exit", "--json", "host.log", "grove stop"]),
        (&["open", "--help"], &["in the browser", "--print", "token"]),
        (&["ahp-bridge", "--help"], &["--stdio", "one JSON message per line"]),
        (
            &["run", "--help"],
            &[
                "prompt",
                "--agent",
                "--cwd",
                "--yes",
                "--json",
                "--no-start",
                "--protocol",
                "Examples",
                "grove approve",
                "130",
            ],
        ),
        (&["ls", "--help"], &["--all", "--waiting", "--json", "archived"]),
        (&["wait", "--help"], &["--timeout", "--chat", "Exit codes", "needs an answer"]),
        (&["chats", "--help"], &["new", "rm", "main one"]),
        (&["archive", "--help"], &["--undo", "--all"]),
        (&["read", "--help"], &["--undo"]),
        (&["attach", "--help"], &["live", "Ctrl-D", "Examples", "beginning"]),
        (&["send", "--help"], &["--queue", "--wait", "Examples", "Exit codes"]),
        (&["cancel", "--help"], &["Cancel the running turn"]),
        (&["approve", "--help"], &["--option", "several", "Examples"]),
        (&["deny", "--help"], &["--reason"]),
        (&["answer", "--help"], &["--decline", "order of the questions"]),
        (&["tree", "--help"], &["--filter", "labeled-only", "--search", "--chat", "leaf", "Examples", "grove goto"]),
        (&["goto", "--help"], &["root", "--label", "user message", "Examples", "Exit codes", "beginning"]),
        (&["label", "--help"], &["deletes the label", "Examples", "Exit codes"]),
        (&["rm", "--help"], &["for good", "--yes"]),
        (&["agents", "--help"], &["installed", "models", "--json", "add", "rm", "Examples", "default-agent"]),
        (&["agents", "add", "--help"], &["grove.toml", "--env", "--pass-env", "--name", "Examples", "Agent Client"]),
        (&["agents", "rm", "--help"], &["grove.toml"]),
        (&["logs", "--help"], &["stderr", "--follow", "--lines", "--chat"]),
        (&["status", "--help"], &["whether a host is running", "--json"]),
        (&["stop", "--help"], &["Stop the running host", "--json", "--turns"]),
        (&["config", "--help"], &["configuration", "show"]),
        (&["config", "show", "--help"], &["every setting", "origin of the value", "--json"]),
        (&["completions", "--help"], &["completion script", "bash", "zsh", "fish"]),
    ];
    for (args, words) in cases {
        let ran = CommandResult::from(place.grove(args).output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        // Lines are wrapped at the width of the terminal.
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in *words {
            assert!(text.contains(word), "{args:?} says nothing of {word}: {}", ran.stdout);
        }
    }
    let ran = CommandResult::from(place.grove(&["--version"]).output().unwrap());
    assert_eq!(ran.stdout, format!("grove {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_there_for_each_shell() {
    let place = TestHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = CommandResult::from(place.grove(&["completions", shell]).output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        for word in [
            "grove",
            "serve",
            "status",
            "completions",
            "start",
            "open",
            "ahp-bridge",
            "log-frames",
            "attach",
            "logs",
            "pass-env",
            "max-agents",
            "turns",
            "labeled-only",
            "goto",
        ] {
            assert!(ran.stdout.contains(word), "{shell} does not know {word}");
        }
    }
    if Path::new("/bin/bash").exists() {
        let script = CommandResult::from(place.grove(&["completions", "bash"]).output().unwrap()).stdout;
        // It is longer than an argument may be.
        let file = place.write("completions.bash", script);
        let check = Command::new("/bin/bash").arg("-n").arg(file).output().unwrap();
        assert!(check.status.success(), "bash does not understand it");
    }
}

#[test]
fn output_that_nobody_reads_is_no_failure() {
    let place = TestHome::new();
    for args in [&["completions", "zsh"][..], &["config", "show"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            place.grove(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let ran = CommandResult::from(output);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}
