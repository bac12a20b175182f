//! Requests of agents, their answers, and remembered answers.

use grove_testkit::acp::{AgentAbilities, AgentBehavior};
use grove_testkit::ahp::markdown;
use grove_wire::ahp::TurnState;
use serde_json::{Value, json};

use super::*;

/// The session's pending question, as a client sees it.
async fn question(client: &mut Client) -> Value {
    client.until(|client| client.session(SESSION).input_needed.is_some()).await;
    let needed = serde_json::to_value(client.session(SESSION).input_needed.as_ref().unwrap()).unwrap();
    needed[0]["request"].clone()
}

#[tokio::test]
async fn of_two_permission_requests_of_one_call_each_is_shown_and_answered() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let ask = |title: &str| json!({"tool_call": {"toolCallId": "c", "title": title, "kind": "execute"}});
    let steps = json!([{"asks": [ask("first"), ask("second")]}, "complaints"]);
    start(&mut client, &chat, "t", &steps).await;
    let first = asked(&mut client, &chat).await;
    assert!(first.to_string().contains("first"), "{first}");
    answer(&mut client, &chat, "t", &first, "allow_once").await;
    client.until(|client| client.session(SESSION).input_needed.as_ref().is_some_and(|needed| !needed.is_empty())).await;
    let second = asked(&mut client, &chat).await;
    assert!(second.to_string().contains("second"), "{second}");
    answer(&mut client, &chat, "t", &second, "allow_always").await;
    let told = markdown(&client.turn_end(&chat, "t").await.response_parts);
    assert_eq!(told, "permission: allow_once\npermission: allow_always\ncomplaints: none\n");

    // A denied call asks nothing more.
    start(&mut client, &chat, "u", &steps).await;
    let first = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "u", &first, "reject_once").await;
    let told = markdown(&client.turn_end(&chat, "u").await.response_parts);
    assert_eq!(told, "permission: reject_once\npermission: reject_once\ncomplaints: none\n");
    client.must_agree_on_all().await;

    // A restarted host asks requests that were not answered.
    start(&mut client, &chat, "v", &steps).await;
    asked(&mut client, &chat).await;
    drop(client);
    stage.kill_and_restart();
    let mut client = stage.host().ahp_connect("again").await;
    client.initialize(&[SESSION, &chat]).await;
    let first = asked(&mut client, &chat).await;
    assert!(first.to_string().contains("first"), "{first}");
    answer(&mut client, &chat, "v", &first, "allow_once").await;
    client.until(|client| client.session(SESSION).input_needed.as_ref().is_some_and(|needed| !needed.is_empty())).await;
    let second = asked(&mut client, &chat).await;
    assert!(second.to_string().contains("second"), "{second}");
    answer(&mut client, &chat, "v", &second, "allow_once").await;
    let told = markdown(&client.turn_end(&chat, "v").await.response_parts);
    assert_eq!(told, "permission: allow_once\npermission: allow_once\ncomplaints: none\n");
}

#[tokio::test]
async fn what_a_session_may_do_without_asking_is_listed_and_revoked() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let call = json!({"toolCallId": "c", "title": "make", "kind": "execute", "rawInput": {"command": "make"}});
    let option = json!({"optionId": "allow_always", "kind": "allow_always", "name": "Always"});
    let steps = json!([{"ask": {"tool_call": call, "options": [option]}}]);
    start(&mut client, &chat, "t1", &steps).await;
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t1", &call, "allow_always").await;
    client.turn_end(&chat, "t1").await;
    // The same request is not asked again.
    run(&mut client, &chat, "t2", steps.clone()).await;
    let listed = stage.place.run(&["permissions", ID]);
    assert!(listed.stdout.contains("allow  command make (remembered: Always)"), "{} {}", listed.stdout, listed.stderr);
    let revoked = stage.place.run(&["permissions", ID, "--revoke", "--json"]);
    let told: Value = serde_json::from_str(&revoked.stdout).unwrap();
    assert_eq!((&told["allowAll"], &told["remembered"]), (&json!(false), &json!([])), "{told}");
    start(&mut client, &chat, "t3", &steps).await;
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t3", &call, "allow_always").await;
    client.turn_end(&chat, "t3").await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn an_elicitation_is_a_question_that_any_client_answers() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let mut other = stage.host().ahp_connect("b").await;
    other.initialize(&[SESSION, &chat]).await;
    let schema = json!({
        "type": "object", "required": ["name", "size"],
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Whose is it?"},
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "colour": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
            "sure": {"type": "boolean", "default": true},
        },
    });
    let elicit = json!({"mode": "form", "message": "Tell me", "requestedSchema": schema});
    start(&mut client, &chat, "t", &json!([{"elicit": elicit}, "complaints"])).await;
    let asked = question(&mut other).await;
    let kinds: Vec<_> = asked["questions"].as_array().unwrap().iter().map(|q| (&q["id"], &q["kind"])).collect();
    assert_eq!(kinds.len(), 4, "{asked}");
    for (id, kind) in [("name", "text"), ("size", "integer"), ("colour", "single-select"), ("sure", "boolean")] {
        assert!(kinds.contains(&(&json!(id), &json!(kind))), "no {id} of kind {kind} in {asked}");
    }
    assert_eq!(asked["message"], "Tell me");
    let submitted = |kind: &str, value: Value| json!({"state": "submitted", "value": {"kind": kind, "value": value}});
    let mut answered = json!({
        "type": "chat/inputCompleted", "requestId": asked["id"], "response": "accept",
        "answers": {"name": submitted("text", json!("Ada"))},
    });
    let reason = other.rejected(&chat, answered.clone()).await;
    assert!(reason.contains("size"), "{reason}");
    answered["answers"]["size"] = submitted("number", json!(10));
    let reason = other.rejected(&chat, answered.clone()).await;
    assert!(reason.contains("size") && reason.contains("is more than 9"), "{reason}");
    answered["answers"]["size"] = submitted("number", json!(7));
    answered["answers"]["colour"] = submitted("selected", json!("green"));
    let reason = other.rejected(&chat, answered.clone()).await;
    assert!(reason.contains("none of the options"), "{reason}");
    answered["answers"]["colour"] = submitted("selected", json!("blue"));
    accepted(&mut other, &chat, answered).await;
    let told = markdown(&client.turn_end(&chat, "t").await.response_parts);
    let heard: Value = serde_json::from_str(after(&told, "elicitation: ")).unwrap();
    assert_eq!(heard, json!({"action": "accept", "content": {"name": "Ada", "size": 7, "colour": "blue"}}));
    assert!(told.contains("complaints: none"), "{told}");

    for response in ["decline", "cancel"] {
        other.until(|other| other.session(SESSION).input_needed.is_none()).await;
        start(&mut client, &chat, response, &json!([{"elicit": elicit}, "complaints"])).await;
        let asked = question(&mut other).await;
        let no = json!({"type": "chat/inputCompleted", "requestId": asked["id"], "response": response});
        accepted(&mut other, &chat, no).await;
        let told = markdown(&client.turn_end(&chat, response).await.response_parts);
        assert!(told.contains(&format!("{{\"action\":{response:?}}}")) && told.contains("complaints: none"), "{told}");
    }
    client.must_agree_on_all().await;
    other.must_agree_on_all().await;
}

