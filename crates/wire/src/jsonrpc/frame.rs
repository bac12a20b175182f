//! Frames: reading and writing single messages and batches.

use std::borrow::Cow;

use grove_checks::Check;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The maximum nesting of a message. Deeper ones are refused before they are parsed.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of messages of a batch.
pub const MAX_BATCH: usize = 1_000;

/// A call's id, kept exactly as it came: number, string or null.
#[derive(Clone, Debug)]
pub struct Id(Box<RawValue>);

impl Id {
    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// The id's text, if it is one: the other side may have escaped it differently.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(self.as_json()).ok()
    }

    /// Says whether the other side can read it back: JSON's grammar has numbers and texts that parsers refuse.
    fn is_valid(&self) -> bool {
        match self.as_json().as_bytes().first() {
            Some(b'"') => self.text().is_some(),
            Some(b'-' | b'0'..=b'9') => serde_json::from_str::<f64>(self.as_json()).is_ok(),
            first => first == Some(&b'n'),
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        // Every number is JSON; the fallback is never taken.
        Self(RawValue::from_string(number.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        // A quoted text is JSON; the fallback is never taken.
        Self(serde_json::value::to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

/// The contents of a frame.
#[derive(Debug)]
pub enum Frame<'a> {
    Single(Result<RpcMessage<'a>, InvalidMessage>),
    Batch(Vec<Result<RpcMessage<'a>, InvalidMessage>>),
}

/// A message of the other side.
#[derive(Debug)]
pub enum RpcMessage<'a> {
    Request(Request<'a>),
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    Response { id: Id, outcome: Result<&'a RawValue, ErrorObject> },
}

#[derive(Debug)]
pub struct Request<'a> {
    pub id: Id,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// A message that is JSON but not JSON-RPC. `id` is set if it could be read.
#[derive(Debug)]
pub struct InvalidMessage {
    pub id: Option<Id>,
    pub error: ErrorObject,
}

/// The error of a call.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorObject {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    pub fn unknown_method(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("there is no method {}", shown(method)))
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }
}

/// The codes of JSON-RPC itself.
pub mod code {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
}

/// A message before it is interpreted.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

/// Distinguishes `null` from absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one frame. An error is a frame that is not JSON, or too deep: it is answered with id `null`.
pub fn parse(text: &str) -> Result<Frame<'_>, ErrorObject> {
    check_depth(text)?;
    if !text.trim_start().starts_with('[') {
        return Ok(Frame::Single(parse_one(text)?));
    }
    let messages: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
    if messages.is_empty() {
        return Err(ErrorObject::invalid_request("a batch must not be empty"));
    }
    if messages.len() > MAX_BATCH {
        return Err(ErrorObject::invalid_request(format!("a batch may hold {MAX_BATCH} messages at most")));
    }
    messages.into_iter().map(|message| parse_one(message.get())).collect::<Result<_, _>>().map(Frame::Batch)
}

fn parse_one(text: &str) -> Result<Result<RpcMessage<'_>, InvalidMessage>, ErrorObject> {
    // An array would be read as the members of an envelope, in order.
    if text.starts_with('[') {
        let error = ErrorObject::invalid_request("not a JSON-RPC message: a batch holds no arrays");
        return Ok(Err(InvalidMessage { id: None, error }));
    }
    let envelope: RawMessage<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => {
            let error = ErrorObject::invalid_request(format!("not a JSON-RPC message: {error}"));
            return Ok(Err(InvalidMessage { id: None, error }));
        }
        Err(error) => return Err(not_json(error)),
    };
    Ok(envelope.check())
}

fn not_json(error: serde_json::Error) -> ErrorObject {
    ErrorObject::new(code::PARSE, format!("not JSON: {error}"))
}

impl<'a> RawMessage<'a> {
    fn check(self) -> Result<RpcMessage<'a>, InvalidMessage> {
        let id = self.id.map(|id| Id(id.to_owned()));
        let invalid = |id, problem: &str| Err(InvalidMessage { id, error: ErrorObject::invalid_request(problem) });
        if id.as_ref().is_some_and(|id| !id.is_valid()) {
            return invalid(None, "`id` must be a string, a number or null");
        }
        if self.jsonrpc.as_deref() != Some("2.0") {
            return invalid(id, "`jsonrpc` must be \"2.0\"");
        }
        if self.params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
            return invalid(id, "`params` must be an object or an array");
        }
        match (self.method, id, self.result, self.error) {
            (Some(method), Some(id), None, None) => {
                Ok(RpcMessage::Request(Request { id, method, params: self.params }))
            }
            (Some(method), None, None, None) => Ok(RpcMessage::Notification { method, params: self.params }),
            (None, Some(id), Some(result), None) => Ok(RpcMessage::Response { id, outcome: Ok(result) }),
            (None, Some(id), None, Some(error)) => Ok(RpcMessage::Response { id, outcome: Err(error) }),
            (_, id, _, _) => invalid(id, "a message has either a `method`, or an `id` with a `result` or an `error`"),
        }
    }
}

/// Refuses text that is nested too deeply, without recursion and before anything is built from it.
fn check_depth(text: &str) -> Result<(), ErrorObject> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if Check::JsonDepth.is_enforced() && depth > MAX_DEPTH {
                    return Err(ErrorObject::invalid_request(format!("nested deeper than {MAX_DEPTH} levels")));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// A name from outside, shortened for a message.
fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

#[derive(Serialize)]
struct Outgoing<'a, P: ?Sized> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObject>,
}

