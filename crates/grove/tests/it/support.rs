//! Starting the program, and sending requests to it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grove_testkit::{Client, Envelope, PATIENCE};
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::v1::SessionState;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The session of most tests.
pub(crate) const S: &str = "scripted:/s";

/// A home folder and a data folder, deleted with the last reference.
#[derive(Clone)]
pub(crate) struct TestHome {
    root: PathBuf,
    _folder: Arc<TempDir>,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("home")).unwrap();
        Self { root, _folder: Arc::new(folder) }
    }

    /// A path beside home and data.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The data folder, which the host creates.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes a file, with its parent folders, and returns its path.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program, without the environment of the user who runs the tests.
    pub(crate) fn grove(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grove"));
        command.env_clear().env("HOME", self.home()).current_dir(&self.root).stdin(Stdio::null()).args(args);
        // Hosts of tests use any free port: two never collide, and the default port stays free.
        command.env("GROVE_LISTEN", "127.0.0.1:0");
        // `make test-checks` takes one security check out of the program, too.
        if let Some(check) = std::env::var_os("GROVE_CHECK_OFF") {
            command.env("GROVE_CHECK_OFF", check);
        }
        command
    }

    /// A command on this place's data folder, run to its end.
    pub(crate) fn run(&self, args: &[&str]) -> CommandResult {
        CommandResult::from(self.grove(args).arg("--data-dir").arg(self.data()).output().unwrap())
    }

    /// The command `grove serve` of tests, for changes to it.
    pub(crate) fn serve_command(&self, args: &[&str]) -> Command {
        let mut command = self.grove(&["serve", "--json"]);
        command.args(args);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        // A data folder in `args` replaces the usual one.
        if !args.contains(&"--data-dir") {
            command.arg("--data-dir").arg(self.data());
        }
        command
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Host {
        self.start(self.serve_command(args))
    }

    pub(crate) fn start(&self, mut command: Command) -> Host {
        let log = self.path("stderr");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .expect("grove cannot be started");
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let endpoint: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            child.kill().ok();
            child.wait().ok();
            panic!("grove serve said {line:?} and {}", std::fs::read_to_string(&log).unwrap())
        });
        let text = |key: &str| endpoint[key].as_str().unwrap().to_owned();
        Host {
            ws: text("ws"),
            address: text("http").strip_prefix("http://").unwrap().to_owned(),
            token: text("token"),
            place: self.clone(),
            child,
            _stdout: stdout,
        }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The background host of a place, stopped when dropped.
pub(crate) struct Background(pub(crate) TestHome);

