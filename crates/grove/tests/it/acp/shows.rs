//! Output of agents beside text, as clients see it.

use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::markdown;
use serde_json::{Value, json};

use super::*;
use crate::ahp_support::on_root;

/// The text of a body that a client has only a reference to.
async fn body(client: &mut Client, content: &Value) -> Value {
    client.get(Method::ResourceRead, on_root(json!({"uri": content["uri"]}))).await["data"].clone()
}

#[tokio::test]
async fn a_diff_stays_when_its_call_ends_with_a_result_and_no_content() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let path = stage.work("a.txt");
    let diff = json!([{"type": "diff", "path": path, "oldText": "one\n", "newText": "two\n"}]);
    let result = "The file has been updated";
    let steps = json!([
        {"tool_call": {"toolCallId": "c", "title": "Edit", "kind": "edit", "rawInput": {"file": path}, "content": diff}},
        {"ask": {"tool_call": {"toolCallId": "c", "title": "Edit", "kind": "edit"}}},
        {"tool_update": {"toolCallId": "c", "status": "completed", "rawOutput": result}},
    ]);
    start(&mut client, &chat, "t", &steps).await;
    let call = asked(&mut client, &chat).await;
    assert!(call["edits"].to_string().contains("a.txt"), "the person sees the diff: {call}");
    answer(&mut client, &chat, "t", &call, "allow_once").await;
    let ended = client.turn_end(&chat, "t").await;
    let content = calls(&ended)[0]["content"].to_string();
    assert!(content.contains("a.txt") && content.contains("fileEdit"), "{content}");
    client.must_agree_on_all().await;
}

// As kimi-code does it: the diff comes with the question and while the call runs, and a sentence ends it.
#[tokio::test]
async fn a_diff_stays_when_its_call_ends_with_a_sentence() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let path = stage.work("a.txt");
    let diff = json!([{"type": "diff", "path": path, "oldText": "one", "newText": "two"}]);
    let text = json!([{"type": "content", "content": {"type": "text", "text": "Replaced 1 occurrence"}}]);
    let steps = json!([
        {"tool_call": {"toolCallId": "c", "title": "Edit", "kind": "edit", "status": "pending"}},
        {"ask": {"tool_call": {"toolCallId": "c", "title": "Edit", "content": diff}}},
        {"tool_update": {"toolCallId": "c", "title": "Editing a.txt", "status": "in_progress", "content": diff}},
        {"tool_update": {"toolCallId": "c", "status": "completed", "content": text, "rawOutput": "Replaced 1 occurrence"}},
    ]);
    start(&mut client, &chat, "t", &steps).await;
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t", &call, "allow_once").await;
    let ended = client.turn_end(&chat, "t").await;
    let content = calls(&ended)[0]["content"].clone();
    assert_eq!(content[0]["text"], "Replaced 1 occurrence", "{content}");
    assert_eq!(content[1]["type"], "fileEdit", "{content}");
    assert_eq!(body(&mut client, &content[1]["after"]["content"]).await, "two");
    client.must_agree_on_all().await;
}

// As codex-acp does it: it runs commands in terminals of its own, and sends their output as metadata.
#[tokio::test]
async fn the_output_of_a_terminal_of_the_agents_own_is_shown() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let output = |data: &str| json!({"terminal_output_delta": {"data": data, "terminal_id": "c"}});
    let mut last = output("two\n");
    last["terminal_exit"] = json!({"exit_code": 0, "signal": null, "terminal_id": "c"});
    let steps = json!([
        {"tool_call": {
            "toolCallId": "c", "title": "ls", "kind": "execute", "status": "in_progress", "rawInput": {"command": "ls"},
            "content": [{"type": "terminal", "terminalId": "c"}], "_meta": {"terminal_info": {"terminal_id": "c"}},
        }},
        {"tool_update": {"toolCallId": "c", "_meta": output("one\n")}},
        {"tool_update": {"toolCallId": "c", "status": "completed", "_meta": last}},
    ]);
    let ended = run(&mut client, &chat, "t", steps).await;
    let call = &calls(&ended)[0];
    assert_eq!(call["content"][0]["text"], "one\ntwo\n", "{call}");
    assert!(!call["_meta"].to_string().contains("one"), "it is shown once: {call}");
    client.must_agree_on_all().await;
}

