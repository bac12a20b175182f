//! Scripted faults.

use std::time::Instant;

use serde_json::{Value, json};

use super::super::{FakeModel, ReplyStep, Script, Turn};
use super::{millis, model_request, only, post, prompt};

const PATHS: [&str; 4] =
    ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"];

/// Asks for a stream. Its tools are read by every format.
fn streamed() -> Value {
    json!({"model": "m", "stream": true, "tools": [{"type": "function", "name": "x", "function": {"name": "x"},
        "functionDeclarations": [{"name": "x"}]}]})
}

#[tokio::test]
async fn a_failure_has_its_status_and_the_formats_own_body() {
    let model = FakeModel::start(only([ReplyStep::fail(429, Value::Null)])).await;
    for (path, kind) in PATHS.into_iter().zip([
        "/error/type=rate_limit_error",
        "/error/type=rate_limit_error",
        "/error/type=rate_limit_error",
        "/error/status=RESOURCE_EXHAUSTED",
    ]) {
        let got = post(&model, path, streamed()).await;
        assert_eq!(got.status, 429, "{path}");
        let (pointer, kind) = kind.split_once('=').unwrap();
        assert_eq!(got.json().pointer(pointer).unwrap(), kind, "{path}");
    }
}

#[tokio::test]
async fn a_failure_may_have_a_body_of_the_scripts() {
    let model = FakeModel::start(only([ReplyStep::fail(503, json!({"why": "tea"}))])).await;
    let got = post(&model, "/v1/messages", streamed()).await;
    assert_eq!((got.status, got.json()), (503, json!({"why": "tea"})));
}

#[tokio::test]
async fn a_failure_amid_a_stream_is_an_event() {
    let model = FakeModel::start(only([ReplyStep::say("So far"), ReplyStep::fail(529, Value::Null)])).await;
    for path in PATHS {
        let got = post(&model, path, streamed()).await;
        assert_eq!((got.status, got.is_broken), (200, false), "{path}");
        assert!(got.text.contains("So far"), "{path}");
        let last = got.events().pop().unwrap();
        match path {
            "/v1/responses" => assert_eq!(last.data["response"]["status"], "failed"),
            "/v1/messages" => assert_eq!(last.data["error"]["type"], "overloaded_error"),
            _ => assert_eq!(last.data["error"]["message"], "the script says so"),
        }
    }
}

#[tokio::test]
async fn a_cut_breaks_the_connection_after_what_was_said() {
    let model = FakeModel::start(only([ReplyStep::say("So far"), ReplyStep::Cut, ReplyStep::say("never")])).await;
    for path in PATHS {
        let got = post(&model, path, streamed()).await;
        assert!(got.is_broken, "{path}");
        assert!(got.text.contains("So far") && !got.text.contains("never"), "{path}: {}", got.text);
    }
    let got = post(&model, PATHS[0], prompt("whole")).await;
    assert!(got.is_broken);
    assert!(serde_json::from_str::<Value>(&got.text).is_err());
}

#[tokio::test]
async fn a_stall_delays_what_follows() {
    let model = FakeModel::start(only([ReplyStep::stall(millis(120)), ReplyStep::say("late")])).await;
    for body in [streamed(), prompt("whole")] {
        let start = Instant::now();
        let got = post(&model, PATHS[0], body).await;
        assert!(start.elapsed() >= millis(120));
        assert!(got.text.contains("late"));
    }
}

#[tokio::test]
async fn chunks_come_with_pauses_between_them() {
    let model = FakeModel::start(only([ReplyStep::slowly("abcdef", 6, millis(30))])).await;
    let start = Instant::now();
    let got = post(&model, PATHS[0], streamed()).await;
    assert!(start.elapsed() >= millis(150));
    assert!(got.pieces >= 6, "{} pieces", got.pieces);
}

#[tokio::test]
async fn the_same_request_after_a_fault_gets_the_turns_next_answer() {
    let faults = [vec![ReplyStep::fail(500, Value::Null)], vec![ReplyStep::Cut], vec![ReplyStep::say("at last")]];
    let model = FakeModel::start(Script::new([Turn::next(faults), Turn::next([vec![ReplyStep::say("second")]])])).await;
    assert_eq!(post(&model, PATHS[0], prompt("go")).await.status, 500);
    assert!(post(&model, PATHS[0], prompt("go")).await.is_broken);
    assert_eq!(model_request(&model, "go").await, "at last");
    assert_eq!(model_request(&model, "go").await, "second", "no fault came before it, so it is a new prompt");
}

#[tokio::test]
async fn a_turn_that_ends_with_a_fault_never_succeeds() {
    let model = FakeModel::start(only([ReplyStep::fail(500, Value::Null)])).await;
    for _ in 0..3 {
        assert_eq!(post(&model, PATHS[0], prompt("go")).await.status, 500);
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let model = FakeModel::start(Script::default()).await;
    let stream = tokio::net::TcpStream::connect(model.address()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let request = "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{,";
    tokio::io::AsyncWriteExt::write_all(&mut writer, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut reader, &mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("invalid_request_error"));
}

#[tokio::test]
async fn connections_break_when_the_model_is_dropped() {
    let model = FakeModel::start(only([ReplyStep::say("So far"), ReplyStep::stall(millis(60_000))])).await;
    let address = model.address();
    let asking = async { post(&model, PATHS[0], streamed()).await };
    assert!(tokio::time::timeout(millis(200), asking).await.is_err(), "it stalls");
    drop(model);
    let refused = async { while tokio::net::TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(millis(30_000), refused).await.expect("the model is still there");
}
