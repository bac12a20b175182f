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
