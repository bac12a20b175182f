//! The script language: every example of `docs/scripted.md` does what the page says.

use serde_json::{Value, json};

use crate::run::BackgroundCommand;
use crate::support::*;

const PAGE: &str = include_str!("../../../../docs/scripted.md");

/// Every key of a step.
const STEPS: [&str; 11] =
    ["say", "reason", "tool", "clientTool", "part", "usage", "title", "ask", "fail", "sleepMs", "hang"];

/// The JSON blocks of the page.
fn examples() -> Vec<Value> {
    let blocks = PAGE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).unwrap_or_else(|error| panic!("{error} in {block}"))).collect()
}

fn uses(script: &Value, key: &str) -> bool {
    script.as_array().unwrap().iter().any(|step| step.get(key).is_some())
}

/// The final text of the turn.
fn said(script: &Value) -> String {
    // A text part is streamed as text.
    let text = |step: &Value| step["say"].as_str().or(step["part"]["text"].as_str()).map(str::to_owned);
    script.as_array().unwrap().iter().filter_map(text).collect()
}

#[test]
fn every_example_of_the_page_runs_and_every_step_has_one() {
    let examples = examples();
    for step in STEPS {
        assert!(examples.iter().any(|script| uses(script, step)), "no example of {step}");
        assert!(PAGE.contains(&format!("| `{step}` |")), "{step} is not in the table");
    }
    let host = Host::start();
    for script in examples {
        let prompt = format!("script:{script}");
        if uses(&script, "ask") {
            let mut beside = BackgroundCommand::start(&host.place, &["run", &prompt]);
            let id = beside.until("session ").trim().strip_prefix("session ").unwrap().to_owned();
            beside.until("waiting:");
            let answers = match script[0]["ask"].is_string() {
                true => vec!["Ada"],
                false => vec!["Grove", "4", "yes", "Blue", "1,2"],
            };
            let answered = host.place.run(&[&["answer", &id], &answers[..]].concat());
            assert_eq!(answered.code, Some(0), "{answered:?}");
            let (code, stdout) = beside.end();
            assert_eq!((code, stdout.trim_end()), (Some(0), said(&script).as_str()), "{script}");
            continue;
        }
        if uses(&script, "hang") {
            let mut beside = BackgroundCommand::start(&host.place, &["run", &prompt]);
            let id = beside.until("session ").trim().strip_prefix("session ").unwrap().to_owned();
            let deadline = Deadline::new("the turn does not run");
            while host.place.run(&["cancel", &id]).code != Some(0) {
                deadline.check();
            }
            assert_eq!(beside.end().0, Some(7), "{script}");
            continue;
        }
        let ran = host.place.run(&["run", "--yes", "--json", &prompt]);
        let fails = uses(&script, "fail") || uses(&script, "clientTool");
        assert_eq!(ran.code, Some(if fails { 6 } else { 0 }), "{script}: {ran:?}");
        let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        let parts = last["turn"]["responseParts"].as_array().unwrap();
        let texts = parts.iter().filter(|part| part["kind"] == "markdown").filter_map(|part| part["content"].as_str());
        assert_eq!(texts.collect::<String>(), said(&script), "{last}");
        let of_kind = |kind: &str| parts.iter().filter(|part| part["kind"] == kind).count();
        let steps = |key: &str| script.as_array().unwrap().iter().filter(|step| step.get(key).is_some()).count();
        assert_eq!(of_kind("toolCall"), steps("tool"), "{last}");
        let bodies = script.as_array().unwrap().iter().filter(|step| step["part"].get("base64").is_some()).count();
        assert_eq!(of_kind("contentRef"), bodies, "{last}");
    }
}

#[test]
fn a_script_that_cannot_be_read_names_the_step_and_the_problem() {
    let host = Host::start();
    let ran = host.place.run(&["run", &format!("script:{}", json!([{"say": "a"}, {"chunks": 3}]))]);
    assert_eq!(ran.code, Some(6));
    assert!(ran.stderr.contains("step 2: `chunks` and `delayMs` belong to `say`"), "{}", ran.stderr);
}