#[tokio::test]
async fn a_no_reaches_the_agent_as_one_of_its_own_answers() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let steps = json!([
        {"ask": {"tool_call": {"toolCallId": "c", "title": "rm x", "kind": "delete"}}},
        {"tool_update": {"toolCallId": "c", "status": "failed"}},
        "complaints",
    ]);
    start(&mut client, &chat, "t", &steps).await;
    let call = asked(&mut client, &chat).await;
    let labels: Vec<&Value> = call["options"].as_array().unwrap().iter().map(|option| &option["label"]).collect();
    assert_eq!(labels, ["allow once", "allow always", "reject once", "reject always"], "its own words");
    answer(&mut client, &chat, "t", &call, "reject_once").await;
    let ended = client.turn_end(&chat, "t").await;
    assert_eq!(markdown(&ended.response_parts), "permission: reject_once\ncomplaints: none\n");
    let call = &calls(&ended)[0];
    assert_eq!((&call["status"], &call["reason"]), (&json!("cancelled"), &json!("denied")));

    // A cancelled turn withdraws its question, and the agent is told.
    start(&mut client, &chat, "u", &steps).await;
    asked(&mut client, &chat).await;
    cancel(&mut client, &chat, "u").await;
    let ended = client.turn_end(&chat, "u").await;
    assert_eq!((ended.state, &calls(&ended)[0]["status"]), (TurnState::Cancelled, &json!("cancelled")));
    client.until(|client| client.session(SESSION).input_needed.is_none()).await;
    assert_eq!(said(&mut client, &chat, "v", json!(["complaints"])).await, "complaints: none\n");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn what_was_allowed_for_good_is_not_asked_again_by_an_agent_that_forgot_it() {
    let mut stage = Stage::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let tool = |title: &str| json!([{"tool": {"title": title, "output": "made it", "ask": true}}, "complaints"]);
    start(&mut client, &chat, "t1", &tool("touch x")).await;
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t1", &call, "allow_always").await;
    client.turn_end(&chat, "t1").await;
    let known = meta(&client, SESSION, "remembered");
    assert_eq!((&known[0]["about"], &known[0]["option"]["id"]), (&json!("touch x"), &json!("allow_always")));

    // Once another process of the agent asks, once another process under another host.
    run(&mut client, &chat, "t2", json!([{"crash": {"code": 1}}])).await;
    for turn in ["t3", "t4"] {
        let ended = run(&mut client, &chat, turn, tool("touch x")).await;
        assert_eq!(ended.state, TurnState::Complete, "{ended:#?}");
        let call = &calls(&ended)[0];
        assert_eq!((&call["confirmed"], &call["status"]), (&json!("setting"), &json!("completed")), "{turn}: {call}");
        assert_eq!(call["selectedOption"]["id"], "allow_always", "{turn}");
        assert!(markdown(&ended.response_parts).ends_with("complaints: none\n"), "{turn}");
        stage.restart();
        stage.host().ahp_reconnect(&mut client).await;
    }
    // A different request is asked, however similar.
    start(&mut client, &chat, "t5", &tool("touch xy")).await;
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t5", &call, "allow_once").await;
    client.turn_end(&chat, "t5").await;
    client.must_agree_on_all().await;
}