impl<P: ?Sized> Outgoing<'_, P> {
    const EMPTY: Self = Self { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };
}

pub fn request<P: Serialize + ?Sized>(id: &Id, method: &str, params: &P) -> serde_json::Result<String> {
    let out = Outgoing { id: Some(&id.0), method: Some(method), params: Some(params), ..Outgoing::EMPTY };
    serde_json::to_string(&out)
}

pub fn notification<P: Serialize + ?Sized>(method: &str, params: &P) -> serde_json::Result<String> {
    serde_json::to_string(&Outgoing { method: Some(method), params: Some(params), ..Outgoing::EMPTY })
}

pub fn response<R: Serialize + ?Sized>(id: &Id, result: &R) -> serde_json::Result<String> {
    serde_json::to_string(&Outgoing { id: Some(&id.0), result: Some(result), ..Outgoing::EMPTY })
}

/// A response with an encoded result.
pub fn response_raw(id: &Id, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.as_json())
}

/// The response to a failed call; without an id, to a frame that could not be read.
pub fn error(id: Option<&Id>, error: &ErrorObject) -> String {
    let id = id.map_or(RawValue::NULL, |id| &id.0);
    let out = Outgoing::<()> { id: Some(id), error: Some(error), ..Outgoing::EMPTY };
    serde_json::to_string(&out).unwrap_or_else(|_| {
        let code = error.code;
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"error"}}}}"#, id.get())
    })
}

/// Several responses in one frame, for a batch.
pub fn batch(answers: &[String]) -> String {
    format!("[{}]", answers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        let one = |message: &Result<RpcMessage<'_>, InvalidMessage>| match message {
            Ok(RpcMessage::Request(request)) => format!("request {} {}", request.id.as_json(), request.method),
            Ok(RpcMessage::Notification { method, .. }) => format!("notification {method}"),
            Ok(RpcMessage::Response { id, outcome }) => format!("response {} {}", id.as_json(), outcome.is_ok()),
            Err(invalid) => {
                let id = invalid.id.as_ref().map_or("-", Id::as_json);
                format!("invalid {id} {}", invalid.error.code)
            }
        };
        match parse(text) {
            Ok(Frame::Single(message)) => one(&message),
            Ok(Frame::Batch(messages)) => messages.iter().map(one).collect::<Vec<_>>().join("; "),
            Err(error) => format!("error {}", error.code),
        }
    }

    #[test]
    fn an_id_that_no_parser_reads_back_is_refused() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1e9995,"method":"a"}"#), "invalid - -32600");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"\ud800","method":"a"}"#), "invalid - -32600");
    }

    #[test]
    fn ids_are_kept_as_they_came() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":0,"method":"a"}"#), "request 0 a");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"x\u0041","method":"a"}"#), r#"request "x\u0041" a"#);
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1.50,"method":"a"}"#), "request 1.50 a");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#), "request null a");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#), "invalid - -32600");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#), "invalid - -32600");
    }

    #[test]
    fn an_id_that_is_a_text_is_known_however_it_is_escaped() {
        assert_eq!(Id::from("turn:é\"").as_json(), r#""turn:é\"""#);
        let Ok(Frame::Single(Ok(RpcMessage::Response { id, .. }))) =
            parse(r#"{"jsonrpc":"2.0","id":"turn:\u00e9\"","result":null}"#)
        else {
            panic!()
        };
        assert_eq!(id.text().as_deref(), Some("turn:é\""));
        assert_eq!(Id::from(7).text(), None);
    }

    #[test]
    fn each_kind_of_message_is_told_apart() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"a","params":{}}"#), "notification a");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), "response 1 true");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#), "response 1 false");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1}"#), "invalid 1 -32600");
        assert_eq!(kind(r#"{"id":1,"method":"a"}"#), "invalid 1 -32600");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":3}"#), "invalid 1 -32600");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), "invalid - -32600");
        assert_eq!(kind("3"), "invalid - -32600");
        assert_eq!(kind(r#"{"jsonrpc":"#), "error -32700");
        assert_eq!(kind(r#"[{"jsonrpc":"2.0","method":"a"},1]"#), "notification a; invalid - -32600");
        assert_eq!(kind("[]"), "error -32600");
        assert_eq!(kind(r#"[["2.0",1,"a"]]"#), "invalid - -32600");
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(kind(&nested(MAX_DEPTH + 1)), "error -32600");
        assert_eq!(kind(&nested(1_000_000)), "error -32600");
        let text = format!(r#"{{"jsonrpc":"2.0","method":"a","params":["{}\"["]}}"#, "[".repeat(500));
        assert_eq!(kind(&text), "notification a");
    }

    #[test]
    fn answers_have_the_shape_of_json_rpc() {
        let id = Id::from(7);
        assert_eq!(response(&id, &()).unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":null}"#);
        assert_eq!(response_raw(&id, "[1]"), r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#);
        assert_eq!(
            error(None, &ErrorObject::new(-32700, "not JSON")),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}"#
        );
        assert_eq!(notification("a", &[1]).unwrap(), r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#);
        assert_eq!(batch(&["1".into(), "2".into()]), "[1,2]");
    }
}