// As kimi-code does it.
#[tokio::test]
async fn usage_that_comes_right_behind_the_end_of_a_turn_belongs_to_it() {
    let late_usage = Some(json!({"used": 7, "size": 100}));
    let stage = Stage::new(AgentBehavior { late_usage, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    for turn in ["t1", "t2"] {
        let ended = run(&mut client, &chat, turn, json!([{"say": "done"}])).await;
        let usage = serde_json::to_value(&ended).unwrap()["usage"].clone();
        assert_eq!(usage["_meta"]["context"], json!({"used": 7, "size": 100}), "{usage}");
    }
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn plans_notices_usage_cost_titles_and_commands_reach_every_client() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let entry = |content: &str, priority: &str, status: &str| json!({"content": content, "priority": priority, "status": status});
    let steps = json!([
        {"plan": [entry("Read it", "high", "in_progress"), entry("Change it", "low", "pending")]},
        {"notice": {"severity": "warning", "title": "Careful", "description": "It is old"}},
        {"plan": [entry("Read it", "high", "completed"), entry("Change it", "low", "in_progress")]},
        {"usage": {"used": 10, "size": 1000, "cost": {"amount": 0.25, "currency": "USD"}}},
        {"commands": [
            {"name": "review", "description": "Looks at it", "input": {"hint": "a branch"}},
            {"name": "/init", "description": "Begins"},
        ]},
        {"info": {"title": "A good title"}},
        {"think": "hm"},
        {"say": "done"},
        {"stop": {"reason": "end_turn", "usage": {"totalTokens": 30, "inputTokens": 10, "outputTokens": 20}}},
    ]);
    let ended = run(&mut client, &chat, "t", steps).await;
    let told = parts(&ended, "systemNotification");
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0]["_meta"]["plan"][0], entry("Read it", "high", "inProgress"));
    assert_eq!(told[1]["content"], "Warning: Careful\nIt is old");
    assert_eq!(
        told[2]["_meta"]["plan"],
        json!([entry("Read it", "high", "completed"), entry("Change it", "low", "inProgress")]),
        "the last one is the plan as it stands"
    );
    assert_eq!(told[2]["content"]["markdown"], "- [x] Read it\n- [ ] **Change it**");
    let todos = client.ask("x-grove/workspace/todos", json!({"channel": SESSION})).await.unwrap();
    let todos: Vec<_> = todos["todos"].as_array().unwrap().iter().map(|it| (&it["title"], &it["status"])).collect();
    assert_eq!(
        todos,
        [(&json!("Read it"), &json!("done")), (&json!("Change it"), &json!("in_progress"))],
        "the plan is the session's todo list"
    );
    assert_eq!((markdown(&ended.response_parts).as_str(), parts(&ended, "reasoning").len()), ("done", 1));
    let usage = serde_json::to_value(ended.usage.as_ref().unwrap()).unwrap();
    assert_eq!(
        usage,
        json!({"inputTokens": 10, "outputTokens": 20, "_meta": {
            "context": {"used": 10, "size": 1000}, "cost": {"amount": 0.25, "currency": "USD"},
        }})
    );
    assert_eq!(
        meta(&client, SESSION, "commands"),
        json!([
            {"name": "review", "description": "Looks at it", "hint": "a branch"},
            {"name": "init", "description": "Begins"},
        ])
    );
    assert_eq!(client.session(SESSION).title, "A good title");

    // Updates about the session need no turn.
    let later = json!({"delay_ms": 100, "update": {"sessionUpdate": "session_info_update", "title": "A better one"}});
    run(&mut client, &chat, "u", json!([{"later": later}])).await;
    client.until(|client| client.session(SESSION).title == "A better one").await;
    assert_eq!(stage.seen_anew(&chat, "t").await, ended);
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn changes_of_files_are_edits_whose_contents_can_be_fetched() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let (changed, made) = (stage.work("a.txt"), stage.work("b.txt"));
    let (before, after) = ("one\ntwo\nthree\n", "one\nthree\nfour\nfive\n");
    let content = json!([
        {"type": "diff", "path": changed, "oldText": before, "newText": after},
        {"type": "diff", "path": made, "oldText": null, "newText": "new\n"},
        {"type": "content", "content": {"type": "text", "text": "Changed two files"}},
        {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}},
    ]);
    let steps = json!([
        {"ask": {"tool_call": {"toolCallId": "e", "title": "Edit", "kind": "edit", "content": content}}},
        {"tool_update": {"toolCallId": "e", "status": "completed", "content": content}},
    ]);
    start(&mut client, &chat, "t", &steps).await;
    let call = asked(&mut client, &chat).await;
    let edits = call["edits"]["items"].as_array().unwrap().clone();
    assert_eq!(edits.len(), 2, "the request shows the change: {call}");
    assert_eq!(body(&mut client, &edits[0]["after"]["content"]).await, after);
    answer(&mut client, &chat, "t", &call, "allow_once").await;
    let ended = client.turn_end(&chat, "t").await;
    let given = calls(&ended)[0]["content"].clone();
    let kinds: Vec<&Value> = given.as_array().unwrap().iter().map(|content| &content["type"]).collect();
    assert_eq!(kinds, ["text", "fileEdit", "fileEdit", "resource"]);
    assert_eq!(given[1]["diff"], json!({"added": 2, "removed": 1}));
    assert_eq!(given[1]["before"]["uri"], file_uri(&changed));
    assert_eq!(given[2].get("before"), None, "it is new");

    // They exist as long as the session.
    stage.restart();
    stage.host().ahp_reconnect(&mut client).await;
    assert_eq!(body(&mut client, &given[1]["before"]["content"]).await, before);
    assert_eq!(body(&mut client, &given[1]["after"]["content"]).await, after);
    assert_eq!(body(&mut client, &given[2]["after"]["content"]).await, "new\n");
    assert_eq!(body(&mut client, &given[3]).await, "iVBORw0KGgo=");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_large_output_is_shown_by_its_beginning_and_can_be_fetched() {
    // The script is as large, and stays a message.
    let stage = Stage::with(AgentBehavior::default(), &["--spill-bytes", "1000000"]);
    let (mut client, chat) = stage.begin().await;
    let line = "a line of some length\n";
    let large = line.repeat(10_000);
    let ended = run(&mut client, &chat, "t", json!([{"tool": {"title": "cat x", "output": large}}])).await;
    let shown = calls(&ended)[0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(shown.len() <= 4096 && large.starts_with(&shown), "{} bytes are shown", shown.len());
    let content = parts(&ended, "contentRef");
    assert_eq!(content[0]["sizeHint"], large.len());
    assert_eq!(body(&mut client, &content[0]).await, large);
    client.must_agree_on_all().await;
}
