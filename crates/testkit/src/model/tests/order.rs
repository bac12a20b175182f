//! The assignment of answers to requests.

use hyper::Method;
use serde_json::json;

use super::super::{COMMAND, FakeModel, ReplyStep, RequestPurpose, Script, Turn};
use super::{bash, continued, model_request, post, prompt, said, send};

const CHAT: &str = "/v1/chat/completions";

fn says(text: &str) -> Vec<ReplyStep> {
    vec![ReplyStep::say(text)]
}

#[tokio::test]
async fn prompts_get_turns_by_what_they_contain_then_in_order_then_the_rest() {
    let model = FakeModel::start(Script::new([
        Turn::next([says("one")]),
        Turn::told("weather", [says("rain")]),
        Turn::next([says("two")]),
    ]))
    .await;
    assert_eq!(model_request(&model, "the weather?").await, "rain");
    assert_eq!(model_request(&model, "a").await, "one");
    assert_eq!(model_request(&model, "the weather again?").await, "rain");
    assert_eq!(model_request(&model, "b").await, "two");
    assert_eq!(model_request(&model, "c").await, "The script has ended.");
    let purposes: Vec<RequestPurpose> = model.requests().iter().map(|request| request.purpose).collect();
    let turn = |turn| RequestPurpose::Turn { turn, answer: 0 };
    assert_eq!(purposes, [turn(Some(1)), turn(Some(0)), turn(Some(1)), turn(Some(2)), turn(None)]);
}

#[tokio::test]
async fn only_the_last_user_message_is_looked_at() {
    let model = FakeModel::start(Script::new([Turn::told("weather", [says("rain")])])).await;
    let mut body = prompt("the weather?");
    let more = [json!({"role": "assistant", "content": "rain"}), json!({"role": "user", "content": "thanks"})];
    body["messages"].as_array_mut().unwrap().extend(more);
    assert_eq!(said(&post(&model, CHAT, body).await), "The script has ended.");
}

#[tokio::test]
async fn what_tools_gave_gets_the_same_turns_next_answer_in_each_conversation() {
    let turn = |name: &str| {
        let calls = |at: usize| vec![ReplyStep::call("bash", json!({ "command": format!("{name}{at}") }))];
        Turn::told(name, [calls(1), calls(2), says(name)])
    };
    let model = FakeModel::start(Script::new([turn("ann"), turn("bob")])).await;
    let mut conversations = [prompt("ann"), prompt("bob"), prompt("ann")];
    for at in 1..=2 {
        for body in &mut conversations {
            let got = post(&model, CHAT, body.clone()).await.json();
            let arguments = got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].to_string();
            assert!(arguments.contains(&at.to_string()), "{arguments}");
            *body = continued(body.clone(), &got);
        }
    }
    let mut heard = Vec::new();
    for body in conversations {
        heard.push(said(&post(&model, CHAT, body).await));
    }
    assert_eq!(heard, ["ann", "bob", "ann"]);
}

#[tokio::test]
async fn results_without_ids_belong_to_the_run_with_their_prompt() {
    let model = FakeModel::start(Script::default()).await;
    let path = "/v1beta/models/m:generateContent";
    let tools = json!([{"functionDeclarations": [{"name": "run_shell_command"}]}]);
    let user = json!({"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "go"}]});
    let first = post(&model, path, json!({"contents": [user], "tools": tools})).await.json();
    let answer = first["candidates"][0]["content"].clone();
    let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command"}}]});
    let second = post(&model, path, json!({"contents": [user, answer, result], "tools": tools})).await.json();
    assert_eq!(second["candidates"][0]["content"]["parts"][0]["text"], "The command has run; grove was here.");
}

#[tokio::test]
async fn a_conversation_of_another_server_is_taken_up_where_it_stands() {
    let script = || {
        Script::new([Turn::always([vec![ReplyStep::shell(COMMAND)], vec![ReplyStep::shell(COMMAND)], says("done")])])
    };
    let first = FakeModel::start(script()).await;
    let mut body = prompt("go");
    for _ in 0..2 {
        let got = post(&first, CHAT, body.clone()).await.json();
        body = continued(body, &got);
    }
    let second = FakeModel::start(script()).await;
    assert_eq!(said(&post(&second, CHAT, body).await), "done");
}

#[tokio::test]
async fn what_an_agent_adds_to_the_conversation_is_not_a_prompt() {
    let model =
        FakeModel::start(Script::new([Turn::told("go", [vec![ReplyStep::shell(COMMAND)], says("done")])])).await;
    let tools = json!([{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}}}]);
    let user = json!({"role": "user", "content": [{"type": "text", "text": "<system-reminder>hi</system-reminder>"},
        {"type": "text", "text": "go"}]});
    let environment = json!({"role": "system", "content": "# Environment"});
    let mut messages = vec![user, environment];
    let first = post(&model, "/v1/messages", json!({"messages": messages, "tools": tools})).await.json();
    let call = &first["content"][0];
    assert_eq!(call["input"], json!({ "command": COMMAND }));
    messages.push(json!({"role": "assistant", "content": first["content"]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": "grove-was-here"},
        {"type": "text", "text": "<system-reminder>be good</system-reminder>"}]}));
    messages.push(json!({"role": "system", "content": [{"type": "text", "text": "<total_tokens>9</total_tokens>"}]}));
    let second = post(&model, "/v1/messages", json!({"messages": messages, "tools": tools})).await.json();
    assert_eq!(second["content"][0]["text"], "done");
}

