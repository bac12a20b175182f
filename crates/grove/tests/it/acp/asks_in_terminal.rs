//! Permission requests of real agents in a terminal: a question, the command or the diff, the options, details on demand.

use grove_testkit::acp::AgentBehavior;

use super::*;
use crate::terminal::Terminal;

/// Runs a prompt of these steps in a terminal.
fn terminal(stage: &Stage, steps: &Value) -> Terminal {
    Terminal::run(&stage.place, &["run", "--agent", "mine", "--cwd", "work", &prompt(steps)])
}

#[test]
fn an_edit_is_asked_with_its_diff_and_without_escaped_json() {
    let stage = Stage::new(AgentBehavior::default());
    let changed = stage.work("a.txt");
    let (before, after) = ("one\ntwo\nthree\n", "one\nzwei\nthree\n");
    let content = json!([{"type": "diff", "path": changed, "oldText": before, "newText": after}]);
    let input = json!({"file_path": changed, "old_string": "two\n", "new_string": "zwei\n"});
    let call = json!({"toolCallId": "e", "title": "Edit a.txt", "kind": "edit", "rawInput": input, "content": content});
    let steps = json!([
        {"ask": {"tool_call": call}},
        {"tool_update": {"toolCallId": "e", "status": "completed", "content": content}},
    ]);
    let mut terminal = terminal(&stage, &steps);
    terminal.until("Edit work/a.txt?");
    terminal.until("work/a.txt +1 -1");
    terminal.until("\x1b[31m  - two\x1b[0m");
    terminal.until("\x1b[32m  + zwei\x1b[0m");
    terminal.until("allow once");
    terminal.until("[y/n, or a number]");
    assert!(!terminal.screen().contains("old_string"), "{}", terminal.screen());
    terminal.enter("?");
    terminal.until("\"old_string\": \"two\\n\"");
    terminal.until("[y/n, or a number]");
    terminal.enter("y");
    terminal.until("✓");
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_command_is_asked_once_and_a_denied_call_does_not_say_that_it_runs() {
    let stage = Stage::new(AgentBehavior::default());
    let call = json!({"toolCallId": "c", "title": "rm -r build", "kind": "execute",
        "rawInput": {"command": "rm -r build", "timeout": 5}});
    let steps = json!([{"ask": {"tool_call": call}}, {"tool_update": {"toolCallId": "c", "status": "failed"}}]);
    let mut terminal = terminal(&stage, &steps);
    terminal.until("Run this command?");
    terminal.until("rm -r build");
    terminal.until("[y/n, or a number]");
    assert_eq!(terminal.screen().matches("rm -r build").count(), 1, "{}", terminal.screen());
    assert!(!terminal.screen().contains("{\"command\""), "{}", terminal.screen());
    terminal.enter("n");
    terminal.until("denied");
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
    assert!(!terminal.screen().contains("Running"), "{}", terminal.screen());
}

#[test]
fn a_mode_and_a_model_of_the_agent_are_chosen_when_a_session_starts() {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let behavior = AgentBehavior {
        modes: texts(&["ask", "code"]),
        models: texts(&["large", "small"]),
        ..AgentBehavior::default()
    };
    let stage = Stage::new(behavior);
    let settings = prompt(&json!(["settings"]));
    let run = |args: &[&str]| {
        stage.place.run(&[&["run", "--agent", "mine", "--cwd", "work"], args, &[settings.as_str()]].concat())
    };
    let ran = run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = run(&["--mode", "code", "--model", "small"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(r#""mode":"code","model":"small""#), "{}", ran.stdout);
    for (args, words) in
        [(["--mode", "sleep"], "choose one of ask, code"), (["--model", "huge"], "choose one of large, small")]
    {
        let ran = run(&args);
        assert_eq!(ran.code, Some(8), "{ran:?}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}
