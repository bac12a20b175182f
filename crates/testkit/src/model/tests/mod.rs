//! The fake model, tested with a small client.

mod faults;
mod formats;
mod order;
mod tools;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::{FakeModel, ReplyStep, Script, Turn};

/// An answer as it arrived.
struct TestResponse {
    status: u16,
    text: String,
    /// The number of pieces in which it came.
    pieces: usize,
    is_broken: bool,
}

/// A server-sent event.
#[derive(Debug)]
struct SseEvent {
    name: Option<String>,
    data: Value,
}

impl TestResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The events. Data that is not JSON becomes a string.
    fn events(&self) -> Vec<SseEvent> {
        let event = |text: &str| {
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let data = field("data: ").unwrap();
            SseEvent { name: field("event: "), data: serde_json::from_str(&data).unwrap_or(json!(data)) }
        };
        self.text.split_terminator("\n\n").map(event).collect()
    }

    fn names(&self) -> Vec<String> {
        self.events().into_iter().map(|event| event.name.unwrap()).collect()
    }
}

async fn send(model: &FakeModel, method: Method, path: &str, body: &Value) -> TestResponse {
    let stream = tokio::net::TcpStream::connect(model.address()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "model")
        .header("authorization", "Bearer hunter2")
        .header("x-agent", "test");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let (mut text, mut pieces, mut is_broken) = (String::new(), 0, false);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            is_broken = true;
            break;
        };
        pieces += 1;
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    TestResponse { status, text, pieces, is_broken }
}

async fn post(model: &FakeModel, path: &str, body: Value) -> TestResponse {
    tokio::time::timeout(crate::PATIENCE, send(model, Method::POST, path, &body)).await.unwrap()
}

/// A prompt in chat completions, not streamed, with a shell.
fn prompt(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}], "tools": [bash()]})
}

/// The same after the model answered with a call, and the tool with a result.
fn continued(mut body: Value, answer: &Value) -> Value {
    let message = answer["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "grove-was-here\n"}));
    body
}

fn bash() -> Value {
    json!({"type": "function", "function": {"name": "bash", "parameters": {"type": "object",
        "properties": {"command": {"type": "string"}}, "required": ["command"]}}})
}

/// The text of a chat completion.
fn said(got: &TestResponse) -> String {
    got.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

async fn model_request(model: &FakeModel, text: &str) -> String {
    said(&post(model, "/v1/chat/completions", prompt(text)).await)
}

fn millis(many: u64) -> Duration {
    Duration::from_millis(many)
}

/// A script with one answer.
fn only(steps: impl Into<Vec<ReplyStep>>) -> Script {
    Script::new([Turn::always([steps.into()])])
}