#[tokio::test]
async fn what_a_person_says_after_a_broken_off_call_is_a_prompt() {
    let model = FakeModel::start(Script::new([
        Turn::next([vec![ReplyStep::shell(COMMAND)], says("never")]),
        Turn::next([says("another")]),
    ]))
    .await;
    let body = prompt("go");
    let got = post(&model, CHAT, body.clone()).await.json();
    let mut body = continued(body, &got);
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "stop that"}));
    assert_eq!(said(&post(&model, CHAT, body).await), "another");
}

#[tokio::test]
async fn requests_beside_the_conversation_use_up_nothing() {
    let model = FakeModel::start(Script::new([Turn::next([says("one")])])).await;
    let mut toolless = prompt("a title, please");
    toolless["tools"] = json!([]);
    assert_eq!(said(&post(&model, CHAT, toolless).await), "A short text");
    let title = json!({"tools": [bash()], "messages": [{"role": "system", "content": "You are a title generator."},
        {"role": "user", "content": "go"}]});
    assert_eq!(said(&post(&model, CHAT, title).await), "A short text");
    assert!(model.requests().iter().all(|request| request.purpose == RequestPurpose::Utility));
    assert_eq!(model_request(&model, "go").await, "one");
}

#[tokio::test]
async fn requests_beside_the_conversation_get_the_json_they_want() {
    let model = FakeModel::start(Script::default()).await;
    let schema = json!({"type": "OBJECT", "required": ["why", "score"], "properties": {
        "why": {"type": "STRING"}, "score": {"type": "INTEGER", "minimum": 3}, "more": {"type": "STRING"}}});
    let settings = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}], "generationConfig": settings});
    let got = post(&model, "/v1beta/models/m:generateContent", body).await.json();
    let text = got["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(value, json!({"why": "A short text", "score": 3}));
}

#[tokio::test]
async fn a_script_may_want_requests_without_tools_too() {
    let model = FakeModel::start(Script { without_tools: true, ..Script::new([Turn::next([says("one")])]) }).await;
    let body = json!({"messages": [{"role": "user", "content": "go"}]});
    assert_eq!(said(&post(&model, CHAT, body).await), "one");
}

#[tokio::test]
async fn a_new_script_begins_with_the_next_prompt() {
    let model = FakeModel::start(Script::default()).await;
    let body = prompt("go");
    let got = post(&model, CHAT, body.clone()).await.json();
    model.set_script(Script::new([Turn::next([says("new")])]));
    assert_eq!(said(&post(&model, CHAT, continued(body, &got)).await), "The command has run; grove was here.");
    assert_eq!(model_request(&model, "go").await, "new");
}

#[tokio::test]
async fn programs_outside_can_change_the_script_and_see_the_requests() {
    let model = FakeModel::start(Script::default()).await;
    let script = json!({"turns": [{"answers": [[
        {"think": {"text": "Hm."}}, {"stall": {"ms": 1}}, {"say": {"text": "hi", "chunks": 2, "delay_ms": 1}}]]},
        {"when": {"told": "x"}, "answers": [[{"fail": {"status": 500}}, "cut"]]}, {"when": "always", "answers": []}]});
    assert_eq!(send(&model, Method::PUT, "/grove/script", &script).await.status, 200);
    assert_eq!(model_request(&model, "go").await, "hi");
    let seen = send(&model, Method::GET, "/grove/requests", &json!(null)).await.json();
    assert_eq!(seen[0]["purpose"], json!({"turn": {"turn": 0, "answer": 0}}));
    let wrong = send(&model, Method::PUT, "/grove/script", &json!({"turn": []})).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("turn"), "{}", wrong.text);
}

#[test]
fn a_script_is_read_as_it_is_written() {
    let script = Script::new([Turn::told("x", [vec![ReplyStep::shell(COMMAND), ReplyStep::Cut]]), Turn::next([])]);
    let text = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&text).unwrap(), script);
}
