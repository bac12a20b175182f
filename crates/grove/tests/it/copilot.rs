//! `grove copilot` on a port: its access control. The methods of an SDK, on the host's own port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use grove_testkit::PATIENCE;
use grove_wire::copilot::methods::Method;
use serde_json::{Value, json};

use crate::support::{Background, TestHome};

/// A running `grove copilot`, killed when dropped.
struct Carrier {
    child: Child,
    port: u16,
}

impl Carrier {
    fn start(place: &TestHome, token: Option<&str>) -> Self {
        let mut command = place.grove(&["copilot", "--headless", "--port", "0", "--data-dir"]);
        command.arg(place.data());
        token.map(|token| command.env("COPILOT_CONNECTION_TOKEN", token));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // The SDK looks for this line.
        let port = line.trim().rsplit_once("listening on port ").unwrap().1.parse().unwrap();
        Self { child, port }
    }

    /// Sends bytes to the port, closes, and returns the whole answer.
    fn exchange(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn frame(id: u64, method: &str, params: Value) -> String {
    let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

fn create(token: Option<&str>) -> String {
    let session = json!({"sessionId": "from-outside", "model": "scripted"});
    frame(1, "connect", json!({ "token": token })) + &frame(2, "session.create", session)
}

#[test]
fn a_port_is_opened_by_a_token_alone_and_not_by_a_web_page() {
    let background = Background(TestHome::new());
    let place = &background.0;
    let carrier = Carrier::start(place, None);
    let path = place.data().join("copilot-token");
    let token = std::fs::read_to_string(&path).unwrap();
    assert!(token.len() >= 32);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    assert!(carrier.exchange(&create(None)).contains("-32002"));
    let body = create(Some(&token));
    let head = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n";
    let answer = carrier.exchange(&format!("{head}Content-Length: 2\r\n\r\n{{}}{body}"));
    assert!(!answer.contains("\"result\""), "{answer}");
    let listed = place.run(&["ls", "--json"]);
    assert_eq!((listed.code, listed.stdout.contains("from-outside")), (Some(0), false), "{}", listed.stdout);

    assert!(carrier.exchange(&create(Some(&token))).contains("protocolVersion"));
    // The next program finds the same token; one with its own token requires that.
    let second = Carrier::start(place, None);
    assert!(second.exchange(&create(Some(&token))).contains("protocolVersion"));
    let own = Carrier::start(place, Some("its-own-secret"));
    assert!(own.exchange(&create(Some(&token))).contains("-32002"));
    assert!(own.exchange(&create(Some("its-own-secret"))).contains("protocolVersion"));
}

#[test]
fn a_connection_token_that_cannot_be_sent_is_refused_with_a_reason() {
    let background = Background(TestHome::new());
    let mut command = background.0.grove(&["copilot", "--headless", "--port", "0", "--data-dir"]);
    let ran = command.arg(background.0.data()).env("COPILOT_CONNECTION_TOKEN", "line\nbreak").output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success() && said.contains("COPILOT_CONNECTION_TOKEN"), "{said}");
}

/// A client of an SDK.
pub(crate) struct Sdk {
    stream: BufReader<TcpStream>,
    calls: u64,
}

impl Sdk {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream), calls: 0 }
    }

    /// The answer to a request. Notifications before it are skipped.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        self.stream.get_mut().write_all(frame(self.calls, method, params).as_bytes()).unwrap();
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let read = self.stream.read_line(&mut head).unwrap();
                assert!(read > 0, "{method}: the host closed the connection");
            }
            let length = head.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).unwrap();
            let message: Value = serde_json::from_slice(&body).unwrap();
            if message["id"] == self.calls && message["method"].is_null() {
                return message;
            }
        }
    }
}