impl Background {
    /// `grove start --json` with more arguments, and its output.
    pub(crate) fn start(&self, args: &[&str]) -> Value {
        let ran = self.0.run(&[&["start", "--json"], args].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The host's log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.0.data().join("host.log")).unwrap()
    }

    /// A client of the host.
    pub(crate) async fn client(&self, client_id: &str) -> Client {
        let endpoint = std::fs::read_to_string(self.0.data().join("host.json")).unwrap();
        let endpoint: Value = serde_json::from_str(&endpoint).unwrap();
        let (ws, token) = (endpoint["ws"].as_str().unwrap(), endpoint["token"].as_str().unwrap());
        let mut client = Client::connect(ws, token, client_id).await;
        client.initialize(&[]).await;
        client
    }

    /// Waits until no host is running any more.
    pub(crate) fn until_gone(&self) {
        let deadline = Deadline::new("the host is still there");
        while self.0.run(&["status"]).code != Some(3) {
            deadline.check();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.run(&["stop"]);
    }
}

/// A running host, killed when dropped.
pub(crate) struct Host {
    pub(crate) place: TestHome,
    pub(crate) ws: String,
    pub(crate) address: String,
    pub(crate) token: String,
    child: Child,
    /// Held open: a host may print something at any time.
    _stdout: BufReader<ChildStdout>,
}

impl Host {
    /// A host with default settings.
    pub(crate) fn start() -> Self {
        TestHome::new().serve(&[])
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connected client that has not sent `initialize`.
    pub(crate) async fn connect(&self, client_id: &str) -> Client {
        Client::connect(&self.ws, &self.token, client_id).await
    }

    /// An initialized client without subscriptions.
    pub(crate) async fn client(&self, client_id: &str) -> Client {
        let mut client = self.connect(client_id).await;
        client.initialize(&[]).await;
        client
    }

    /// A client with the session [`S`], subscribed and ready.
    pub(crate) async fn client_with_session(&self, client_id: &str) -> Client {
        let mut client = self.client(client_id).await;
        client.ready_session(S).await;
        client
    }

    /// A client that is subscribed to [`S`].
    pub(crate) async fn subscriber(&self, client_id: &str) -> Client {
        let mut client = self.connect(client_id).await;
        client.initialize(&[S]).await;
        client
    }

    /// Reconnects a client. Returns whether there was a replay.
    pub(crate) async fn reconnect(&self, client: &mut Client) -> bool {
        let stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        client.reconnect(Box::new(stream), &format!("{}?tkn={}", self.ws, self.token)).await
    }

    /// The state of a session for a new client.
    pub(crate) async fn snapshot(&self, uri: &str) -> SessionState {
        let mut fresh = self.connect("somebody-who-just-came").await;
        fresh.initialize(&[uri]).await;
        fresh.session(uri).clone()
    }

    pub(crate) fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request's head (line and headers, without the empty line) unchanged, and reads the answer.
    pub(crate) fn http(&self, head: &str) -> HttpAnswer {
        let mut stream = self.tcp();
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        HttpAnswer::read(stream)
    }

    /// A WebSocket upgrade of `path` with more headers, including `Host` if needed.
    pub(crate) fn upgrade(&self, path: &str, headers: &[&str]) -> HttpAnswer {
        let mut head = format!(
            "GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        );
        for header in headers {
            head.push_str("\r\n");
            head.push_str(header);
        }
        self.http(&head)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the process's end.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        let deadline = Deadline::new("the host does not end");
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None => deadline.check(),
            }
        }
    }

    /// Stops the host cleanly, and returns its stderr output.
    pub(crate) fn stop_and_read_log(mut self) -> String {
        self.signal(Signal::TERM);
        assert_eq!(self.exit().code(), Some(0));
        std::fs::read_to_string(self.place.path("stderr")).unwrap()
    }

    /// Stops the host cleanly.
    pub(crate) fn stop(mut self) -> TestHome {
        self.signal(Signal::TERM);
        assert_eq!(self.exit().code(), Some(0));
        self.place.clone()
    }

    /// Kills the host.
    pub(crate) fn kill(mut self) -> TestHome {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.place.clone()
    }

    /// The number of connections that the host reports.
    pub(crate) fn connections(&self) -> u64 {
        let bearer = format!("Authorization: Bearer {}", self.token);
        let answer = self.http(&format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n{bearer}", self.address));
        serde_json::from_str::<Value>(&answer.body).unwrap()["connections"].as_u64().unwrap()
    }

    /// Waits until the host has this many connections; it may notice late that one is gone.
    pub(crate) fn until_connections(&self, count: u64) {
        let deadline = Deadline::new("connections are still counted");
        while self.connections() != count {
            deadline.check();
        }
    }

    /// A line of `/proc/PID/status` that counts kilobytes, in bytes.
    pub(crate) fn memory(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        let kilobytes: u64 = line.trim_start_matches(':').trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
        kilobytes << 10
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The time limit for polling.
pub(crate) struct Deadline {
    since: Instant,
    problem: &'static str,
}

impl Deadline {
    pub(crate) fn new(problem: &'static str) -> Self {
        Self { since: Instant::now(), problem }
    }

    pub(crate) fn check(&self) {
        assert!(self.since.elapsed() < PATIENCE, "{} after {PATIENCE:?}", self.problem);
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// Name in lower case, and value.
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Self { status, headers, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }
}

/// Helpers of tests for a client.
pub(crate) trait ClientExt {
    /// Sends a request through the sequencer: everything published before has arrived when this returns.
    async fn barrier(&mut self);
    /// The next frame as JSON, without handling it.
    async fn json(&mut self) -> Value;
    /// Sends a frame of JSON.
    async fn send_json(&mut self, message: Value);
    /// A request that must fail, and its error.
    async fn refused(&mut self, method: &str, params: Value) -> ErrorObject;
    async fn get(&mut self, method: &str, params: Value) -> Value;
    /// Dispatches an action that must be rejected, and returns the reason.
    async fn rejected(&mut self, action: Value) -> String;
    async fn cancel(&mut self, uri: &str, turn: &str) -> u64;
    async fn approve(&mut self, uri: &str, turn: &str, request: &str) -> u64;
    async fn deny(&mut self, uri: &str, turn: &str, request: &str) -> u64;
    /// Waits until the running turn has streamed this text.
    async fn streamed(&mut self, uri: &str, text: &str);
    /// Waits until the running turn asks for a permission, and returns the request's id.
    async fn asked(&mut self, uri: &str) -> String;
    /// The types of received actions, without rejected ones and without titles, which come with the first prompt.
    fn kinds(&self) -> Vec<String>;
}

impl ClientExt for Client {
    async fn barrier(&mut self) {
        self.refused("subscribe", json!({"resource": "scripted:/no-such-session"})).await;
    }

    async fn json(&mut self) -> Value {
        let text = self.frame().await.unwrap_or_else(|| panic!("the connection ended: {:?}", self.ended()));
        serde_json::from_str(&text).unwrap()
    }

    async fn send_json(&mut self, message: Value) {
        self.send(message.to_string()).await;
    }

    async fn refused(&mut self, method: &str, params: Value) -> ErrorObject {
        match self.call::<Value>(method, &params).await {
            Err(error) => error,
            Ok(result) => panic!("{method} {params} was answered with {result}"),
        }
    }

    async fn get(&mut self, method: &str, params: Value) -> Value {
        self.call(method, &params).await.unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    async fn rejected(&mut self, action: Value) -> String {
        let seq = self.dispatch(action.clone()).await;
        let answer = self.answer_to(seq).await;
        assert_eq!(action_of(&answer), action, "the action comes back as it was");
        answer.rejection_reason.unwrap_or_else(|| panic!("{action} was accepted"))
    }

    async fn cancel(&mut self, uri: &str, turn: &str) -> u64 {
        self.dispatch(json!({"type": "session/turnCancelled", "session": uri, "turnId": turn})).await
    }

    async fn approve(&mut self, uri: &str, turn: &str, request: &str) -> u64 {
        self.dispatch(permission_resolved(uri, turn, request, true)).await
    }

    async fn deny(&mut self, uri: &str, turn: &str, request: &str) -> u64 {
        self.dispatch(permission_resolved(uri, turn, request, false)).await
    }

    async fn streamed(&mut self, uri: &str, text: &str) {
        let is_it = |client: &Client| {
            client.session(uri).active_turn.as_ref().is_some_and(|active| active.streaming_text == text)
        };
        self.until(is_it).await;
    }

    async fn asked(&mut self, uri: &str) -> String {
        let open = |client: &Client| {
            let active = client.session(uri).active_turn.as_ref()?;
            active.pending_permissions.keys().next().cloned()
        };
        self.until(|client| open(client).is_some()).await;
        open(self).unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        let accepted = self.envelopes.iter().filter(|envelope| envelope.rejection_reason.is_none());
        accepted.map(kind_of).filter(|kind| kind != "session/titleChanged").collect()
    }
}

pub(crate) fn action_of(envelope: &Envelope) -> Value {
    serde_json::from_str(envelope.action.get()).unwrap()
}

pub(crate) fn kind_of(envelope: &Envelope) -> String {
    action_of(envelope)["type"].as_str().unwrap().to_owned()
}

/// The envelope as JSON.
pub(crate) fn envelope_json(envelope: &Envelope) -> Value {
    serde_json::to_value(envelope).unwrap()
}

/// A request's frame.
pub(crate) fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The frame of a `dispatchAction`.
pub(crate) fn dispatch(client_seq: u64, action: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"clientSeq": client_seq, "action": action}})
}

/// The action that starts a turn with a script.
pub(crate) fn turn_started(uri: &str, turn: &str, steps: &Value) -> Value {
    json!({
        "type": "session/turnStarted",
        "session": uri,
        "turnId": turn,
        "userMessage": {"text": format!("script:{steps}")},
    })
}

/// The action that answers a permission request.
pub(crate) fn permission_resolved(uri: &str, turn: &str, request: &str, approved: bool) -> Value {
    json!({
        "type": "session/permissionResolved",
        "session": uri,
        "turnId": turn,
        "requestId": request,
        "approved": approved,
    })
}

/// The file URI of a path without special characters.
pub(crate) fn file_uri(path: &std::path::Path) -> String {
    format!("file://{}", path.display())
}
