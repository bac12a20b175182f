//! `grove agents`: available and missing agents, and changing the list.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, agent_program, prompt};
use grove_testkit::ahp;
use serde_json::{Value, json};

use crate::support::*;

/// Puts a program into the place's `bin`.
///
/// Another process writes it: a file cannot be executed while any process has it open for writing, and a child that is
/// just being started inherits open files.
fn program(place: &TestHome, name: &str, script: &str) -> PathBuf {
    let draft = place.write(&format!("drafts/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(place.path("bin")).unwrap();
    let path = place.path("bin").join(name);
    assert!(Command::new("cp").arg(&draft).arg(&path).status().unwrap().success());
    path
}

/// Runs a command to its end, with the place's `bin` as its `PATH`.
fn run(place: &TestHome, args: &[&str]) -> CommandResult {
    let mut command = place.grove(args);
    // After `--` it would be an argument of the agent.
    command.env("PATH", place.path("bin")).env("GROVE_DATA_DIR", place.data());
    CommandResult::from(command.output().unwrap())
}

fn asked(place: &TestHome, args: &[&str]) -> Value {
    let ran = run(place, args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).unwrap()
}

fn agent<'a>(listed: &'a Value, provider: &str) -> &'a Value {
    let agents = listed["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["provider"] == provider).unwrap_or_else(|| panic!("no {provider} in {listed}"))
}

#[test]
fn agents_are_listed_without_a_host_with_version_or_how_to_install_them() {
    let place = TestHome::new();
    let gemini = program(&place, "gemini", "echo 'gemini 0.61.0'");
    let codex = program(&place, "codex-acp", "exit 3");
    let listed = asked(&place, &["agents", "--json"]);
    assert_eq!(
        agent(&listed, "gemini"),
        &json!({
            "provider": "gemini", "displayName": "Gemini CLI", "description": "Google's coding agent",
            "status": "installed", "source": "catalog", "version": "0.61.0", "command": [gemini, "--acp"],
            "default": false, "atHost": null, "models": null, "installedBy": "path", "outdated": false,
            "package": {"kind": "npm", "name": "@google/gemini-cli", "version": "0.61.0"},
            "logIn": "run `gemini` and log in there, or set GEMINI_API_KEY", "registryId": "gemini",
            "website": "https://geminicli.com", "notes": agent(&listed, "gemini")["notes"],
        })
    );
    let listed_codex = agent(&listed, "codex");
    assert_eq!((&listed_codex["status"], &listed_codex["version"]), (&json!("installed"), &Value::Null));
    assert_eq!(listed_codex["command"], json!([codex]));
    let claude = agent(&listed, "claude");
    assert_eq!((&claude["status"], &claude["command"]), (&json!("missing"), &Value::Null));
    assert_eq!(claude["install"], "grove agents install claude");
    assert_eq!(claude["lookedFor"], json!(["claude-agent-acp", "claude-code-acp"]));
    let scripted = agent(&listed, "scripted");
    assert_eq!((&scripted["status"], &scripted["default"]), (&json!("built-in"), &json!(true)));
    assert!(!place.data().exists(), "asking leaves nothing behind, and starts nothing");

    let ran = run(&place, &["agents"]);
    assert_eq!(ran.code, Some(0));
    let mut lines = ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(lines.next().unwrap(), "AGENT NAME STATUS COMMAND");
    let shown: Vec<String> = lines.collect();
    for line in [
        "scripted Scripted built in".to_owned(),
        "claude Claude Code missing".to_owned(),
        "install: grove agents install claude".to_owned(),
        format!("gemini Gemini CLI 0.61.0 {} --acp", gemini.display()),
        format!("codex Codex installed {}", codex.display()),
    ] {
        assert!(shown.contains(&line), "no {line:?} in {shown:#?}");
    }
    assert!(ran.stderr.contains("uses scripted") && ran.stderr.contains("default-agent"), "{}", ran.stderr);
}

#[test]
fn a_host_that_runs_tells_the_models_of_its_agents() {
    let host = Host::start();
    for protocol in ["ahp", "v1"] {
        let ran = host.place.run(&["agents", "--protocol", protocol]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("models: scripted, "), "{}", ran.stdout);
        let ran = host.place.run(&["agents", "--json", "--protocol", protocol]);
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
        let scripted = agent(&listed, "scripted");
        assert_eq!((&scripted["atHost"], &scripted["models"][0]["id"]), (&json!(true), &json!("scripted")));
        assert_eq!(agent(&listed, "claude")["atHost"], false);
    }
}

#[tokio::test]
async fn a_host_offers_what_is_installed_and_configured_the_default_one_first() {
    let place = TestHome::new();
    program(&place, "gemini", "exit 1");
    program(&place, "qwen", "exit 1");
    let mine = program(&place, "mine", "exit 1");
    let toml =
        format!("[agents.mine]\ncommand = [{:?}, \"--acp\"]\nname = \"Mine\"\n[agents.qwen]\nenabled = false\n", mine);
    place.write("home/.config/grove/grove.toml", toml);
    let mut command = place.serve_command(&["--default-agent", "mine"]);
    command.env("PATH", place.path("bin"));
    let host = place.start(command);
    let mut client = host.connect("a").await;
    let params = json!({"protocolVersion": 1, "clientId": "a", "initialSubscriptions": ["agenthost:root"]});
    let result = client.get("initialize", params).await;
    let agents = result["snapshots"][0]["state"]["agents"].as_array().unwrap().clone();
    let offered: Vec<&Value> = agents.iter().map(|agent| &agent["provider"]).collect();
    assert_eq!(offered, ["mine", "scripted", "gemini"]);

    let ran = run(&place, &["agents", "--json"]);
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let at_host: Vec<&str> = listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|agent| agent["atHost"] == true)
        .map(|agent| agent["provider"].as_str().unwrap())
        .collect();
    assert_eq!(at_host, ["scripted", "gemini", "mine"]);
}

