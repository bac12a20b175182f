//! A model's context, by each of the rules.

use grove_tree::Rules;
use serde_json::{Value, json};

use crate::support::{log_of, opened};

fn entry(kind: &str, id: &str, fields: Value) -> Value {
    let mut entry = json!({"type": kind, "id": id, "timestamp": "2025-01-01T00:00:05.000Z"});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn message(id: &str, message: Value) -> Value {
    entry("message", id, json!({"message": message}))
}

fn user(id: &str) -> Value {
    message(id, json!({"role": "user", "content": id}))
}

fn assistant(id: &str, content: Value, stop: &str) -> Value {
    let message_json =
        json!({"role": "assistant", "content": content, "provider": "p", "model": "m", "stopReason": stop});
    message(id, message_json)
}

fn result(id: &str, call: &str) -> Value {
    message(id, json!({"role": "toolResult", "toolCallId": call, "content": []}))
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}})
}

/// A log in which each entry is a child of the one before.
fn chain(branch: &[Value]) -> String {
    let mut branch = branch.to_vec();
    for at in 1..branch.len() {
        branch[at]["parentId"] = branch[at - 1]["id"].clone();
    }
    log_of(&branch)
}

fn context(rules: Rules, branch: &[Value]) -> Value {
    let log = opened(chain(branch));
    serde_json::to_value(log.context(rules, log.index().leaf())).unwrap()
}

/// The messages in short: a role and its distinguishing data.
fn messages(rules: Rules, branch: &[Value]) -> Vec<String> {
    let context = context(rules, branch);
    let short = |message: &Value| {
        let content = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                blocks.iter().map(|block| block["type"].as_str().unwrap()).collect::<Vec<_>>().join("+")
            }
            _ => message["summary"].as_str().unwrap_or_default().to_owned(),
        };
        format!("{} {content}", message["role"].as_str().unwrap())
    };
    context["messages"].as_array().unwrap().iter().map(short).collect()
}

const ALL: [Rules; 3] = [Rules::Pi, Rules::Omp, Rules::Grove];

#[test]
fn before_the_first_entry_there_is_nothing() {
    for rules in ALL {
        let context = context(rules, &[]);
        assert_eq!(context["messages"], json!([]));
        assert_eq!(context["thinkingLevel"], "off");
    }
    assert_eq!(context(Rules::Pi, &[])["model"], Value::Null);
    assert_eq!(context(Rules::Omp, &[])["model"], json!({}));
    assert_eq!(context(Rules::Grove, &[])["mode"], "none");
}

#[test]
fn the_last_compaction_leads_and_what_it_kept_follows() {
    let compaction = |id: &str, kept: &str| {
        entry("compaction", id, json!({"summary": id, "firstKeptEntryId": kept, "tokensBefore": 7}))
    };
    let branch = [user("a"), user("b"), compaction("c1", "b"), user("d"), compaction("c2", "b"), user("e")];
    assert_eq!(messages(Rules::Pi, &branch), ["compactionSummary c2", "user b", "user d", "user e"]);
    assert_eq!(messages(Rules::Omp, &branch), messages(Rules::Pi, &branch));
    for missing in ["gone", "c1", "", "e"] {
        let branch = [user("a"), compaction("c1", missing), user("e")];
        assert_eq!(messages(Rules::Pi, &branch), ["compactionSummary c1", "user e"], "{missing}");
    }
}

