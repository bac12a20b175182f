//! The fuzz bodies of rules and shell commands.

use grove_policy::{Policy, Request, RequestAction, RuleSet, Verdict, shell};

const RULES: &str = r#"
[[rules]]
allow = "any"

[[rules]]
deny = "shell"
command = ["rm *", "git push *"]
"#;

/// Any text as a shell command: its parts are bounded, and nothing around a denied command is allowed.
pub fn shell_command(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let script = shell::parse(text);
    assert!(script.commands.len() <= shell::MAX_COMMANDS, "{}", script.commands.len());
    let policy = Policy::from_iter([RuleSet::parse_repository(RULES, "policy.toml").expect("the rules are valid")]);
    let judge = |command: String| {
        policy
            .judge(&Request::new("agent", RequestAction::Shell { command }).in_directory("/w").with_home("/h"))
            .verdict
    };
    for command in [
        format!("{text}\nrm x"),
        format!("rm x; {text}"),
        format!("rm $({text})"),
        format!("sh -c {}", shell::quote("rm x")),
    ] {
        // Text that ends in an open quote or comment may take the command in, and cannot be parsed then.
        let is_readable = shell::parse(&command).unknown.is_none();
        let has_command =
            shell::parse(&command).commands.iter().any(|part| part.words.iter().any(|word| word.display() == "rm"));
        if is_readable && has_command && judge(command.clone()) == Verdict::Allow {
            let first = |part: &shell::Command| part.words.first().is_some_and(|word| word.display() == "rm");
            assert!(!shell::parse(&command).commands.iter().any(first), "{command:?}");
        }
    }
}

/// Any text as a file with rules: it is refused with the number of one of its lines, or written and read back.
pub fn policy_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match RuleSet::parse_repository(text, "policy.toml") {
        Ok(set) => {
            let written: String = set.rules.iter().map(|rule| rule.rule.to_toml("rules")).collect();
            let again = RuleSet::parse_repository(&written, "policy.toml").expect("written rules are read");
            assert!(set.rules.iter().map(|rule| &rule.rule).eq(again.rules.iter().map(|rule| &rule.rule)), "{written}");
        }
        Err(error) => assert!((1..=text.split('\n').count().max(1)).contains(&error.line), "{error}"),
    }
}
