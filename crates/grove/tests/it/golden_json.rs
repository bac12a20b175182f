//! Goldens of `--json`: the members that programs read, of every command that has the flag.
//!
//! The commands run on copies of the data folders that `crates/server/tests/golden` keeps. What differs from run to run is
//! replaced (ids, ports, times of now), and so are texts for people, which may change. `GROVE_GOLDEN_WRITE=1` writes the
//! goldens again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use grove_agents::catalog::platform;
use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, agent_program};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::file_server::FileServer;
use crate::run::script;
use crate::support::*;

/// The variable that has goldens written again.
const WRITE: &str = "GROVE_GOLDEN_WRITE";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name)
}

/// A place with a data folder of an older version, and the store beside it.
fn place_of(scenario: &str) -> TestHome {
    let place = TestHome::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/golden/data").join(scenario);
    copy(&from.join("data"), &place.data());
    if from.join("other").exists() {
        copy(&from.join("other"), &place.path("other"));
    }
    let other = place.path("other");
    std::fs::create_dir_all(&other).unwrap();
    place.write("home/.config/grove/grove.toml", format!("[stores.other]\nfolder = \"{}\"\n", other.display()));
    place
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).unwrap()),
        }
    }
}

/// Goldens of one place: what its commands printed.
struct Goldens {
    place: TestHome,
    names: Names,
    /// Folders of this run, and what stands for them.
    roots: Roots,
    /// The commands that have a golden.
    covered: BTreeSet<String>,
    differences: Vec<String>,
}

impl Goldens {
    fn new(place: TestHome) -> Self {
        let roots = vec![(place.path("").display().to_string(), "ROOT")];
        Self { place, names: Names::default(), roots, covered: BTreeSet::new(), differences: Vec::new() }
    }

    /// Runs a command with `--json`, and compares what it prints with `json/<name>.json`.
    fn run(&mut self, name: &str, command: &str, args: &[&str]) -> Vec<Value> {
        let all: Vec<&str> = command.split(' ').chain(args.iter().copied()).chain(["--json"]).collect();
        let ran = self.place.run(&all);
        assert!(!ran.stdout.is_empty(), "{all:?} printed nothing: {ran:?}");
        let values = values(&ran.stdout);
        self.covered.insert(command.to_owned());
        // A new session may be ready before a command subscribes to it. The row of a chat follows the end of its turn, and
        // may come too late for a command that ends then.
        let may_be_missed =
            |value: &&Value| matches!(value["action"]["type"].as_str(), Some("session/ready" | "session/chatUpdated"));
        let compared: Vec<Value> = values.iter().filter(|value| !may_be_missed(value)).cloned().collect();
        self.compare(name, ran.code, &compared);
        values
    }

    /// The same under the name of the command.
    fn of(&mut self, command: &str, args: &[&str]) -> Vec<Value> {
        self.run(&command.replace(' ', "-"), command, args)
    }

    /// The same for a command of a session: `grove chats SESSION new`.
    fn within(&mut self, command: &str, session: &str, action: &str, args: &[&str]) -> Vec<Value> {
        self.covered.insert(format!("{command} {action}"));
        self.run(&format!("{command}-{action}"), command, &[&[session, action], args].concat())
    }

