//! A recorded conversation of the Copilot SDK with a host, and logs that the Copilot CLI wrote.
//!
//! The recordings are outside the repository ([`grove_fixtures`]).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use grove_fixtures::both;
use grove_wire::copilot::framing::{Decoder, frame};
use grove_wire::copilot::methods::server::{self, SessionEventParams, UserInputParams};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::{Event, EventData, Object, error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// One recorded message.
struct Recorded {
    connection: u64,
    to_host: bool,
    head: String,
    message: Value,
}

fn recorded(folder: &Path) -> Vec<Recorded> {
    let text = std::fs::read_to_string(folder.join("wire-sdk-fakehost.jsonl")).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Recorded {
            connection: line["c"].as_u64().unwrap(),
            to_host: line["dir"] == "C>S",
            head: line["hdr"].as_str().unwrap().to_owned(),
            message: line["m"].clone(),
        }
    };
    text.lines().map(line).collect()
}

/// Checks that a value is read as this type and written back, unknown members aside.
fn is<T: Serialize + DeserializeOwned>(value: &Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    let written = serde_json::to_value(&read).unwrap();
    assert!(covers(value, &written), "{written} is not in {value}");
}

fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|mine| covers(mine, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(mine, value)| covers(mine, value))
        }
        _ => whole == part,
    }
}

fn takes<T: DeserializeOwned>(method: &str, params: &Value) {
    let raw = RawValue::from_string(params.to_string()).unwrap();
    if let Err(error) = grove_wire::copilot::methods::params::<T>(method, Some(&raw)) {
        panic!("{error}: {params}");
    }
}

fn check_call(method: &str, params: &Value) {
    match Method::named(method).unwrap_or_else(|| panic!("{method} is not known")) {
        Method::Connect => takes::<ConnectParams>(method, params),
        Method::Ping => takes::<PingParams>(method, params),
        // `grove-fs` reads a storage client's own data.
        Method::SessionFsSetProvider => takes::<Object>(method, params),
        Method::SessionCreate | Method::SessionResume => takes::<OpenParams>(method, params),
        Method::SessionSend => takes::<SendParams>(method, params),
        Method::SessionAbort => takes::<AbortParams>(method, params),
        Method::SessionList => takes::<ListParams>(method, params),
        Method::SessionGetMessages | Method::SessionDetach | Method::SessionDelete => {
            takes::<SessionParams>(method, params);
        }
        Method::SessionGetLastId | Method::StatusGet | Method::ModelsList => takes::<NoParams>(method, params),
        Method::PermissionsHandlePending => takes::<HandlePermissionParams>(method, params),
        Method::ToolsHandlePending => takes::<HandleToolCallParams>(method, params),
        other => panic!("{other:?} was not recorded when this was written"),
    }
}

/// Checks that the types can represent the recorded result.
fn check_answer(method: &str, params: &Value, result: &Value) {
    let given = |answer: Value| assert_eq!(answer, *result, "{method}");
    match Method::named(method).unwrap() {
        Method::Connect => given(serde_json::to_value(ConnectResult::of("0.0.1-fake")).unwrap()),
        Method::Ping => {
            let at = grove_wire::ahp::time::parse(result["timestamp"].as_str().unwrap()).unwrap();
            let ping: PingParams = serde_json::from_value(params.clone()).unwrap();
            given(serde_json::to_value(PingResult::to(&ping, at)).unwrap());
        }
        Method::StatusGet => given(serde_json::to_value(StatusResult::of("0.0.1-fake")).unwrap()),
        Method::SessionFsSetProvider
        | Method::SessionAbort
        | Method::SessionDetach
        | Method::SessionDelete
        | Method::PermissionsHandlePending
        | Method::ToolsHandlePending => given(serde_json::to_value(Success::YES).unwrap()),
        Method::SessionCreate | Method::SessionResume => {
            is::<OpenResult>(result);
            assert_eq!(result["sessionId"], params["sessionId"]);
        }
        Method::SessionSend => is::<SendResult>(result),
        Method::SessionGetMessages => is::<GetMessagesResult>(result),
        Method::SessionList => is::<ListResult>(result),
        Method::SessionGetLastId => is::<MaybeSession>(result),
        Method::ModelsList => is::<ModelsListResult>(result),
        other => panic!("{other:?} was not recorded when this was written"),
    }
}