const FILE: &str = "# Mine.\nreplay-actions = 5 # few\n\n[agents.claude]\n# No key here.\npass-env = [\"MY_*\"]\n";

#[test]
fn add_and_rm_change_the_file_and_keep_what_the_person_wrote() {
    let place = TestHome::new();
    let file = place.write("home/.config/grove/grove.toml", FILE);
    fs::create_dir_all(place.data()).unwrap();
    let add = [
        "agents",
        "add",
        "mine",
        "--env",
        "A=b=c",
        "--env",
        "EMPTY=",
        "--pass-env",
        "TOKEN",
        "--name",
        "Mine",
        "--",
        "bin/mine",
        "--acp",
        "--json",
    ];
    let ran = run(&place, &add);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("added mine to {}\n", file.display()));
    assert!(ran.stderr.contains("cannot be run yet"), "{}", ran.stderr);
    let added = format!(
        "{FILE}\n[agents.mine]\nname = \"Mine\"\ncommand = [\"{}\", \"--acp\", \"--json\"]\n\
         env = {{ A = \"b=c\", EMPTY = \"\" }}\npass-env = [\"TOKEN\"]\n",
        place.path("bin/mine").display()
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), added);

    program(&place, "mine", "echo 7.0");
    let listed = asked(&place, &["agents", "--json"]);
    assert_eq!(
        (&agent(&listed, "mine")["version"], &agent(&listed, "mine")["source"]),
        (&json!("7.0"), &json!("file"))
    );

    let again = run(&place, &["agents", "add", "mine", "--", "x"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("[agents.mine] exists already"), "{}", again.stderr);
    assert_eq!(
        asked(&place, &["agents", "rm", "mine", "--json"]),
        json!({"removed": "mine", "file": file, "hostTold": false})
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), FILE);
    let gone = run(&place, &["agents", "rm", "mine"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(8), ""));
    assert!(gone.stderr.contains("has no agent \"mine\""), "{}", gone.stderr);
    assert!(run(&place, &["agents", "rm", "gemini"]).stderr.contains("enabled = false"));
}

#[test]
fn a_bad_name_variable_or_text_changes_nothing() {
    let place = TestHome::new();
    let file = place.write("home/.config/grove/grove.toml", FILE);
    for (args, words) in [
        (&["agents", "add", "My_Agent", "--", "x"][..], "small letters"),
        (&["agents", "add", "scripted", "--", "x"], "choose another"),
        (&["agents", "add", "mine", "--env", "A", "--", "x"], "NAME=VALUE"),
        (&["agents", "add", "mine", "--env", "A-B=c", "--", "x"], "NAME=VALUE"),
        (&["agents", "add", "mine", "--pass-env", "A=b", "--", "x"], "pass-env: `A=b`"),
        (&["agents", "add", "mine", "--name", "", "--", "x"], "name must be a text"),
        (&["agents", "add", "mine", "--", ""], "command must name a program"),
    ] {
        let ran = run(&place, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(ran.stderr.contains(words), "no {words} in {}", ran.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), FILE, "{args:?}");
    }
}

