//! Rules instead of questions.

use serde_json::json;

use crate::run::script;
use crate::support::*;

#[test]
fn rules_answer_permission_requests_before_anybody_is_asked() {
    let place = TestHome::new();
    place.write(
        "home/.config/grove/grove.toml",
        "[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n\n[[policy.rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n\
         reason = \"people delete\"\n",
    );
    let host = place.serve(&[]);
    let ask = |command: &str| {
        let steps = json!([{"tool": {"name": "sh", "input": command, "output": "ran", "permission": "shell"}}, {"say": "done"}]);
        host.place.run(&["run", "--no-start", &script(&steps)])
    };
    let allowed = ask("ls -l && ls");
    assert_eq!((allowed.code, allowed.stdout.trim()), (Some(0), "done"), "{}", allowed.stderr);
    assert!(allowed.stderr.contains("ran"), "{}", allowed.stderr);
    let denied = ask("ls; r''m -rf x");
    assert_eq!(denied.code, Some(0), "{}", denied.stderr);
    assert!(!denied.stderr.contains("ran"), "{}", denied.stderr);

    let checked = |command: &str| host.place.run(&["policy", "check", command]).stdout;
    assert!(checked("ls && make").starts_with("ask: no rule allows make"), "{}", checked("ls && make"));
    assert!(checked("sh -c 'rm x'").starts_with("deny: deny shell \"rm *\""), "{}", checked("sh -c 'rm x'"));
    let shown = host.place.run(&["policy", "show"]).stdout;
    assert!(shown.contains("allow shell \"ls *\"") && shown.contains("grove.toml:1"), "{shown}");
}

#[test]
fn check_judges_paths_addresses_and_tools_of_any_agent() {
    let place = TestHome::new();
    place.write(
        "home/.config/grove/grove.toml",
        "[[policy.rules]]\ndeny = \"read\"\npath = \".env\"\n\n[[policy.rules]]\nallow = \"edit\"\npath = \"src/**\"\n\n\
         [[policy.rules]]\nallow = \"fetch\"\nhost = \"docs.rs\"\n\n[[policy.rules]]\nallow = \"mcp\"\ntool = \"web/*\"\n\
         agent = \"goose\"\n",
    );
    let work = place.path("work");
    std::fs::create_dir_all(work.join("src")).unwrap();
    std::os::unix::fs::symlink("/etc", work.join("src/link")).unwrap();
    let work = work.display().to_string();
    let check = |args: &[&str]| {
        let ran = place.run(&[&["policy", "check", "--folder", &work], args].concat());
        ran.stdout.split(':').next().unwrap_or_default().trim().to_owned()
    };
    assert_eq!(check(&["--read", ".env"]), "deny");
    assert_eq!(check(&["--edit", "src/a.rs"]), "allow");
    assert_eq!(check(&["--edit", "src/link/passwd"]), "ask", "a link leads out of src");
    assert_eq!(check(&["--fetch", "https://docs.rs/x"]), "allow");
    assert_eq!(check(&["--fetch", "https://docs.rs.evil.com/x"]), "ask");
    assert_eq!(check(&["--tool", "web/get", "--agent", "goose"]), "allow");
    assert_eq!(check(&["--tool", "web/get"]), "ask", "the rule is for another agent");
    assert_eq!(place.run(&["policy", "check"]).code, Some(2), "nothing to judge");
    assert_eq!(place.run(&["policy", "check", "ls", "--read", "x"]).code, Some(2), "two things to judge");
}

