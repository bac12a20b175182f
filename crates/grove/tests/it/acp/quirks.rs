//! Differences between agents that clients should not notice. Quirk 5 is in `settings`, 7 and 8 are in `life`.

use grove_testkit::acp::{AgentAbilities, AgentBehavior};
use grove_testkit::ahp::markdown;
use grove_wire::ahp::TurnState;
use serde_json::{Value, json};

use super::*;

/// The text of a call's result.
fn given(call: &Value) -> Value {
    call["content"][0]["text"].clone()
}

// Quirk 1.
#[tokio::test]
async fn a_call_is_one_call_in_whichever_way_an_agent_tells_of_it() {
    let ways = [
        ("never announced", AgentBehavior { never_tool_call: true, ..AgentBehavior::default() }),
        ("asked for before it is announced", AgentBehavior { asks_first: true, ..AgentBehavior::default() }),
        ("announced without its command", AgentBehavior { bare_first_call: true, ..AgentBehavior::default() }),
    ];
    for (way, behavior) in ways {
        let stage = Stage::new(behavior);
        let (mut client, chat) = stage.begin().await;
        let mut old = stage.host().client("v1").await;
        old.subscribe(SESSION).await.unwrap();
        let tool = json!({"id": "c", "title": "touch x", "input": {"command": "touch x"}, "output": "made it"});
        for asks in [true, false] {
            let turn = if asks { "asks" } else { "asks nothing" };
            let mut tool = tool.clone();
            tool["id"] = json!(turn);
            tool["ask"] = json!(asks);
            start(&mut client, &chat, turn, &json!([{"tool": tool}, "complaints"])).await;
            if asks {
                let call = asked(&mut client, &chat).await;
                assert_eq!(call["toolCallId"], turn, "{way}");
                assert_eq!(
                    (&call["invocationMessage"], &call["toolInput"]),
                    (&json!("touch x"), &json!(r#"{"command":"touch x"}"#)),
                    "{way}: a person sees what is asked"
                );
                assert_eq!(call["options"].as_array().unwrap().len(), 4, "{way}");
                // The agent gets the answer of any client, in either protocol.
                let request = old.asked(SESSION).await;
                let pending = old.session(SESSION).active_turn.as_ref().unwrap().pending_permissions[&request].clone();
                assert_eq!(pending.full_command_text.as_deref(), Some("touch x"), "{way}");
                old.approve(SESSION, turn, &request).await;
            }
            let ended = client.turn_end(&chat, turn).await;
            assert_eq!(markdown(&ended.response_parts), "complaints: none\n", "{way}");
            let calls = calls(&ended);
            assert_eq!(calls.len(), 1, "{way}: {calls:?}");
            assert_eq!(
                (&calls[0]["status"], &calls[0]["success"], &calls[0]["invocationMessage"], given(&calls[0])),
                (&json!("completed"), &json!(true), &json!("touch x"), json!("made it")),
                "{way}"
            );
            let theirs = old.turn_end(SESSION, turn).await;
            assert_eq!(theirs.tool_calls.len(), 1, "{way}");
            assert_eq!(theirs.tool_calls[0].tool_output.as_deref(), Some("made it"), "{way}");
        }
        client.must_agree_on_all().await;
        old.must_agree(SESSION).await;
    }
}

// Quirk 2.
#[tokio::test]
async fn an_update_changes_what_it_says_and_leaves_the_rest() {
    let stage = Stage::new(AgentBehavior { no_status: true, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let steps = json!([
        {"tool_call": {
            "toolCallId": "c", "title": "first", "kind": "execute", "status": "in_progress",
            "rawInput": {"command": "ls"}, "locations": [{"path": "/x", "line": 7}], "_meta": {"one": 1},
        }},
        {"tool_update": {"toolCallId": "c", "content": text("half")}},
        {"tool_update": {"toolCallId": "c", "title": "second", "_meta": {"two": {"deep": true}}}},
        {"ask": {"tool_call": {"toolCallId": "d", "title": "wait", "kind": "execute"}}},
        {"tool_update": {"toolCallId": "d", "status": "completed"}},
        {"tool_update": {"toolCallId": "c", "status": "completed"}},
    ]);
    start(&mut client, &chat, "t", &steps).await;
    let waits = asked(&mut client, &chat).await;
    let running = client.call_that(&chat, |call| call.id() == Some("c")).await;
    let running = serde_json::to_value(running).unwrap();
    let known = |call: &Value| {
        let what = [&call["invocationMessage"], &call["toolInput"], &call["_meta"]["toolKind"]];
        assert_eq!(what, [&json!("second"), &json!(r#"{"command":"ls"}"#), &json!("terminal")], "{call}");
        let rest = &call["_meta"]["acp"];
        assert_eq!(rest["locations"], json!([{"path": "/x", "line": 7}]), "{call}");
        assert_eq!(rest["_meta"], json!({"one": 1, "two": {"deep": true}}), "{call}");
        assert_eq!(given(call), "half", "{call}");
    };
    assert_eq!(running["status"], "running");
    known(&running);
    answer(&mut client, &chat, "t", &waits, "allow_once").await;
    let ended = client.turn_end(&chat, "t").await;
    let both = calls(&ended);
    assert_eq!((both.len(), &both[0]["status"]), (2, &json!("completed")));
    known(&both[0]);

    // The same for an agent that never reports the progress of its calls.
    let tool = json!({"title": "ls", "input": {"command": "ls"}, "output": "x y", "takes_ms": 50});
    let ended = run(&mut client, &chat, "u", json!([{"tool": tool}])).await;
    let call = &calls(&ended)[0];
    assert_eq!((&call["toolInput"], given(call)), (&json!(r#"{"command":"ls"}"#), json!("x y")));
    client.must_agree_on_all().await;
}

// Quirk 3.
#[tokio::test]
async fn a_history_that_an_agent_tells_again_changes_nothing() {
    let can = AgentAbilities { resume: false, ..AgentAbilities::default() };
    let mut stage = Stage::new(AgentBehavior { can, load_differs: true, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let tool = json!({"title": "touch x", "input": {"command": "touch x"}, "output": "made it"});
    run(&mut client, &chat, "t1", json!([{"think": "hm"}, {"tool": tool}, {"say": "remember me"}])).await;
    let before = client.chat(&chat).turns.clone();

    // Once after the end of the agent, once after the end of the host.
    run(&mut client, &chat, "t2", json!([{"crash": {"code": 1}}])).await;
    let history = said(&mut client, &chat, "t3", json!(["echo_history", "complaints"])).await;
    assert!(history.contains("agent: remember me") && history.contains("complaints: none"), "{history}");
    assert_eq!(client.chat(&chat).turns[0], before[0]);
    assert_eq!(client.chat(&chat).turns[2].response_parts.len(), 1, "what it says again is not in its next turn");
    stage.restart();
    stage.host().ahp_reconnect(&mut client).await;
    let history = said(&mut client, &chat, "t4", json!(["echo_history"])).await;
    assert!(history.contains("agent: remember me"), "{history}");
    assert_eq!(client.chat(&chat).turns[0], before[0]);
    assert_eq!(stage.seen_anew(&chat, "t1").await, before[0]);
    client.must_agree_on_all().await;
}

// Quirk 4.
#[tokio::test]
async fn what_nobody_knows_is_refused_or_passed_over_and_what_is_meant_for_others_arrives() {
    for (ids_from_zero, ids_as_text) in [(true, false), (false, true)] {
        // It fails its turn itself, unless its first unknown request is answered with -32601.
        let behavior = AgentBehavior { unknown_request: true, ids_from_zero, ids_as_text, ..AgentBehavior::default() };
        let stage = Stage::new(behavior);
        let (mut client, chat) = stage.begin().await;
        let tool = json!({"toolCallId": "c", "title": "t", "status": "completed", "_meta": {"theirs": {"a": [1]}}});
        let steps = json!([
            {"raw": {"jsonrpc": "2.0", "method": "craft/other", "params": {"sessionId": "?"}}},
            {"raw": {"jsonrpc": "2.0", "id": 99, "result": {}}},
            {"raw": "this is no message"},
            {"update": {"sessionUpdate": "of_tomorrow", "what": 1}},
            {"request": {"method": "craft/what", "params": {}}},
            {"tool_call": tool},
            "complaints",
        ]);
        let ended = run(&mut client, &chat, "t", steps).await;
        assert_eq!(ended.state, TurnState::Complete, "{ended:#?}");
        let text = markdown(&ended.response_parts);
        assert!(text.starts_with("craft/what: error -32601 ") && text.ends_with("complaints: none\n"), "{text}");
        let kinds: Vec<Value> =
            ended.response_parts.iter().map(|part| serde_json::to_value(part).unwrap()["kind"].clone()).collect();
        assert_eq!(kinds, ["markdown", "toolCall", "markdown"], "what is not understood is not shown");
        assert_eq!(calls(&ended)[0]["_meta"]["acp"]["_meta"], json!({"theirs": {"a": [1]}}));
        client.must_agree_on_all().await;
    }
}

// Quirk 6.
#[tokio::test]
async fn a_session_that_an_agent_has_open_already_goes_on() {
    for can in [AgentAbilities::default(), AgentAbilities { resume: false, ..AgentAbilities::default() }] {
        let behavior =
            AgentBehavior { can, opens_stored: true, already_loaded_error: true, ..AgentBehavior::default() };
        let stage = Stage::new(behavior);
        let (mut client, chat) = stage.begin().await;
        said(&mut client, &chat, "t1", json!([{"say": "remember me"}])).await;
        run(&mut client, &chat, "t2", json!([{"crash": {"code": 1}}])).await;
        let ended = run(&mut client, &chat, "t3", json!(["echo_history"])).await;
        let history = markdown(&ended.response_parts);
        assert_eq!(ended.state, TurnState::Complete, "{ended:#?}");
        assert_eq!(history.matches("remember me").count(), 2, "asked and said once, and not told again: {history}");
        assert_eq!(parts(&ended, "systemNotification"), Vec::<Value>::new());
        client.must_agree_on_all().await;
    }
}

// Quirk 9.
#[tokio::test]
async fn whether_an_agent_asks_is_its_own_affair() {
    let always = AgentBehavior { asks_always: true, ..AgentBehavior::default() };
    let never = AgentBehavior { asks_nothing: true, ..AgentBehavior::default() };
    for (behavior, asks) in [(always, true), (never, false)] {
        let stage = Stage::new(behavior);
        let (mut client, chat) = stage.begin().await;
        // The script has the opposite.
        let tool = json!({"title": "touch x", "output": "made it", "ask": !asks});
        start(&mut client, &chat, "t", &json!([{"tool": tool}, {"say": "done"}])).await;
        if asks {
            let call = asked(&mut client, &chat).await;
            answer(&mut client, &chat, "t", &call, "allow_once").await;
        }
        let ended = client.turn_end(&chat, "t").await;
        assert_eq!((ended.state, markdown(&ended.response_parts).as_str()), (TurnState::Complete, "done"));
        let call = &calls(&ended)[0];
        let by = if asks { "user-action" } else { "not-needed" };
        assert_eq!((&call["confirmed"], given(call)), (&json!(by), json!("made it")));
        client.must_agree_on_all().await;
    }
}