#[tokio::test]
async fn a_running_host_hears_of_agents_that_come_and_go() {
    let host = Host::start();
    let mut client = ahp::Client::connect(&host.ws, &host.token, "a").await;
    client.initialize(&["ahp-root://"]).await;
    let knows = |client: &ahp::Client| client.root().agents.iter().any(|agent| agent.provider == "mine");
    assert!(!knows(&client));
    let mine = program(&host.place, "mine", "echo 1.0");
    let ran = run(&host.place, &["agents", "add", "mine", "--", mine.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("has read the new configuration"), "{}", ran.stderr);
    client.until(knows).await;
    let file = host.place.home().join(".config/grove/grove.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "it may hold secrets");
    // An unreadable file changes nothing.
    let good = fs::read(&file).unwrap();
    fs::write(&file, "nonsense = 1").unwrap();
    host.signal(rustix::process::Signal::HUP);
    fs::write(&file, good).unwrap();
    assert_eq!(run(&host.place, &["agents", "rm", "mine"]).code, Some(0));
    client.until(|client| !knows(client)).await;
}

#[tokio::test]
async fn a_running_host_reads_its_limits_again() {
    let place = TestHome::new();
    let file = place.write("home/.config/grove/grove.toml", "[limits]\nsubscriptions = 1\n");
    let host = place.serve(&[]);
    let connect = async |id: &str| {
        let mut client = ahp::Client::connect(&host.ws, &host.token, id).await;
        client.initialize(&["ahp-root://"]).await;
        client
    };
    let mut client = connect("a").await;
    client.create_session("ahp-session:/s").await.unwrap();
    let refused = client.subscribe("ahp-session:/s").await.unwrap_err();
    assert_eq!(refused.data.unwrap()["limit"], "subscriptions");
    fs::write(&file, "[limits]\nsubscriptions = 0\n").unwrap();
    let checked = run(&host.place, &["config", "show"]);
    assert!(checked.stderr.contains("subscriptions must be a whole number from 1"), "{}", checked.stderr);
    fs::write(&file, "[limits.tokens.host]\nsubscriptions = 2\n").unwrap();
    host.signal(rustix::process::Signal::HUP);
    // The host reads the file when it has the signal.
    for number in 0.. {
        if connect(&format!("b{number}")).await.subscribe("ahp-session:/s").await.is_ok() {
            break;
        }
    }
}

/// A place whose `grove.toml` has an ACP agent `mine`. Dropping it cleans up, even after a failed test.
struct Mine(Background);

impl Mine {
    fn new() -> Self {
        let place = TestHome::new();
        let behavior = AgentBehavior { models: vec!["large".into(), "small".into()], ..AgentBehavior::default() };
        let toml = format!(
            "[agents.mine]\ncommand = [{:?}]\npass-env = [\"MINE_*\"]\nenv = {{ {BEHAVIOR_VARIABLE} = {:?}, SET = \"here\" }}\n",
            agent_program(),
            behavior.to_json()
        );
        place.write("home/.config/grove/grove.toml", toml);
        Self(Background(place))
    }

    fn place(&self) -> &TestHome {
        &self.0.0
    }

    /// Runs a command with secrets in its environment.
    fn run(&self, args: &[&str]) -> CommandResult {
        let mut command = self.place().grove(args);
        command.env("GROVE_DATA_DIR", self.place().data()).env("MINE_KEY", "passed").env("OTHER_KEY", "kept");
        CommandResult::from(command.output().unwrap())
    }

    fn done(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        // Its turns would continue without a host.
        self.run(&["start"]);
        self.run(&["stop", "--turns"]);
    }
}

#[test]
fn an_agent_of_the_file_works_and_leaves_its_log_and_its_models() {
    let mine = Mine::new();
    let steps = json!([
        {"stderr": "something is odd"}, {"env": "SET"}, {"env": "MINE_KEY"}, {"env": "OTHER_KEY"},
        {"env": "GROVE_DATA_DIR"}, {"say": "done"},
    ]);
    let ran = mine.run(&["run", "--agent", "mine", &prompt(&steps)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for said in ["SET is here", "MINE_KEY is passed", "OTHER_KEY is not set", "GROVE_DATA_DIR is not set", "done"] {
        assert!(ran.stdout.contains(said), "no {said} in {}", ran.stdout);
    }
    let session = ran.stderr.lines().find_map(|line| line.split_once("session ")).unwrap().1.to_owned();
    // Stderr takes another way than the answer.
    let deadline = Deadline::new("the log is empty");
    while !mine.done(&["logs", &session[..8]]).contains("something is odd") {
        deadline.check();
    }

    let deadline = Deadline::new("the host does not tell the agent's models");
    loop {
        let listed = mine.json(&["agents", "--json"]);
        let models: Vec<&Value> = agent(&listed, "mine")["models"].as_array().unwrap().iter().collect();
        if models.iter().map(|model| &model["id"]).eq(["large", "small"]) {
            break;
        }
        deadline.check();
    }
}

#[test]
fn stop_says_that_turns_go_on_and_ends_them_where_that_is_wanted() {
    let mine = Mine::new();
    let session = {
        let first = mine.run(&["run", "--agent", "mine", "hello"]);
        assert_eq!(first.code, Some(0), "{first:?}");
        first.stderr.lines().find_map(|line| line.split_once("session ")).unwrap().1.to_owned()
    };
    mine.done(&["send", &session, &prompt(&json!([{"say": "I wait"}, "hang"]))]);
    let deadline = Deadline::new("no turn runs");
    while mine.json(&["status", "--json"])["runningTurns"] != 1 {
        deadline.check();
    }
    let stopped = mine.done(&["stop"]);
    assert!(stopped.contains("1 turn goes on without the host"), "{stopped}");
    assert!(stopped.contains("grove start") && stopped.contains("--turns"), "{stopped}");

    mine.done(&["start"]);
    assert_eq!(mine.json(&["status", "--json"])["runningTurns"], 1, "it was picked up");
    let stopped = mine.json(&["stop", "--turns", "--json"]);
    assert_eq!((&stopped["turnsCancelled"], &stopped["turnsGoOn"]), (&json!(1), &json!(0)));
    mine.done(&["start"]);
    assert_eq!(mine.json(&["status", "--json"])["runningTurns"], 0);
}
