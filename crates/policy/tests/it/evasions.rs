//! Commands that look allowed and do something else.

use grove_policy::{RequestAction, Verdict};

use crate::{policy, request, shell};

/// The rules of most tests: everything is allowed except for some files, hosts and commands.
const OPEN: &str = r#"
[[rules]]
allow = "any"

[[rules]]
deny = "shell"
command = "rm *"

[[rules]]
deny = ["read", "edit"]
path = [".env", "~/.ssh/**", "/etc/passwd"]

[[rules]]
deny = "fetch"
host = ["evil.com", "169.254.169.254", "localhost"]
"#;

fn verdict(rules: &str, command: &str) -> Verdict {
    policy(rules).judge(&shell(command)).verdict
}

/// Asserts that no command is allowed, with rules that allow everything else.
fn assert_stopped(commands: &[&str]) {
    let allowed: Vec<_> = commands.iter().filter(|command| verdict(OPEN, command) == Verdict::Allow).collect();
    assert!(allowed.is_empty(), "{allowed:?}");
}

fn assert_allowed(commands: &[&str]) {
    for command in commands {
        let decision = policy(OPEN).judge(&shell(command));
        assert_eq!(decision.verdict, Verdict::Allow, "{command:?}: {decision}");
    }
}

#[test]
fn a_wrapper_or_shell_in_another_folder_needs_a_rule_of_its_own() {
    let rules = "[[rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n";
    for command in ["./timeout 9 ls", "./env ls", "/tmp/x/bash -c ls", "bin/nice ls", "/bin/../tmp/sh -c ls"] {
        assert_eq!(verdict(rules, command), Verdict::Ask, "{command}");
    }
    for command in ["timeout 9 ls", "/usr/bin/env ls", "/bin/bash -c ls", "/usr/local/bin/nice ls"] {
        assert_eq!(verdict(rules, command), Verdict::Allow, "{command}");
    }
}

#[test]
fn a_bracket_may_match_any_denied_path() {
    assert_stopped(&["cat .[e]nv", "cat < .[e]nv", "cat .[!x]nv", "cat .e[a-z]v", "cat /etc/[p]asswd", "[r]m x"]);
    assert_allowed(&["[ -f x ]", "cat '.[e]nvironment'"]);
}

#[test]
fn a_here_document_with_continued_lines_is_asked() {
    assert_stopped(&[
        "cat <<EOF\nx\\\nEOF\n$(id)\nEOF",
        "cat <<E\\\nOF\n$(id)\nEOF",
        "cat <<EOF\n`echo \\\"$(id)\\\"`\nEOF",
    ]);
    assert_allowed(&["cat <<EOF\nx\nEOF", "cat <<'EOF'\nx\\\ny\nEOF"]);
}

#[test]
fn an_expansion_that_may_evaluate_its_value_is_asked() {
    assert_stopped(&[
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${a[0]}",
        "echo ${x:y}",
        "echo ${x:=y}",
        "echo ${x/a/b}",
        "echo ${x:-",
        "echo ${x:1}",
    ]);
    let rules = "[[rules]]\nallow = \"shell\"\ncommand = \"echo *\"\n";
    for command in ["echo ${x}", "echo ${#x}", "echo ${x:-y}", "echo ${x%.rs}", "echo ${x##*/}"] {
        assert_eq!(verdict(rules, command), Verdict::Allow, "{command}");
    }
    for command in ["CI='a[$(id)]'; echo x", "CI=$x; echo x", "CI=a[0]; echo x"] {
        assert_eq!(verdict(rules, command), Verdict::Ask, "{command}");
    }
    assert_eq!(verdict(rules, "CI=1; echo x"), Verdict::Allow);
}