/// A log of Claude Code in which a person refused a command.
const REFUSED: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"h1","cwd":"WORK","timestamp":"NOW","message":{"role":"user","content":"Clean up"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"h1","cwd":"WORK","timestamp":"NOW","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make clean"}}]}}
{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"h1","cwd":"WORK","timestamp":"NOW","toolDenialKind":"user-rejected","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"The user doesn't want to proceed with this tool use."}]}}
"#;

#[test]
fn test_replays_session_logs_the_audit_log_and_histories_and_counts_a_request_once() {
    let place = TestHome::new();
    let other = place.path("other");
    let work = place.path("work");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::create_dir_all(&work).unwrap();
    let rules = "[[policy.rules]]\nallow = \"shell\"\ncommand = \"make *\"\n";
    let stores = format!("\n[stores.other]\nfolder = \"{}\"\n", other.display());
    place.write("home/.config/grove/grove.toml", stores.clone());
    let host = place.serve(&[]);
    let cwd = work.display().to_string();
    // One request in each store, and one in a chat beside the main one. The audit log has all of them too.
    let ask = |input: &str| {
        script(&json!([{"tool": {"name": "sh", "input": input, "output": "ran", "permission": "shell"}}]))
    };
    let run = |args: &[&str], code: i32| {
        let ran = host.place.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
    };
    let hello = script(&json!([{"say": "hello"}]));
    for store in ["local", "other"] {
        run(&["run", "--no-start", "--cwd", &cwd, "--store", store, &hello], 0);
        run(&["send", "@last", &ask(&format!("make {store}"))], 0);
        run(&["wait", "@last"], 9);
        run(&["approve"], 0);
        run(&["wait", "@last"], 0);
    }
    run(&["chats", "@last", "new", "--title", "Aside", &ask("make aside")], 0);
    run(&["wait", "@last", "--chat", "Aside"], 9);
    run(&["approve"], 0);
    run(&["wait", "@last", "--chat", "Aside"], 0);
    // One on a branch that was abandoned.
    let hello = script(&json!([{"say": "hello"}]));
    run(&["send", "@last", &ask("make abandoned")], 0);
    run(&["wait", "@last"], 9);
    run(&["approve"], 0);
    run(&["wait", "@last"], 0);
    run(&["goto", "@last", "root"], 0);
    run(&["send", "@last", &hello], 0);
    run(&["wait", "@last"], 0);
    drop(host);

    let now = grove_wire::ahp::time::text(grove_host::Clock::now(&grove_host::SystemClock));
    let log = REFUSED.replace("WORK", &cwd).replace("NOW", &now);
    place.write("home/.claude/projects/-work/h1.jsonl", log);
    place.write("home/.config/grove/grove.toml", format!("{rules}{stores}"));
    let report = |args: &[&str]| {
        let ran = place.run(&[&["policy", "test"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let read = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let all = read(report(&["--json"]));
    assert_eq!(all["sources"], json!({"grove": 4, "claude": 1}), "{all}");
    assert_eq!((&all["agreed"], &all["differed"]), (&json!(4), &json!(1)), "{all}");
    let differing = &all["differences"][0];
    assert_eq!((&differing["answer"], &differing["session"]), (&json!("denied"), &json!("h1")), "{all}");
    assert_eq!(differing["request"]["command"], "make clean", "{all}");
    let shown = report(&[]);
    assert!(shown.lines().next().unwrap().starts_with("5 answered permission requests"), "{shown}");
    assert!(shown.contains("make clean") && shown.contains("denied") && shown.contains("h1"), "{shown}");

    // Without the logs of the stores, the audit log has the requests.
    std::fs::remove_dir_all(place.data().join("session-state")).unwrap();
    std::fs::remove_dir_all(&other).unwrap();
    assert_eq!(read(report(&["--json"]))["sources"], json!({"audit": 4, "claude": 1}));

    // The rules of a repository count for its requests, as far as they are trusted.
    place.write("home/.config/grove/grove.toml", "");
    let grove = place.write("work/.grove/policy.toml", rules.replace("policy.rules", "rules"));
    assert_eq!(read(report(&["--json"]))["allowed"], 0, "nobody has trusted {}", grove.display());
    assert_eq!(place.run(&["policy", "trust", &cwd]).code, Some(0));
    assert_eq!(read(report(&["--json"]))["allowed"], 5);
}

/// A host, and a session in a folder with a repository.
struct RepositorySession {
    host: Host,
    work: String,
}

impl RepositorySession {
    fn start() -> Self {
        let place = TestHome::new();
        std::fs::create_dir_all(place.path("work/.git")).unwrap();
        let work = place.path("work").display().to_string();
        let host = place.serve(&[]);
        let session = Self { host, work };
        session.run(&["run", "--no-start", "--cwd", &session.work, &script(&json!([{"say": "hello"}]))], 0);
        session
    }

    fn run(&self, args: &[&str], code: i32) -> String {
        let ran = self.host.place.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Has the agent ask for a command. The session waits for a person (9), or is done (0).
    fn asks(&self, command: &str, code: i32) {
        let steps = json!([{"tool": {"name": "sh", "input": command, "output": "ran", "permission": "shell"}}]);
        self.run(&["send", "@last", &script(&steps)], 0);
        self.run(&["wait", "@last"], code);
    }

    fn deny(&self) {
        self.run(&["deny"], 0);
        self.run(&["wait", "@last"], 0);
    }
}

#[test]
fn rules_of_a_repository_answer_once_a_person_has_trusted_exactly_that_content() {
    let session = RepositorySession::start();
    let place = &session.host.place;
    let rules =
        "[[rules]]\nallow = \"shell\"\ncommand = \"make *\"\n\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n";
    place.write("work/.grove/policy.toml", rules);
    session.asks("make", 9);
    session.deny();
    session.asks("rm x", 0);
    session.run(&["policy", "trust", &session.work], 0);
    session.asks("make", 0);
    place.write("work/.grove/policy.toml", format!("{rules}\n[[rules]]\nallow = \"any\"\n"));
    session.asks("make", 9);
    session.deny();
    session.asks("rm x", 0);
}

#[test]
fn approving_always_shows_the_rules_and_stores_the_chosen_one() {
    let session = RepositorySession::start();
    let place = &session.host.place;
    session.asks("make all -j2", 9);
    let listed = session.run(&["approve", "--always", "repository"], 0);
    assert!(listed.contains("1 allow shell \"make all -j2\" for this repository"), "{listed}");
    assert!(listed.contains("    command = \"make all *\""), "{listed}");
    let file = place.path("work/.grove/policy.toml");
    assert!(!file.exists(), "listing stores nothing");
    session.run(&["approve", "--always", "repository", "--rule", "3"], 8);
    let stored = session.run(&["approve", "--always", "repository", "--rule", "2"], 0);
    assert!(stored.starts_with("always: allow shell \"make all *\""), "{stored}");
    session.run(&["wait", "@last"], 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "[[rules]]\nallow = \"shell\"\ncommand = \"make all *\"\n");
    session.asks("make all", 0);

    // An agent that adds to the file loses the trust, and its addition is not trusted with the next rule.
    place.write("work/.grove/policy.toml", format!("{text}\n[[rules]]\nallow = \"any\"\n"));
    session.asks("make all", 9);
    let refused = place.run(&["approve", "--always", "repository", "--rule", "1"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("grove policy trust"), "{}", refused.stderr);
    session.run(&["approve", "--always", "session", "--rule", "1"], 0);
    session.run(&["wait", "@last"], 0);
    session.asks("make all", 0);
    let listed = session.run(&["permissions", "@last"], 0);
    assert!(listed.contains("command = \"make all\""), "{listed}");
    session.run(&["permissions", "@last", "--revoke"], 0);

    session.asks("make all", 9);
    place.write("home/.config/grove/grove.toml", "# Mine.\nlisten = \"127.0.0.1:0\" # any\n");
    session.run(&["approve", "--always", "everywhere", "--rule", "1"], 0);
    session.run(&["wait", "@last"], 0);
    let text = std::fs::read_to_string(place.path("home/.config/grove/grove.toml")).unwrap();
    assert!(text.starts_with("# Mine.\nlisten = \"127.0.0.1:0\" # any\n"), "{text}");
    assert!(text.contains("[[policy.rules]]\nallow = \"shell\"\ncommand = \"make all\"\n"), "{text}");
}
