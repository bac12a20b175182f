//! The scopes of tokens: each dialect refuses requests and actions that the token does not permit.

use std::path::Path;

use grove_core::{Scope, ScopeSet};
use grove_host::{Config, Folders};
use grove_server::{InProcessConnection, InProcessHost, InProcessMessage, PeerAddress, Principal};
use grove_work::{Roots, file_uri};
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";
const PERMISSION_DENIED: i64 = -32009;

/// A client whose token has these scopes.
pub(crate) struct Scoped(InProcessConnection);

impl Scoped {
    fn connect(host: &TestHost, scopes: &[Scope]) -> Self {
        let scopes: ScopeSet = scopes.iter().copied().collect();
        let principal = Principal::new("phone", scopes, PeerAddress::InProcess);
        Self(InProcessHost::new(&host.host).connect_as(principal).unwrap())
    }

    pub(crate) async fn ahp(host: &TestHost, scopes: &[Scope]) -> Self {
        let mut client = Self::connect(host, scopes);
        let begin = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "a"});
        client.ask("initialize", begin).await.unwrap();
        client
    }

    async fn v1(host: &TestHost, scopes: &[Scope]) -> Self {
        let mut client = Self::connect(host, scopes);
        client.ask("initialize", json!({"protocolVersion": 1, "clientId": "b"})).await.unwrap();
        client
    }

    async fn send(&self, message: Value) {
        self.0.to_host.send(message.to_string()).await.unwrap();
    }

    async fn frame(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.0.from_host.recv().await {
                Some(InProcessMessage::Frame(text)) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if fits(&frame) {
                        return frame;
                    }
                }
                other => panic!("no frame: {other:?}"),
            }
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.send(json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).await;
        let mut answer = self.frame(|frame| frame["id"] == 7).await;
        if answer["error"].is_null() { Ok(answer["result"].take()) } else { Err(answer["error"].take()) }
    }

    /// Checks that a request is refused for the lack of a scope.
    pub(crate) async fn must_lack(&mut self, scope: Scope, method: &str, params: Value) {
        let error = self.ask(method, params).await.expect_err(method);
        let message = error["message"].as_str().unwrap();
        assert_eq!(error["code"], PERMISSION_DENIED, "{method}: {error}");
        for words in [&format!("{method} needs the scope `{scope}`"), "token `phone`", "grove token add"] {
            assert!(message.contains(words), "{method}: {message}");
        }
    }

    /// The reason why an action is rejected; none if it is accepted.
    pub(crate) async fn dispatch(&mut self, params: Value) -> Option<String> {
        let seq = params["clientSeq"].clone();
        self.send(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
        let envelope = |frame: &Value| match frame["params"]["envelope"].is_null() {
            true => frame["params"].clone(),
            false => frame["params"]["envelope"].clone(),
        };
        let echo = self.frame(|frame| envelope(frame)["origin"]["clientSeq"] == seq).await;
        envelope(&echo)["rejectionReason"].as_str().map(str::to_owned)
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_its_scope_is_refused_and_says_what_to_do() {
    let host = TestHost::start(Config::default()).await;
    host.ahp("owner").await.ready_session(URI).await;
    let mut reader = Scoped::ahp(&host, &[Scope::Read]).await;
    reader.ask("subscribe", json!({"channel": CHAT})).await.unwrap();
    reader.ask("x-grove/tree", json!({"channel": CHAT})).await.unwrap();
    reader.must_lack(Scope::Prompt, "createSession", json!({"channel": "scripted:/t"})).await;
    reader.must_lack(Scope::Prompt, "disposeSession", json!({"channel": URI})).await;
    reader.must_lack(Scope::Prompt, "x-grove/rename", json!({"channel": URI, "title": "x"})).await;
    reader.must_lack(Scope::Approve, "x-grove/permissions", json!({"channel": URI, "revoke": true})).await;
    reader.must_lack(Scope::Admin, "x-grove/erase", json!({"session": URI})).await;
    reader.must_lack(Scope::Admin, "x-grove/handover/files", json!({"channel": URI})).await;
    reader.must_lack(Scope::Terminal, "createTerminal", json!({"channel": "ahp-terminal:/t"})).await;
    let mut prompter = Scoped::ahp(&host, &[Scope::Prompt]).await;
    prompter.must_lack(Scope::Read, "subscribe", json!({"channel": CHAT})).await;
    prompter.must_lack(Scope::Read, "resourceRead", json!({"channel": URI, "uri": "file:///etc/passwd"})).await;
    let unattended = json!({"channel": "scripted:/t", "config": {"mode": "bypassPermissions"}});
    prompter.must_lack(Scope::Approve, "createSession", unattended).await;
    prompter.ask("createSession", json!({"channel": "scripted:/t"})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_read_cannot_subscribe_as_it_connects() {
    let host = TestHost::start(Config::default()).await;
    let mut prompter = Scoped::connect(&host, &[Scope::Prompt]);
    let begin = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "a",
        "initialSubscriptions": ["ahp-root://"]});
    prompter.must_lack(Scope::Read, "initialize", begin).await;
    // Version 1 tells every connection of new sessions.
    let mut old = Scoped::connect(&host, &[Scope::Prompt]);
    old.must_lack(Scope::Read, "initialize", json!({"protocolVersion": 1, "clientId": "b"})).await;
}

#[tokio::test(start_paused = true)]
async fn an_action_without_its_scope_is_echoed_as_rejected() {
    let host = TestHost::start(Config::default()).await;
    host.ahp("owner").await.ready_session(URI).await;
    let action =
        |channel: &str, seq: u64, action: Value| json!({"channel": channel, "clientSeq": seq, "action": action});
    let mut reader = Scoped::ahp(&host, &[Scope::Read]).await;
    reader.ask("subscribe", json!({"channel": URI})).await.unwrap();
    for (seq, channel, scope, body) in [
        (1, URI, "prompt", json!({"type": "session/titleChanged", "title": "x"})),
        (2, URI, "prompt", json!({"type": "session/configChanged", "config": {"model": "m"}})),
        (
            3,
            CHAT,
            "approve",
            json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "c", "approved": true}),
        ),
        (4, CHAT, "approve", json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept"})),
    ] {
        let reason = reader.dispatch(action(channel, seq, body.clone())).await.unwrap_or_else(|| panic!("{body}"));
        assert!(reason.contains(&format!("needs the scope `{scope}`")), "{body}: {reason}");
    }
    let read = action(URI, 5, json!({"type": "session/isReadChanged", "isRead": true}));
    assert_eq!(reader.dispatch(read).await, None);
    let mut prompter = Scoped::ahp(&host, &[Scope::Read, Scope::Prompt]).await;
    let mode = action(URI, 6, json!({"type": "session/configChanged", "config": {"mode": "bypassPermissions"}}));
    let reason = prompter.dispatch(mode).await.unwrap();
    assert!(reason.contains("needs the scope `approve`"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn version_1_refuses_requests_and_actions_without_their_scope_too() {
    let host = TestHost::start(Config::default()).await;
    host.ahp("owner").await.ready_session(URI).await;
    let mut reader = Scoped::v1(&host, &[Scope::Read]).await;
    reader.ask("subscribe", json!({"resource": URI})).await.unwrap();
    reader.must_lack(Scope::Prompt, "createSession", json!({"session": "scripted:/t"})).await;
    reader.must_lack(Scope::Prompt, "disposeSession", json!({"session": URI})).await;
    reader.must_lack(Scope::Admin, "x-grove/migrate", json!({"session": URI, "store": "other"})).await;
    let resolved = json!({"type": "session/permissionResolved", "session": URI, "turnId": "t", "requestId": "r",
        "approved": true});
    let reason = reader.dispatch(json!({"clientSeq": 1, "action": resolved})).await.unwrap();
    assert!(reason.contains("session/permissionResolved needs the scope `approve`"), "{reason}");
}

#[tokio::test]
async fn a_token_without_folders_stays_inside_the_roots() {
    let place = tempfile::tempdir().unwrap();
    let (root, outside) = (place.path().join("root"), place.path().join("outside"));
    for folder in [&root, &outside] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("secret"), "x").unwrap();
    }
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    let roots = Roots { browse: vec![root.clone()], ..Roots::default() };
    let host = TestHost::start(Config { folders: Folders { roots, ..Folders::default() }, ..Config::default() }).await;
    let create = |name: &str, folder: &Path| json!({"channel": format!("scripted:/{name}"), "workingDirectories": [file_uri(folder)]});
    let (mut owner, inside) = (host.ahp("owner").await, root.clone());
    owner.ask("createSession", create("everywhere", Path::new("/"))).await.unwrap();
    let all: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Folders).collect();
    let mut client = Scoped::ahp(&host, &all).await;
    for folder in [Path::new("/"), &outside, &root.join("link"), &root.join("../outside"), &outside.join("missing")] {
        let error = client.ask("createSession", create("s", folder)).await.unwrap_err();
        assert!(error.to_string().contains("needs the scope `folders`"), "{}: {error}", folder.display());
    }
    client.ask("createSession", create("s", &inside)).await.unwrap();
    let set = json!({"channel": "scripted:/s", "directory": "/"});
    let error = client.ask("x-grove/setWorkingDirectory", set).await.unwrap_err();
    assert!(error.to_string().contains("needs the scope `folders`"), "{error}");
    // Another session works in `/`, and gives no access to it.
    let read = |path: &Path| json!({"channel": "ahp-root://", "uri": file_uri(path)});
    for path in [&outside.join("secret"), &root.join("link/secret"), Path::new("/etc/shadow")] {
        let error = client.ask("resourceRead", read(path)).await.unwrap_err();
        assert_eq!(error["code"], PERMISSION_DENIED, "{}: {error}", path.display());
    }
    client.ask("resourceRead", read(&root.join("secret"))).await.unwrap();
    owner.ask("resourceRead", read(&outside.join("secret"))).await.unwrap();
    let mut old = Scoped::v1(&host, &all).await;
    let error = old.ask("createSession", json!({"session": "scripted:/o", "workingDirectory": "file:///"})).await;
    assert!(error.unwrap_err().to_string().contains("needs the scope `folders`"));
    old.ask("fetchContent", json!({"uri": file_uri(&outside.join("secret"))})).await.unwrap_err();
}
