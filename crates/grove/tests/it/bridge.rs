//! `grove ahp-bridge --stdio` and `grove serve --stdio`: the host's WebSocket on stdin and stdout.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::*;

struct Bridge {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(place: &TestHome) -> Self {
        Self::run(place, &["ahp-bridge", "--stdio"])
    }

    fn run(place: &TestHome, args: &[&str]) -> Self {
        let mut command = place.grove(args);
        command.arg("--data-dir").arg(place.data()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn send(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?} is no message"))
    }

    /// Receives until a condition holds.
    fn until(&mut self, done: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if done(&message) {
                return message;
            }
        }
    }

    fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&request(json!(id), method, params).to_string());
        self.until(|message| message["id"] == id)
    }

    fn initialize(&mut self) -> Value {
        self.call(1, "initialize", json!({"protocolVersion": 1, "clientId": "bridged"}))
    }

    /// The exit code, and the output that was not a message.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Deadline::new("the bridge does not end");
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => deadline.check(),
            }
        };
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (code, errors)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn action<'a>(message: &'a Value, kind: &str) -> Option<&'a Value> {
    let action = &message["params"]["envelope"]["action"];
    (action["type"] == kind).then_some(action)
}

#[test]
fn a_conversation_goes_through_the_bridge() {
    let host = Host::start();
    let mut bridge = Bridge::start(&host.place);
    assert_eq!(bridge.initialize()["result"]["protocolVersion"], 1);
    assert_eq!(bridge.call(2, "createSession", json!({"session": S}))["result"], Value::Null);
    let snapshot = bridge.call(3, "subscribe", json!({"resource": S}));
    if snapshot["result"]["state"]["lifecycle"] != "ready" {
        bridge.until(|message| action(message, "session/ready").is_some());
    }
    let steps = json!([{"say": "hello \n there"}]);
    bridge.send(&dispatch(1, turn_started(S, "t", &steps)).to_string());
    let complete = bridge.until(|message| action(message, "session/turnComplete").is_some());
    assert_eq!(complete["params"]["envelope"]["action"]["turnId"], "t");
    assert_eq!(host.connections(), 1);
    assert_eq!(bridge.call(4, "ping", json!({}))["result"], Value::Null);

    bridge.stdin = None;
    assert_eq!(bridge.end(), (Some(0), String::new()));
    host.until_connections(0);
}

#[tokio::test]
async fn a_message_is_one_line_whatever_its_author_put_between_the_words() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut bridge = Bridge::start(&host.place);
    bridge.initialize();
    bridge.call(2, "subscribe", json!({"resource": S}));
    let spread = serde_json::to_string_pretty(&dispatch(1, turn_started(S, "t", &json!([])))).unwrap();
    client.send(spread).await;
    let started = bridge.until(|message| action(message, "session/turnStarted").is_some());
    assert_eq!(started["params"]["envelope"]["origin"]["clientId"], "a");
    // Neither empty lines nor a carriage return are messages.
    bridge.send("\n\r\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\r");
    assert_eq!(bridge.until(|message| message["id"] == 3)["result"], Value::Null);
}

#[test]
fn the_bridge_ends_with_0_when_the_host_does() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut host = Host::start();
        let mut bridge = Bridge::start(&host.place);
        bridge.initialize();
        host.signal(signal);
        host.exit();
        let mut rest = String::new();
        bridge.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing but messages");
        let (code, errors) = bridge.end();
        assert_eq!(code, Some(0), "{errors}");
        assert!(signal == Signal::KILL || errors.contains("the host stops"), "{errors}");
    }
}

#[test]
fn the_bridge_starts_a_host_where_there_is_none() {
    let background = Background(TestHome::new());
    let mut bridge = Bridge::start(&background.0);
    assert_eq!(bridge.initialize()["result"]["protocolVersion"], 1);
    let mut other = Bridge::start(&background.0);
    other.call(1, "initialize", json!({"protocolVersion": 1, "clientId": "other"}));
    let status: Value = serde_json::from_str(&background.0.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["connections"], 2);
    drop((bridge, other));
    assert_eq!(background.0.run(&["status"]).code, Some(0), "it outlives the bridge");
}

