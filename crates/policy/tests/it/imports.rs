//! Imports from other tools.

use grove_policy::import::{Import, ImportError, import_claude, import_copilot, import_copilot_pattern};
use grove_policy::{Policy, RequestAction, RuleSet, Verdict};

use crate::{request, shell};

fn lines(import: &Import) -> Vec<String> {
    import.rules.iter().map(ToString::to_string).collect()
}

#[test]
fn permissions_of_claude_code_are_taken_over() {
    let text = r#"{"model": "x", "permissions": {
        "allow": ["Bash(npm run test:*)", "Bash(git log *)", "Bash(git * main)", "Bash(ls*)", "Bash(make test)", "Read(//opt/x/**)",
                  "Edit(src/**)", "Edit(/docs/**)", "WebFetch(domain:example.com)", "mcp__github__get_issue", "mcp__notes",
                  "WebSearch", "Read"],
        "ask": ["Bash(git push:*)", "Write"],
        "deny": ["Read(./.env)", "Read(./.env.*)", "Read(~/.ssh/**)", "Bash(curl:*)", "Read(secrets/[a-z]*)"],
        "additionalDirectories": ["/data/shared", "../docs"], "defaultMode": "acceptEdits",
        "disableBypassPermissionsMode": "disable"}}"#;
    let import = import_claude(text).unwrap();
    assert_eq!(
        lines(&import),
        [
            "deny read/edit \"./.env\"",
            "deny read/edit \"./.env.*\"",
            "deny read/edit \"~/.ssh/**\"",
            "deny shell \"curl *\"",
            "ask shell \"git push *\"",
            "ask edit",
            "allow shell \"npm run test *\"",
            "allow shell \"git log *\"",
            "allow shell \"git * main\"",
            "allow shell \"ls* *\"",
            "allow shell \"make test\"",
            "allow read \"/opt/x/**\"",
            "allow edit \"src/**\"",
            "allow edit \"./docs/**\"",
            "allow fetch \"example.com\"",
            "allow mcp \"github/get_issue\"",
            "allow mcp \"notes/*\"",
            "allow read",
            "allow read \"/data/shared/**\"",
            "allow edit \"**\"",
        ]
    );
    let skipped: Vec<&str> = import.skipped.iter().map(|entry| entry.entry.as_str()).collect();
    assert_eq!(
        skipped,
        ["Read(secrets/[a-z]*)", "WebSearch", "\"../docs\"", "disableBypassPermissionsMode: \"disable\""]
    );
    let policy = Policy::from_iter([RuleSet::of_session(import.rules)]);
    assert_eq!(policy.judge(&shell("npm run test -- x && lsof -i")).verdict, Verdict::Allow);
    assert_eq!(policy.judge(&shell("npm run tests")).verdict, Verdict::Ask);
    assert_eq!(policy.judge(&shell("git log; curl x")).verdict, Verdict::Deny);
    assert_eq!(policy.judge(&request(RequestAction::Read { paths: vec!["docs/a".into()] })).verdict, Verdict::Allow);
    assert_eq!(
        policy.judge(&request(RequestAction::Edit { paths: vec!["/w/app/docs/a".into()] })).verdict,
        Verdict::Ask
    );
}

#[test]
fn patterns_of_the_copilot_cli_are_taken_over() {
    let line = |text: &str| import_copilot_pattern(text, Verdict::Allow).map(|rule| rule.to_string());
    for (text, rule) in [
        ("shell", "allow shell"),
        ("shell(git:*)", "allow shell \"git *\""),
        ("shell(git push)", "allow shell \"git push\""),
        ("write", "allow edit"),
        ("write(src/**)", "allow edit \"src/**\""),
        ("read", "allow read"),
        ("url(github.com)", "allow fetch \"github.com\""),
        ("url(https://docs.rs/)", "allow fetch \"docs.rs\""),
        ("MyServer(my_tool)", "allow mcp \"MyServer/my_tool\""),
        ("MyServer", "allow mcp \"MyServer/*\""),
    ] {
        assert_eq!(line(text).as_deref(), Ok(rule), "{text}");
    }
    for text in ["shell(a && b)", "url(https://github.com/a/b)", "memory", "shell(g*t)", "a(b", ""] {
        assert!(line(text).is_err(), "{text}");
    }
    let managed = r#"{"managedSettings": {"permissions": {"deny": ["shell(git push:*)"], "ask": ["write"],
        "allow": ["shell(git:*)", "memory"], "disableBypassPermissionsMode": "disable"}}}"#;
    let import = import_copilot(managed).unwrap();
    assert_eq!(lines(&import), ["deny shell \"git push *\"", "ask edit", "allow shell \"git *\""]);
    assert_eq!(import.skipped.len(), 2);
    let config = r#"{"allowed_urls": ["https://docs.rs"], "deniedUrls": ["evil.com", "https://a.com/x"]}"#;
    assert_eq!(
        lines(&import_copilot(config).unwrap()),
        ["allow fetch \"docs.rs\"", "deny fetch \"evil.com\"", "ask fetch \"a.com\""]
    );
    let stored = r#"{"locations": {"/w": {"tool_approvals": [{"kind": "commands", "commandIdentifiers": ["npm test"]},
        {"kind": "write"}, {"kind": "mcp", "serverName": "s", "toolName": "t"}, {"kind": "x"}]}}}"#;
    let import = import_copilot(stored).unwrap();
    assert_eq!(lines(&import), ["allow shell \"npm test *\"", "allow edit \"**\"", "allow mcp \"s/t\""]);
    assert_eq!(import.skipped.len(), 1);
}

#[test]
fn another_file_is_refused() {
    assert!(matches!(import_claude("{"), Err(ImportError::Json(_))));
    assert!(matches!(import_claude("{}"), Err(ImportError::Missing(_))));
    assert!(matches!(import_copilot("{\"a\": 1}"), Err(ImportError::Missing(_))));
}
