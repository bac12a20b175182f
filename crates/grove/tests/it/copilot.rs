//! `grove copilot` on a port: its access control.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use grove_testkit::PATIENCE;
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