#[test]
fn a_line_that_the_host_would_not_take_is_an_error_that_says_so() {
    let host = Host::start();
    let padding = |length: usize| "x".repeat(length);
    let most = 4 << 20;
    let frame = |length: usize| {
        let empty = request(json!(2), "ping", json!({"x": ""})).to_string().len();
        request(json!(2), "ping", json!({"x": padding(length - empty)})).to_string()
    };
    let mut bridge = Bridge::start(&host.place);
    bridge.initialize();
    bridge.send(&frame(most));
    assert_eq!(bridge.until(|message| message["id"] == 2)["result"], Value::Null, "as long as a message may be");
    // It may end before it has read everything.
    bridge.stdin.as_mut().unwrap().write_all(format!("{}\n", frame(most + 1)).as_bytes()).ok();
    let (code, errors) = bridge.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("line 3") && errors.contains("4194304 bytes"), "{errors}");
    assert_eq!(host.place.run(&["status"]).code, Some(0));
}

#[test]
fn serve_on_stdio_carries_both_protocols_and_the_host_it_started_ends_by_itself() {
    let background = Background(TestHome::new());
    let serve = || Bridge::run(&background.0, &["serve", "--stdio", "--idle-exit", "1"]);
    let mut first = serve();
    assert_eq!(first.initialize()["result"]["protocolVersion"], 1);
    assert_eq!(first.call(2, "createSession", json!({"session": S}))["result"], Value::Null);
    let mut second = serve();
    let offer = json!({"channel": "ahp-root://", "clientId": "second", "protocolVersions": ["1.0.0"]});
    assert_eq!(second.call(1, "initialize", offer)["result"]["protocolVersion"], "1.0.0");
    let sessions = second.call(2, "listSessions", json!({"channel": "ahp-root://"}));
    assert_eq!(sessions["result"]["items"].as_array().unwrap().len(), 1, "{sessions}");
    for mut bridge in [first, second] {
        bridge.stdin = None;
        let mut rest = String::new();
        bridge.stdout.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("x-grove/closed"), "who ends it knows why: {rest}");
        assert_eq!(bridge.end(), (Some(0), String::new()));
    }
    background.until_gone();
}

#[test]
fn who_is_served_on_stdio_is_told_why_it_ends() {
    let mut host = Host::start();
    let mut bridge = Bridge::run(&host.place, &["serve", "--stdio"]);
    bridge.initialize();
    host.signal(Signal::TERM);
    host.exit();
    let last = bridge.until(|message| message["method"] == "x-grove/closed");
    assert_eq!(last["params"], json!({"code": 1001, "reason": "the host stops"}));
    assert_eq!(bridge.end().0, Some(0));
}

#[test]
fn what_is_said_of_a_host_has_no_place_beside_stdio() {
    let place = TestHome::new();
    for args in [&["--listen", "127.0.0.1:0"][..], &["--insecure"], &["--store", "memory"]] {
        let ran = place.run(&[&["serve", "--stdio"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
    }
    let ran = place.run(&["serve", "--stdio", "--json"]);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &said["error"]["code"]), (Some(2), &json!("usage")), "{said}");
    assert!(said["error"]["message"].as_str().unwrap().contains("'--stdio' cannot be used with '--json'"), "{said}");
}

#[test]
fn wrong_bytes_are_an_error_and_a_wrong_message_is_the_hosts() {
    let host = Host::start();
    let mut bridge = Bridge::start(&host.place);
    bridge.send("{nonsense");
    assert_eq!(bridge.receive()["error"]["code"], -32700);
    bridge.stdin.as_mut().unwrap().write_all(b"\xff\n").unwrap();
    let (code, errors) = bridge.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("line 2") && errors.contains("UTF-8"), "{errors}");
}