    /// `grove attach` prints envelopes while it is there: one of them, when it is.
    fn attach(&mut self, session: &str) {
        let mut command = self.place.grove(&["attach", "--json", session, "--data-dir"]);
        let mut child = command.arg(self.place.data()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let reader =
            std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let deadline = Deadline::new("nothing is attached");
        let line = (0..).find_map(|number| {
            deadline.check();
            // It hears of what happens after it has come.
            self.place.run(&["rename", session, &format!("Title {}", number % 2)]);
            lines.try_iter().find(|line| line.contains("session/titleChanged"))
        });
        child.kill().unwrap();
        child.wait().unwrap();
        drop(lines);
        reader.join().unwrap();
        let mut printed = values(&line.unwrap());
        printed[0]["action"]["title"] = "TITLE".into();
        self.covered.insert("attach".to_owned());
        self.compare("attach", None, &printed);
    }

    /// `grove serve` prints one object, and runs.
    fn serve(&mut self) {
        let mut child = self.place.serve_command(&[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.covered.insert("serve".to_owned());
        self.compare("serve", None, &values(&line));
    }

    fn compare(&mut self, name: &str, code: Option<i32>, values: &[Value]) {
        let values: Vec<Value> = values.iter().map(|value| self.names.normal(value, &self.roots)).collect();
        let text = serde_json::to_string_pretty(&json!({"code": code, "printed": values})).unwrap() + "\n";
        let path = golden("json").join(format!("{name}.json"));
        if std::env::var_os(WRITE).is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            return;
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = expected.lines().map(Some).chain(std::iter::repeat(None));
        let found = text.lines().map(Some).chain(std::iter::repeat(None));
        let pairs = lines.zip(found).enumerate().take_while(|(_, pair)| *pair != (None, None));
        if let Some((number, (expected, found))) = pairs.into_iter().find(|(_, (a, b))| a != b) {
            self.differences.push(format!(
                "{} differs, first in line {}:\n  expected {}\n  found    {}",
                path.display(),
                number + 1,
                expected.unwrap_or("(the end)"),
                found.unwrap_or("(the end)"),
            ));
        }
    }

    /// Fails with all differences.
    fn finish(self) -> BTreeSet<String> {
        assert!(
            self.differences.is_empty(),
            "{}\nMembers of --json are kept for good: fix the code. If the change is meant, {WRITE}=1 writes the goldens again.",
            self.differences.join("\n")
        );
        self.covered
    }
}

/// The JSON values of an output, whether one a line or one over many.
fn values(text: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.collect::<Result<Vec<_>, _>>().unwrap_or_else(|error| panic!("{error}: {text}"))
}

type Roots = Vec<(String, &'static str)>;

/// Names that differ in each run, numbered as they come.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn normal(&mut self, value: &Value, roots: &Roots) -> Value {
        match value {
            Value::Object(members) => {
                let one = |(key, value): (&String, &Value)| (key.clone(), self.member(key, value, roots));
                Value::Object(members.iter().map(one).collect())
            }
            Value::Array(items) => items.iter().map(|item| self.normal(item, roots)).collect(),
            Value::String(text) => Value::String(self.text(text, roots)),
            // Milliseconds since 1970, and sequence numbers, which follow the clock. Goldens were made in 2023.
            Value::Number(number) if number.as_u64().is_some_and(|number| number > 1_000_000_000_000_000) => {
                json!("SEQ")
            }
            Value::Number(number) if number.as_u64().is_some_and(|number| number > 1_750_000_000_000) => json!("NOW"),
            other => other.clone(),
        }
    }

    fn member(&mut self, key: &str, value: &Value, roots: &Roots) -> Value {
        match (key, value) {
            ("pid" | "milliseconds" | "duration" | "ranMs" | "bytes", Value::Number(_)) => json!(key.to_uppercase()),
            ("version" | "agentVersion", Value::String(_)) => json!("VERSION"),
            // Texts for people.
            ("message" | "next" | "description" | "install" | "hint" | "error", Value::String(_)) => json!("TEXT"),
            _ => self.normal(value, roots),
        }
    }

    fn text(&mut self, text: &str, roots: &Roots) -> String {
        let named = |text: String, (folder, name): &(String, &str)| text.replace(folder.trim_end_matches('/'), name);
        let text = roots.iter().fold(text.to_owned(), named);
        let text = match text.strip_prefix("ahp-chat://default/") {
            Some(encoded) => format!("ahp-chat://default/{}", decoded(encoded)),
            None => text,
        };
        if is_time(&text) {
            return if text.starts_with("2023-") { text } else { "NOW".to_owned() };
        }
        let mut normal = String::new();
        let mut word = String::new();
        for behavior in text.chars().chain(['\0']) {
            if behavior.is_ascii_hexdigit() || behavior == '-' {
                word.push(behavior);
                continue;
            }
            normal.push_str(&self.word(&word));
            word.clear();
            if behavior != '\0' {
                normal.push(behavior);
            }
        }
        without_ports(&normal)
    }

    /// Ids and secrets are hexadecimal.
    fn word(&mut self, word: &str) -> String {
        if word.len() != 8 && word.len() < 32 {
            return word.to_owned();
        }
        let number = self.0.len() + 1;
        self.0.entry(word.to_owned()).or_insert_with(|| format!("ID-{number}")).clone()
    }
}

fn is_time(text: &str) -> bool {
    let shape: String = text.chars().take(19).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00"
}

fn decoded(encoded: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(encoded);
    bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| encoded.to_owned())
}

fn without_ports(text: &str) -> String {
    let mut pieces = text.split("127.0.0.1:");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        format!("{text}127.0.0.1:PORT{}", piece.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
}

/// Every command that has `--json`, from the completions of bash.
fn commands_with_json(place: &TestHome) -> BTreeSet<String> {
    let completions = place.grove(&["completions", "bash"]).output().unwrap();
    let text = String::from_utf8(completions.stdout).unwrap();
    let (mut command, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("grove__subcmd__").and_then(|name| name.strip_suffix(')')) {
            command = name.replace("__subcmd__", " ");
        } else if let Some(options) = line.strip_prefix("opts=")
            && options.split([' ', '"']).any(|option| option == "--json")
        {
            found.insert(command.clone());
        }
    }
    found
}

#[test]
fn the_json_of_every_command_keeps_its_members() {
    let mut covered = sessions_and_trees();
    covered.extend(turns());
    covered.extend(life_of_a_host());
    covered.extend(known_agents());
    covered.extend(maintenance());
    covered.extend(policy());
    let all = commands_with_json(&TestHome::new());
    assert!(all.len() > 40, "{all:?}");
    let missed: Vec<_> = all.difference(&covered).collect();
    assert!(missed.is_empty(), "commands without a golden: {missed:?}");
}

/// An audit log: an older file, and the newest with a line that was cut.
const AUDITED_BEFORE: &str = r#"{"time":1600000000000,"token":"host","address":"127.0.0.1:5000","action":"log-in","operation":"initialize","outcome":"done"}
{"time":1700000000000,"token":"","address":"10.0.0.2:5000","action":"log-in","operation":"GET /ws","detail":"wrong token number 1 of this address within a minute","outcome":"refused","reason":"the token is wrong"}
"#;
const AUDITED: &str = r#"{"time":1700000000001,"token":"phone","client":"a","address":"process 7 of user 1000","action":"approve","operation":"chat/toolCallConfirmed","session":"scripted:/s","detail":"make","outcome":"done"}
{"time":1700000000002,"token":"host","client":"b","addr"#;

/// Commands on finished sessions. The order matters: some change what later ones print.
fn sessions_and_trees() -> BTreeSet<String> {
    let mut goldens = Goldens::new(place_of("tree"));
    goldens.of("check", &[]);
    let log = goldens.place.data().join("session-state/s/events.jsonl").display().to_string();
    goldens.of("inspect", &[&log]);
    goldens.run("check-file", "check", &[&log]);
    goldens.place.write("data/audit/audit.1.jsonl", AUDITED_BEFORE);
    goldens.place.write("data/audit/audit.jsonl", AUDITED);
    goldens.of("audit", &["--since", "2023-11-14"]);
    let file = goldens.place.write("a.txt", "text\n").display().to_string();
    let out = goldens.place.path("out").display().to_string();
    let host = goldens.place.serve(&[]);
    goldens.of("ls", &[]);
    goldens.run("ls-all", "ls", &["--all"]);
    for command in ["tree", "show", "permissions", "chats", "plan", "files", "checkpoints", "wait"] {
        goldens.of(command, &["s"]);
    }
    let rows = goldens.run("tree-user-only", "tree", &["s", "--filter", "user-only"]);
    let message = rows[0]["rows"][1]["id"].as_str().unwrap().to_owned();
    goldens.within("chats", "s", "ls", &[]);
    let new = goldens.within("chats", "s", "new", &["--title", "Side", &script(&json!([{"say": "beside"}]))]);
    let chat = new[0]["chat"].as_str().unwrap().to_owned();
    assert_eq!(goldens.place.run(&["wait", "s", "--chat", &chat]).code, Some(0));
    goldens.within("chats", "s", "rm", &["Side", "--yes"]);
    goldens.within("files", "s", "ls", &[]);
    goldens.within("files", "s", "get", &["notes.md"]);
    goldens.within("files", "s", "put", &[&file]);
    goldens.within("files", "s", "rm", &["a.txt"]);
    goldens.of("rename", &["s", "Another name"]);
    let folder = goldens.place.path("").display().to_string();
    goldens.of("cd", &["s", &folder]);
    goldens.of("label", &["s", "here", "there"]);
    goldens.of("goto", &["s", "start"]);
    goldens.of("merge", &["s", "there"]);
    goldens.of("compact", &["s"]);
    goldens.of("fork", &["s", "--title", "Again"]);
    goldens.of("branch", &["s", &message]);
    goldens.of("export", &["s", "--format", "jsonl", "--out", &out]);
    goldens.of("migrate", &["s", "--to", "other"]);
    goldens.of("read", &["s"]);
    goldens.of("archive", &["s"]);

    // A second host, which gets a session.
    let second = TestHome::new();
    goldens.roots.push((second.path("").display().to_string(), "SECOND"));
    let second_host = second.serve(&[]);
    let socket = format!("unix:{}", second.data().join("host.sock").display());
    assert_eq!(goldens.place.run(&["hosts", "add", "second", &socket]).code, Some(0));
    goldens.of("hosts", &[]);
    goldens.of("move", &["n", "second"]);
    goldens.attach("s");
    goldens.of("rm", &["s", "--yes"]);
    goldens.run("ls-after-rm", "ls", &["--all"]);
    for (name, command, args) in [
        ("error-no-session", "show", &["nothing"][..]),
        ("error-no-permission", "approve", &["n"]),
        ("error-no-entry", "goto", &["scripted:/n", "nothing"]),
        ("error-no-host", "ls", &["--host", "nothing"]),
        ("error-no-store", "run", &["--store", "nothing", "hello"]),
    ] {
        goldens.run(name, command, args);
    }
    let log = goldens.place.path("out/s.jsonl").display().to_string();
    drop((host, second_host));
    let mut imports = Goldens::new(TestHome::new());
    let cwd = imports.place.home().display().to_string();
    imports.roots.push((goldens.place.path("").display().to_string(), "FIRST"));
    let host = imports.place.serve(&[]);
    imports.of("import", &[&log, "--cwd", &cwd]);
    drop(host);
    &imports.finish() | &goldens.finish()
}

/// Commands on turns that an older host left open, and on new ones.
fn turns() -> BTreeSet<String> {
    let mut goldens = Goldens::new(place_of("killed"));
    let host = goldens.place.serve(&[]);
    goldens.run("wait-waiting", "wait", &["waiting"]);
    goldens.run("show-interrupted", "show", &["running"]);
    goldens.of("approve", &["waiting"]);
    goldens.run("wait-approved", "wait", &["waiting"]);
    goldens.run("show-approved", "show", &["waiting"]);
    goldens.of("answer", &["asking", "blue"]);
    goldens.run("wait-answered", "wait", &["asking"]);
    goldens.run("show-answered", "show", &["asking"]);
    let permission = json!([{"tool": {"name": "shell", "input": "ls", "permission": "shell"}}]);
    goldens.of("send", &["waiting", &script(&permission)]);
    assert_eq!(goldens.place.run(&["wait", "waiting"]).code, Some(9));
    goldens.of("deny", &["waiting"]);
    assert_eq!(goldens.place.run(&["wait", "waiting"]).code, Some(0));
    assert_eq!(goldens.place.run(&["send", "waiting", &script(&permission)]).code, Some(0));
    assert_eq!(goldens.place.run(&["wait", "waiting"]).code, Some(9));
    goldens.run("approve-offers", "approve", &["waiting", "--always", "session"]);
    goldens.run("approve-always", "approve", &["waiting", "--always", "session", "--rule", "1"]);
    assert_eq!(goldens.place.run(&["wait", "waiting"]).code, Some(0));
    assert_eq!(goldens.place.run(&["send", "waiting", &script(&json!([{"hang": true}]))]).code, Some(0));
    goldens.of("cancel", &["waiting"]);
    let steps = json!([{"reason": "thinking"}, {"say": "hello"}, {"tool": {"name": "look", "output": "found"}},
        {"usage": {"inputTokens": 3, "outputTokens": 4}}]);
    goldens.of("run", &[&script(&steps)]);
    goldens.run("run-v1", "run", &["--protocol", "v1", &script(&steps)]);
    goldens.run("run-failed", "run", &[&script(&json!([{"fail": "out of luck"}]))]);
    drop(host);
    goldens.finish()
}

/// Commands that need no session.
fn life_of_a_host() -> BTreeSet<String> {
    let mut goldens = Goldens::new(TestHome::new());
    for command in ["config show", "doctor"] {
        goldens.of(command, &[]);
    }
    goldens.of("history scan", &[]);
    goldens.run("error-no-host-runs", "status", &[]);
    goldens.serve();
    let background = Background(goldens.place.clone());
    goldens.of("start", &[]);
    goldens.run("start-again", "start", &[]);
    goldens.of("status", &[]);
    goldens.of("token add", &["phone", "--can", "read,approve", "--expires", "30d"]);
    goldens.of("token ls", &[]);
    goldens.of("token rotate", &["phone"]);
    goldens.of("token revoke", &["phone"]);
    goldens.run("error-no-token", "token revoke", &["phone"]);
    goldens.place.write("home/.config/grove/grove.toml", "");
    goldens.covered.insert("agents add".to_owned());
    let added = goldens.place.run(&["agents", "add", "mine", "--json", "--", "mine-agent", "--acp"]);
    goldens.compare("agents-add", added.code, &values(&added.stdout));
    goldens.of("agents rm", &["mine"]);
    goldens.of("stop", &[]);
    drop(background);
    goldens.finish()
}

/// Commands about the agents of a catalog.
fn known_agents() -> BTreeSet<String> {
    let place = TestHome::new();
    let program = format!("#!/bin/sh\nexec {} \"$@\"\n", agent_program().display());
    let sha256 = hex::encode(Sha256::digest(&program));
    let server = FileServer::start([("tested-agent", program.into_bytes())]);
    let behavior = AgentBehavior {
        auth_methods: vec!["browser".to_owned()],
        store: Some(place.path("store")),
        ..AgentBehavior::default()
    };
    let behavior = place.write("behavior.json", behavior.to_json()).display().to_string();
    let catalog = |version: &str| {
        let text = format!(
            "format = 1\ndate = \"2099-01-01\"\n[[agents]]\nid = \"tested\"\nregistry-id = \"tested-acp\"\nname = \"Tested\"\n\
             description = \"for tests\"\nwebsite = \"https://example.org\"\ncommands = [\"tested-agent\"]\nargs = [\"--acp\"]\n\
             env = {{ {BEHAVIOR_VARIABLE} = {behavior:?} }}\nlog-in = \"in a browser\"\nnotes = [\"It is for tests.\"]\n\
             [agents.package]\nkind = \"binary\"\nversion = {version:?}\n[agents.package.targets.{}]\nurl = \"{}\"\n\
             sha256 = \"{sha256}\"\nprogram = \"tested-agent\"\n",
            platform(),
            server.url("tested-agent")
        );
        place.write(&format!("catalog-{version}.toml"), text).display().to_string()
    };
    assert_eq!(place.run(&["agents", "update", &catalog("1.0.0"), "--yes"]).code, Some(0));
    let mut goldens = Goldens::new(place.clone());
    goldens.run("agents-missing", "agents ls", &[]);
    goldens.of("agents install", &["tested", "--yes"]);
    goldens.of("agents", &[]);
    goldens.of("agents update", &[&catalog("1.1.0"), "--yes"]);
    goldens.of("agents show", &["tested"]);
    goldens.of("agents login", &["tested", "browser"]);
    goldens.run("agents-login-list", "agents login", &["tested", "--list"]);
    goldens.of("agents sessions", &["tested"]);
    goldens.of("agents uninstall", &["tested", "--yes"]);
    goldens.run("error-no-agent", "agents uninstall", &["tested", "--yes"]);
    goldens.finish()
}

/// Commands about the files of a data folder.
fn maintenance() -> BTreeSet<String> {
    let mut goldens = Goldens::new(place_of("events"));
    goldens.of("du", &[]);
    goldens.place.write("data/session-state/x~import/events.jsonl", "left");
    goldens.of("gc", &["--dry-run"]);
    goldens.finish()
}

/// An audit log with two answers that say what was asked for.
const ANSWERED: &str = r#"{"time":1700000000001,"token":"host","address":"a","action":"approve","operation":"chat/toolCallConfirmed","session":"claude:/s","detail":"ls -l","request":{"agent":"claude","call":"c1","directory":"/w","kind":"shell","subject":["ls -l"]},"outcome":"done"}
{"time":1700000000002,"token":"host","address":"a","action":"approve","operation":"chat/toolCallConfirmed","session":"claude:/s","detail":"rm x","request":{"agent":"claude","call":"c2","directory":"/w","kind":"shell","subject":["rm x"]},"outcome":"done"}
{"time":1700000000003,"token":"host","address":"a","action":"approve","operation":"chat/toolCallConfirmed","session":"claude:/s","detail":"ls -l","request":{"agent":"claude","call":"c3","directory":"/w","kind":"shell","subject":["ls -l"]},"outcome":"done"}
"#;

/// Commands about permission rules, which need no host.
fn policy() -> BTreeSet<String> {
    let mut goldens = Goldens::new(TestHome::new());
    let place = goldens.place.clone();
    place.write(
        "home/.config/grove/grove.toml",
        "[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n\n[[policy.rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n\
         agent = \"claude\"\nreason = \"people delete\"\n",
    );
    place.write("work/.grove/policy.toml", "[[rules]]\nask = [\"read\", \"edit\"]\npath = \".env\"\n");
    place.write("data/audit/audit.jsonl", ANSWERED);
    let settings = r#"{"permissions":{"allow":["Bash(ls:*)"],"deny":["Task(x)"]}}"#;
    let settings = place.write("settings.json", settings).display().to_string();
    let work = place.path("work").display().to_string();
    goldens.of("policy show", &[&work]);
    goldens.of("policy trust", &[&work]);
    goldens.of("policy check", &["rm x", "--folder", &work]);
    goldens.run("policy-check-read", "policy check", &["--read", ".env", "--folder", &work]);
    goldens.run("policy-check-tool", "policy check", &["--tool", "web/get", "--agent", "goose", "--folder", &work]);
    goldens.of("policy import", &["--from", "claude", &settings]);
    goldens.of("policy test", &["--since", "5000d"]);
    goldens.of("policy suggest", &["--since", "5000d"]);
    goldens.finish()
}

#[test]
fn every_key_that_grove_toml_has_had_loads() {
    let mut goldens = Goldens::new(TestHome::new());
    let text = std::fs::read_to_string(golden("grove.toml")).unwrap();
    let file = goldens.place.write("grove.toml", text).display().to_string();
    let mut command = goldens.place.grove(&["config", "show", "--json", "--config", &file]);
    let ran = CommandResult::from(command.env_remove("GROVE_LISTEN").output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = values(&ran.stdout);
    let of_file = shown[0].as_object().unwrap().values().filter(|setting| setting["source"]["kind"] == "file").count();
    assert_eq!(of_file, shown[0].as_object().unwrap().len(), "the file has every key: {}", ran.stdout);
    goldens.compare("../config-show", ran.code, &shown);
    goldens.finish();
}