/// The valid params of a method for a session.
fn params_of(method: Method, session: &str) -> Value {
    let mode = match method {
        Method::SessionSend => "enqueue",
        Method::HistoryRewind => "conversation",
        Method::PermissionsSetMode => "manual",
        _ => "interactive",
    };
    let result = match method {
        Method::PermissionsHandlePending => json!({"kind": "approved"}),
        Method::UiHandlePendingElicitation => json!({"action": "cancel"}),
        Method::CommandsRespond => json!({"handled": true}),
        _ => json!("done"),
    };
    let path = if method.as_str().contains("permissions") { "/tmp" } else { "notes.md" };
    let prompt = match method {
        Method::SessionSendAndWait => "script:[{\"say\": \"hello\"}]",
        _ => "hello",
    };
    let message = match method {
        Method::QueueInsertAt => json!({"prompt": "hello"}),
        _ => json!("a message"),
    };
    json!({
        "message": message, "id": "none", "position": 0, "toPosition": 1, "summary": "A summary", "command": "/hello",
        "commandName": "hello", "requestedSchema": {"type": "object", "properties": {}}, "context": {"cwd": "/tmp"},
        "prefix": "nothing", "sessionIds": [], "sessions": [], "plugins": [], "olderThanDays": 9_999,
        "sessionId": session, "model": "scripted", "modelId": "scripted", "prompt": prompt, "mode": mode,
        "name": "Named", "reasoningEffort": "high", "content": "text", "path": path, "source": "notes.md",
        "destination": "renamed.md", "number": 1, "eventType": "assistant.message", "handle": "h", "eventId": "none",
        "enabled": false, "scope": "session", "workingDirectory": "/tmp", "requestId": "none", "result": result,
        "response": {"answer": "yes"}, "initialCwd": "/tmp", "sessionStatePath": "/state", "conventions": "posix",
    })
}

/// The stack of each worker thread in this test: half of the default, which leaves a margin.
const HALF_STACK: &str = "1048576";

#[test]
fn every_method_is_answered_with_small_stacks_even_without_optimisation() {
    let place = TestHome::new();
    let mut command = place.serve_command(&["--copilot-listen", "127.0.0.1:0"]);
    command.env("RUST_MIN_STACK", HALF_STACK);
    let host = place.start(command);
    let endpoint = std::fs::read_to_string(place.data().join("host.json")).unwrap();
    let endpoint: Value = serde_json::from_str(&endpoint).unwrap();
    let mut sdk = Sdk::connect(endpoint["copilot"].as_str().unwrap());
    assert!(sdk.call("connect", json!({ "token": host.token }))["result"].is_object());
    let created = sdk.call("session.create", json!({"sessionId": "s", "model": "scripted"}));
    assert_eq!(created["result"]["sessionId"], "s", "{created}");
    let mut answered = 0;
    for method in Method::ALL {
        if is_last(*method) {
            continue;
        }
        let answer = sdk.call(method.as_str(), params_of(*method, "s"));
        let refusal = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(!refusal.contains("Invalid"), "{}: {refusal}", method.as_str());
        answered += usize::from(answer["error"].is_null());
    }
    assert!(answered >= 90, "{answered} methods succeeded");
    for method in Method::ALL.iter().filter(|method| is_last(**method)) {
        let id = format!("of-{}", method.as_str().replace('.', "-"));
        let created = sdk.call("session.create", json!({"sessionId": id, "model": "scripted"}));
        assert_eq!(created["result"]["sessionId"], id.as_str(), "{created}");
        let answer = sdk.call(method.as_str(), params_of(*method, &id));
        assert!(answer["error"].is_null(), "{}: {answer}", method.as_str());
    }
    assert_eq!(host.connections(), 0, "the host is alive, and clients of an SDK are not counted");
}

/// Says whether a method needs a session of its own: it ends the client's part in it, or the endpoint, or waits for the
/// session's turns.
fn is_last(method: Method) -> bool {
    matches!(
        method,
        Method::SessionDetach
            | Method::SessionDestroy
            | Method::SessionSendAndWait
            | Method::SessionsClose
            | Method::SessionSuspend
            | Method::SessionShutdown
            | Method::SessionDelete
            | Method::SessionsDelete
            | Method::RuntimeShutdown
    )
}