#[test]
fn every_recorded_message_is_read_and_answered_with_these_types() {
    for folder in both("copilot-cli") {
        check_conversation(&recorded(&folder));
    }
}

fn check_conversation(recorded: &[Recorded]) {
    let mut calls: HashMap<(u64, bool, String), (String, Value)> = HashMap::new();
    let (mut answers, mut events) = (0, 0);
    for Recorded { connection, to_host, message, .. } in recorded {
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                if *to_host {
                    check_call(method, &params);
                } else if method == server::USER_INPUT_REQUEST {
                    is::<UserInputParams>(&params);
                } else {
                    assert!(method.starts_with("sessionFs."), "{method}");
                }
                calls.insert((*connection, *to_host, id.to_string()), (method.to_owned(), params));
            }
            (Some(method), None) => {
                assert_eq!(method, server::SESSION_EVENT);
                is::<SessionEventParams>(&params);
                let event: Event = serde_json::from_value(params["event"].clone()).unwrap();
                assert!(!matches!(event.data, EventData::Unknown { .. }), "{event:?}");
                events += 1;
            }
            (None, Some(id)) => {
                let (method, asked) = &calls[&(*connection, !to_host, id.to_string())];
                answers += 1;
                match (message.get("result"), to_host) {
                    (Some(result), false) => check_answer(method, asked, result),
                    (Some(result), true) if method == server::USER_INPUT_REQUEST => is::<UserInputResponse>(result),
                    (Some(_), true) => {}
                    (None, _) => assert_eq!(message["error"]["code"], error::error_code::INTERNAL),
                }
            }
            (None, None) => panic!("{message}"),
        }
    }
    assert!(answers > 30 && events > 50, "{answers} answers, {events} events");
}

#[test]
fn what_the_sdk_sent_comes_out_of_its_frames_however_they_are_cut() {
    for folder in both("copilot-cli") {
        check_frames(&recorded(&folder));
    }
}

fn check_frames(recorded: &[Recorded]) {
    let sent: Vec<&Recorded> = recorded.iter().filter(|recorded| recorded.to_host).collect();
    let bodies: Vec<String> = sent.iter().map(|recorded| recorded.message.to_string()).collect();
    let mut stream = Vec::new();
    for (body, recorded) in bodies.iter().zip(&sent) {
        let frame = frame(body);
        assert!(frame.starts_with(format!("{}\r\n\r\n", recorded.head).as_bytes()), "{}", recorded.head);
        stream.extend(frame);
    }
    for size in [1, 7, 1_000, stream.len()] {
        let mut decoder = Decoder::new(1 << 20);
        let mut found = Vec::new();
        for piece in stream.chunks(size) {
            decoder.push(piece);
            while let Some(body) = decoder.next_frame().unwrap() {
                found.push(body);
            }
        }
        assert_eq!(found, bodies, "in pieces of {size}");
    }
}

/// The logs in a folder, recursively.
fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logs(&path, found);
        } else if path.file_name().is_some_and(|name| name == "events.jsonl") {
            found.push(path);
        }
    }
}

#[test]
fn every_line_that_the_cli_wrote_is_an_event() {
    let mut found = Vec::new();
    for folder in both("copilot-cli") {
        logs(&folder, &mut found);
    }
    assert!(found.len() >= 5);
    for path in found {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let misread =
                matches!(&event.data, EventData::Unknown { kind, .. } if EventData::KINDS.contains(&kind.as_str()));
            assert!(!misread, "{line}");
            let (line, written) = (serde_json::from_str(line).unwrap(), serde_json::to_value(&event).unwrap());
            assert!(covers(&line, &written), "{written} is not in {line}");
        }
    }
}