#[test]
fn summaries_and_custom_messages_are_the_users_under_groves_rules() {
    let branch = [
        user("a"),
        entry("compaction", "c", json!({"summary": "short \u{1f332}", "firstKeptEntryId": "c", "tokensBefore": 7})),
        entry("branch_summary", "b", json!({"summary": "left", "fromId": "x"})),
        entry("branch_summary", "none", json!({"summary": "", "fromId": "x"})),
        entry("custom_message", "m", json!({"customType": "t", "content": "note", "display": false})),
        message("h", json!({"role": "hookMessage", "customType": "t", "content": "hook", "timestamp": 3})),
        entry("custom", "x", json!({"customType": "t", "data": 1})),
    ];
    let context = context(Rules::Grove, &branch);
    let text = |at: usize| context["messages"][at]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(0), "What was said before this point, in short:\n\n<summary>\nshort \u{1f332}\n</summary>");
    assert_eq!(
        text(1),
        "What happened on another branch of this conversation, in short:\n\n<summary>\nleft\n</summary>"
    );
    assert_eq!(context["messages"][2], json!({"role": "user", "content": "note", "timestamp": 1735689605000u64}));
    assert_eq!(context["messages"][3], json!({"role": "user", "content": "hook", "timestamp": 3}));
    assert_eq!(context["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn calls_and_results_stand_together_under_groves_rules() {
    let branch = [
        result("r0", "compacted away"),
        assistant(
            "a1",
            json!([{"type": "thinking", "thinking": "x", "thinkingSignature": "s"}, call("1"), call("2")]),
            "toolUse",
        ),
        result("r1", "1"),
        assistant("a2", json!([call("3")]), "toolUse"),
        user("u"),
        result("r4", "4"),
        assistant("a4", json!([call("4")]), "toolUse"),
    ];
    let expected = ["assistant thinking+toolCall", "toolResult ", "user u"];
    assert_eq!(messages(Rules::Grove, &branch), expected);
    let context = context(Rules::Grove, &branch);
    assert_eq!(context["messages"][0]["content"][0], json!({"type": "thinking", "thinking": "x"}));
    assert_eq!(messages(Rules::Pi, &branch).len(), 7, "pi leaves all of them");
}

#[test]
fn broken_turns_go_with_their_results() {
    let branch = [
        user("u"),
        assistant("a", json!([call("1")]), "aborted"),
        result("r", "1"),
        assistant("e", json!([]), "error"),
        assistant("ok", json!([{"type": "text", "text": "ok"}]), "stop"),
    ];
    for rules in [Rules::Omp, Rules::Grove] {
        assert_eq!(messages(rules, &branch), ["user u", "assistant text"]);
    }
    assert_eq!(messages(Rules::Pi, &branch).len(), 5);
}

#[test]
fn what_was_tried_again_is_left_out_under_oh_my_pis_rules() {
    let mut failed = assistant("a", json!([call("1")]), "toolUse");
    failed["message"]["retryRecovery"] = json!({"status": "recovered"});
    let branch = [user("u"), failed, result("r", "1"), user("v")];
    assert_eq!(messages(Rules::Omp, &branch), ["user u", "user v"]);
}

#[test]
fn models_are_whoever_was_chosen_or_answered() {
    let pis = entry("model_change", "m", json!({"provider": "q", "modelId": "n"}));
    let omps = entry("model_change", "m", json!({"model": "q/n/x"}));
    let small = entry("model_change", "s", json!({"model": "q/s", "role": "small"}));
    let answer = assistant("a", json!([]), "stop");
    let model = |rules, branch: &[&Value]| {
        let branch: Vec<Value> = branch.iter().map(|entry| (*entry).clone()).collect();
        context(rules, &branch)["model"].clone()
    };
    assert_eq!(model(Rules::Pi, &[&answer, &pis]), json!({"provider": "q", "modelId": "n"}));
    assert_eq!(model(Rules::Pi, &[&pis, &answer]), json!({"provider": "p", "modelId": "m"}));
    assert_eq!(model(Rules::Omp, &[&pis, &answer, &small]), json!({"default": "p/m", "small": "q/s"}));
    assert_eq!(model(Rules::Omp, &[&omps, &answer]), json!({"default": "q/n/x"}), "a choice stays");
    assert_eq!(model(Rules::Grove, &[&answer, &omps, &small]), json!({"provider": "q", "modelId": "n/x"}));
}

#[test]
fn pi_edits_its_context() {
    let branch = [
        message("a", json!({"role": "user", "content": null})),
        user("b"),
        user("c"),
        entry("context_edit", "e1", json!({"targetId": "b", "replacement": null})),
        entry("context_edit", "e2", json!({"targetId": "c", "replacement": {"content": "other"}})),
    ];
    assert_eq!(messages(Rules::Pi, &branch), ["user ", "user other"]);
    assert_eq!(context(Rules::Pi, &branch)["messages"][0]["content"], json!([]));
    assert_eq!(messages(Rules::Omp, &branch).len(), 3);
    let system = |text: &str| json!({"role": "system", "content": text});
    let branch = [
        message("s", system("old")),
        user("a"),
        entry("compaction", "c", json!({"summary": "sum", "firstKeptEntryId": "s", "systemMessage": system("new")})),
    ];
    assert_eq!(messages(Rules::Pi, &branch), ["system new", "compactionSummary sum", "user a"]);
}

#[test]
fn a_reset_hides_what_was_before_it() {
    let reset = entry("reset_boundary", "r", json!({}));
    let compaction = entry("compaction", "c", json!({"summary": "sum", "firstKeptEntryId": "b"}));
    let after = [user("a"), compaction.clone(), user("b"), reset.clone(), user("d")];
    assert_eq!(messages(Rules::Omp, &after), ["user d"]);
    let before = [user("a"), reset, user("b"), compaction, user("d")];
    assert_eq!(messages(Rules::Omp, &before), ["compactionSummary sum", "user b", "user d"]);
}

#[test]
fn every_message_says_which_entry_it_comes_from() {
    let compaction = entry("compaction", "c", json!({"summary": "short", "firstKeptEntryId": "b"}));
    let log = opened(chain(&[user("a"), entry("custom", "x", json!({})), user("b"), compaction, user("d")]));
    let context = log.context(Rules::Grove, log.index().leaf());
    let ids: Vec<_> = context.messages.iter().map(|message| log.index().id(message.entry)).collect();
    assert_eq!(ids, ["c", "b", "d"]);
}

#[test]
fn a_lone_surrogate_survives_into_the_context() {
    let message = |line: &str| {
        let log = opened(format!("{}{line}\n", log_of(&[])));
        let context = log.context(Rules::Grove, log.index().leaf());
        context.messages[0].json.get().to_owned()
    };
    let said = message(r#"{"type":"message","id":"a","message":{"role":"user","content":"\ud800"}}"#);
    assert_eq!(said, r#"{"role":"user","content":"\ud800"}"#);
    let summary = message(r#"{"type":"branch_summary","id":"a","summary":"x\ud800","fromId":"root"}"#);
    assert!(summary.contains(r#"<summary>\nx\ud800\n</summary>"#));
}

#[test]
fn results_answer_the_turn_before_them_and_notes_come_behind_them() {
    let note = |id: &str| entry("custom_message", id, json!({"customType": "t", "content": id}));
    let branch = [
        assistant("a1", json!([call("1"), call("2")]), "toolUse"),
        note("n1"),
        result("r1", "1"),
        note("n2"),
        result("r2", "2"),
        note("n3"),
        result("again", "1"),
        user("u"),
        result("late", "1"),
        assistant("a2", json!([call("1")]), "toolUse"),
        assistant("a3", json!([call("9")]), "toolUse"),
        result("of a2", "1"),
        note("n4"),
    ];
    let expected = [
        "assistant toolCall+toolCall",
        "toolResult ",
        "toolResult ",
        "user n1",
        "user n2",
        "user n3",
        "user u",
        "user n4",
    ];
    assert_eq!(messages(Rules::Grove, &branch), expected);
    assert_eq!(messages(Rules::Pi, &branch).len(), branch.len());
}

#[test]
fn an_edit_that_takes_a_call_away_takes_its_result_too() {
    let removed = |id: &str, target: &str| entry("context_edit", id, json!({"targetId": target, "replacement": null}));
    let turn = |number: u8| {
        [
            assistant(&format!("a{number}"), json!([call("1")]), "toolUse"),
            result(&format!("r{number}"), "1"),
            user(&format!("u{number}")),
        ]
    };
    let branch =
        [turn(1).to_vec(), turn(2).to_vec(), vec![removed("e1", "a2"), removed("e2", "r1"), removed("e3", "u2")]];
    assert_eq!(messages(Rules::Grove, &branch.concat()), ["user u1"]);
}
