//! The requests that the server got, for tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

/// The most requests that are kept, and the limit of their total size. The oldest are dropped first.
const KEPT: usize = 1000;
const KEPT_BYTES: usize = 64 << 20;

/// Headers that carry secrets.
const SECRETS: [&str; 6] = ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];
const REDACTED: &str = "<redacted>";

/// One request.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedRequest {
    /// Counted from 1, the dropped ones too.
    pub number: u64,
    pub method: String,
    /// With the query, without a key in it.
    pub path: String,
    /// Names in lower case; secrets are redacted.
    pub headers: BTreeMap<String, String>,
    /// Null if it was not JSON.
    pub body: Value,
    pub purpose: RequestPurpose,
}

/// The server's classification of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPurpose {
    /// The conversation: the turn and the number of its answer; no turn if the script had none left.
    Turn { turn: Option<usize>, answer: usize },
    /// A request beside the conversation.
    Utility,
    /// A request for the length of a request.
    Count,
    /// A request for the list of models.
    Models,
    /// Nothing that it serves: answered with 404, or 400 if it was not JSON.
    Unknown,
}

/// The newest requests.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    requests: VecDeque<(Arc<RecordedRequest>, usize)>,
    bytes: usize,
    count: u64,
}

impl RequestLog {
    /// Keeps a request whose body had so many bytes.
    pub(super) fn push(&mut self, mut request: RecordedRequest, bytes: usize) {
        self.count += 1;
        request.number = self.count;
        self.requests.push_back((Arc::new(request), bytes));
        self.bytes += bytes;
        while self.requests.len() > KEPT || (self.bytes > KEPT_BYTES && self.requests.len() > 1) {
            self.bytes -= self.requests.pop_front().map_or(0, |(_, bytes)| bytes);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<RecordedRequest>> {
        self.requests.iter().map(|(request, _)| request.clone()).collect()
    }
}

impl RecordedRequest {
    pub(super) fn new(head: &hyper::http::request::Parts, body: Value, purpose: RequestPurpose) -> Self {
        let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            let is_secret = SECRETS.contains(&name.as_str());
            let value = if is_secret { REDACTED.into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.to_string(), value.into_owned())
        };
        Self {
            number: 0,
            method: head.method.to_string(),
            path: without_key(&head.uri.to_string()),
            headers: head.headers.iter().map(header).collect(),
            body,
            purpose,
        }
    }
}

/// Gemini's clients may put their key into the query.
fn without_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let hide = |pair: &str| if pair.starts_with("key=") { format!("key={REDACTED}") } else { pair.to_owned() };
    let query: Vec<String> = query.split('&').map(hide).collect();
    format!("{path}?{}", query.join("&"))
}
