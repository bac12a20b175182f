//! Each format is what its clients expect.

use hyper::Method;
use serde_json::{Value, json};

use super::super::{FakeModel, ReplyStep, Script, TokenUsage};
use super::{bash, millis, only, post, prompt, send};

/// A thought, a text in three pieces, and two calls.
fn script() -> Script {
    let text = ReplyStep::slowly("Three little pieces", 3, millis(1));
    let calls = [ReplyStep::call("bash", json!({"command": "ls"})), ReplyStep::call("other", json!({"n": 1}))];
    let mut script = only([[ReplyStep::think("Hm."), text], calls].concat());
    script.usage = Some(TokenUsage { input: 70, output: 9 });
    script
}

fn strings(events: impl IntoIterator<Item = Value>) -> Vec<String> {
    events.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn chat_completions_stream_deltas_and_end_with_usage_and_done() {
    let model = FakeModel::start(script()).await;
    let mut body = prompt("go");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let got = post(&model, "/v1/chat/completions", body).await;
    let events: Vec<Value> = got.events().into_iter().map(|event| event.data).collect();
    let delta = |name: &str| strings(events.iter().map(|event| event["choices"][0]["delta"][name].clone()));

    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(delta("reasoning_content"), ["Hm."]);
    assert_eq!(delta("content"), ["", "Three ", "little", " pieces"]);
    let mut calls = [(String::new(), String::new()), (String::new(), String::new())];
    for call in events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]).filter(|call| !call.is_null())
    {
        let (name, arguments) = &mut calls[call["index"].as_u64().unwrap() as usize];
        name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        arguments.push_str(call["function"]["arguments"].as_str().unwrap());
    }
    let pair = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
    assert_eq!(calls, [pair("bash", r#"{"command":"ls"}"#), pair("other", r#"{"n":1}"#)]);
    let [.., finish, usage, done] = events.as_slice() else { panic!("too few events") };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["total_tokens"], 79);
    assert_eq!(done, "[DONE]");
    assert!(got.pieces > 2, "it came in {} pieces", got.pieces);
}

#[tokio::test]
async fn chat_completions_say_what_they_cost_only_when_asked() {
    let model = FakeModel::start(script()).await;
    let mut body = prompt("go");
    body["stream"] = json!(true);
    let got = post(&model, "/v1/chat/completions", body).await;
    assert!(got.events().iter().all(|event| event.data.get("usage").is_none()));
}

#[tokio::test]
async fn chat_completions_come_whole_when_no_stream_is_wanted() {
    let model = FakeModel::start(script()).await;
    let whole = post(&model, "/v1/chat/completions", prompt("go")).await.json();
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"], "Three little pieces");
    assert_eq!(message["reasoning_content"], "Hm.");
    assert_eq!(message["tool_calls"][1]["function"], json!({"name": "other", "arguments": r#"{"n":1}"#}));
    assert_ne!(message["tool_calls"][0]["id"], message["tool_calls"][1]["id"]);
    assert_eq!(whole["usage"]["prompt_tokens"], 70);
    assert_eq!(whole["model"], "m");
}

fn responses(stream: bool) -> Value {
    let tool = json!({"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}});
    let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
    json!({"model": "m", "instructions": "Help.", "stream": stream, "input": [message], "tools": [tool]})
}

#[tokio::test]
async fn responses_stream_their_events_by_name_and_in_order() {
    let model = FakeModel::start(script()).await;
    let got = post(&model, "/v1/responses", responses(true)).await;
    let names: Vec<String> =
        got.names().iter().map(|name| name.strip_prefix("response.").unwrap().to_owned()).collect();
    let call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"];
    let called = ["function_call_arguments.done", "output_item.done"];
    let expected = [
        &["created", "in_progress"][..],
        &["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"],
        &["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"],
        &["output_item.added", "content_part.added"],
        &["output_text.delta", "output_text.delta", "output_text.delta"],
        &["output_text.done", "content_part.done", "output_item.done"],
        &call,
        &called,
        &call,
        &called,
        &["completed"],
    ];
    assert_eq!(names, expected.concat());

    let events = got.events();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event.data["sequence_number"], at);
        assert_eq!(Some(event.data["type"].as_str().unwrap()), event.name.as_deref());
    }
    let of = |name: &'static str| events.iter().filter(move |event| event.name.as_deref() == Some(name));
    let deltas = of("response.output_text.delta").map(|event| event.data["delta"].clone());
    assert_eq!(strings(deltas), ["Three ", "little", " pieces"]);
    let places = of("response.output_item.done").map(|event| event.data["output_index"].as_u64().unwrap());
    assert_eq!(places.collect::<Vec<_>>(), [0, 1, 2, 3]);
    let response = &events.last().unwrap().data["response"];
    assert_eq!(response["status"], "completed");
    assert_eq!(response["usage"]["total_tokens"], 79);
    assert_eq!(response["output"][2]["arguments"], r#"{"command":"ls"}"#);
}

#[tokio::test]
async fn responses_come_whole_when_no_stream_is_wanted() {
    let model = FakeModel::start(script()).await;
    let whole = post(&model, "/v1/responses", responses(false)).await.json();
    let kinds: Vec<&str> = (0..4).map(|at| whole["output"][at]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(whole["output"][1]["content"][0]["text"], "Three little pieces");
    assert_eq!(whole["usage"]["output_tokens"], 9);
}

fn messages(stream: bool) -> Value {
    let tool = json!({"name": "Bash", "input_schema": {"type": "object", "properties": {}}});
    json!({"model": "m", "max_tokens": 100, "stream": stream, "system": [{"type": "text", "text": "Help."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}], "tools": [tool]})
}

#[tokio::test]
async fn messages_stream_their_blocks_by_name_and_in_order() {
    let model = FakeModel::start(script()).await;
    let got = post(&model, "/v1/messages?beta=true", messages(true)).await;
    let expected = [
        &["message_start", "ping"][..],
        &["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
        &["content_block_start", "content_block_delta", "content_block_delta", "content_block_delta"],
        &["content_block_stop"],
        &["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
        &["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
        &["message_delta", "message_stop"],
    ];
    assert_eq!(got.names(), expected.concat());

    let events = got.events();
    assert_eq!(events[0].data["message"]["usage"]["input_tokens"], 70);
    let starts = events.iter().filter(|event| event.data["type"] == "content_block_start");
    let starts = strings(starts.map(|event| event.data["content_block"]["type"].clone()));
    assert_eq!(starts, ["thinking", "text", "tool_use", "tool_use"]);
    let delta = |name: &str| strings(events.iter().map(|event| event.data["delta"][name].clone()));
    assert_eq!(delta("thinking"), ["Hm."]);
    assert_eq!(delta("signature").len(), 1);
    assert_eq!(delta("text"), ["Three ", "little", " pieces"]);
    assert_eq!(delta("partial_json").concat(), r#"{"command":"ls"}{"n":1}"#);
    assert_eq!(delta("stop_reason"), ["tool_use"]);
    assert_eq!(events[events.len() - 2].data["usage"]["output_tokens"], 9);
}

#[tokio::test]
async fn messages_come_whole_when_no_stream_is_wanted() {
    let model = FakeModel::start(script()).await;
    let whole = post(&model, "/v1/messages", messages(false)).await.json();
    assert_eq!(whole["content"][0]["thinking"], "Hm.");
    assert_eq!(whole["content"][1], json!({"type": "text", "text": "Three little pieces"}));
    assert_eq!(whole["content"][2]["input"], json!({"command": "ls"}));
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["usage"]["output_tokens"], 9);
}

#[tokio::test]
async fn messages_and_gemini_count_tokens() {
    let model = FakeModel::start(script()).await;
    let counted = post(&model, "/v1/messages/count_tokens", messages(false)).await.json();
    assert!(counted["input_tokens"].as_u64().unwrap() > 10);
    let counted = post(&model, "/v1beta/models/m:countTokens", gemini()).await.json();
    assert!(counted["totalTokens"].as_u64().unwrap() > 10);
}

fn gemini() -> Value {
    let tool = json!({"functionDeclarations": [{"name": "run_shell_command",
        "parametersJsonSchema": {"type": "object", "properties": {"command": {"type": "string"}}}}]});
    json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": [tool]})
}

#[tokio::test]
async fn gemini_streams_parts_and_ends_with_a_reason() {
    let model = FakeModel::start(script()).await;
    let got = post(&model, "/v1beta/models/flash:streamGenerateContent?alt=sse", gemini()).await;
    let events: Vec<Value> = got.events().into_iter().map(|event| event.data).collect();
    let parts: Vec<&Value> = events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(parts[0], &json!({"text": "Hm.", "thought": true}));
    assert_eq!(strings(parts[1..4].iter().map(|part| part["text"].clone())), ["Three ", "little", " pieces"]);
    assert_eq!(parts[4]["functionCall"]["name"], "bash");
    assert_eq!(parts[4]["functionCall"]["args"], json!({"command": "ls"}));
    assert_eq!(parts[5]["functionCall"]["args"], json!({"n": 1}));
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(last["usageMetadata"]["totalTokenCount"], 79);
    assert_eq!(last["modelVersion"], "flash");
}

#[tokio::test]
async fn gemini_comes_whole_when_no_stream_is_wanted() {
    let model = FakeModel::start(script()).await;
    let whole = post(&model, "/v1beta/models/flash:generateContent", gemini()).await.json();
    let candidate = &whole["candidates"][0];
    assert_eq!(candidate["content"]["parts"][1], json!({"text": "Three little pieces"}));
    assert_eq!(candidate["finishReason"], "STOP");
    assert_eq!(whole["usageMetadata"]["promptTokenCount"], 70);
}

#[tokio::test]
async fn models_are_listed_for_every_client() {
    let model = FakeModel::start(script()).await;
    let list = send(&model, Method::GET, "/v1/models", &json!(null)).await.json();
    assert_eq!(list["data"][0]["id"], "fake-model");
    let list = send(&model, Method::GET, "/v1beta/models", &json!(null)).await.json();
    assert_eq!(list["models"][0]["name"], "models/fake-model");
    assert_eq!(send(&model, Method::GET, "/v1/files", &json!(null)).await.status, 404);
}

#[tokio::test]
async fn usage_is_estimated_where_the_script_has_none() {
    let model = FakeModel::start(only([ReplyStep::say("A text of some length.")])).await;
    let usage = post(&model, "/v1/chat/completions", prompt("go")).await.json()["usage"].clone();
    assert_eq!(usage["completion_tokens"], 6);
    assert!(usage["prompt_tokens"].as_u64().unwrap() > 20);
}

#[tokio::test]
async fn only_the_newest_requests_are_kept() {
    let model = FakeModel::start(script()).await;
    for _ in 0..1003 {
        send(&model, Method::GET, "/v1/models", &json!(null)).await;
    }
    let kept = model.until(|requests| requests.last().is_some_and(|request| request.number == 1003)).await;
    assert_eq!((kept.len(), kept[0].number), (1000, 4));
}

#[tokio::test]
async fn requests_are_recorded_without_secrets() {
    let model = FakeModel::start(script()).await;
    post(&model, "/v1beta/models/m:generateContent?key=hunter2&x=1", json!({"tools": [bash()]})).await;
    let [request] = model.requests().try_into().unwrap();
    assert_eq!(request.number, 1);
    assert_eq!(request.method, "POST");
    assert_eq!(request.path, "/v1beta/models/m:generateContent?key=<redacted>&x=1");
    assert_eq!(request.headers["authorization"], "<redacted>");
    assert_eq!(request.headers["x-agent"], "test");
    assert_eq!(request.body["tools"][0], bash());
    assert!(!format!("{request:?}").contains("hunter2"));
}
