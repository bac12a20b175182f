//! Tokens at the port for Copilot SDKs: which ones open it, and what wrong ones cost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use grove_core::Scope;
use grove_host::audit::{AuditAction, AuditOutcome};
use grove_host::{Config, Limits, Rate};
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_testkit::host::{Dialer, TOKEN, pipes};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::audit::MemoryAudit;
use crate::copilot::Sdk;
use crate::harness::Addressed;
use crate::tokens::TokenHost;

const WRONG: &str = "00112233445566778899aabbccddeeff";

/// A host with a port for SDKs that its tokens open.
struct SdkPort {
    host: TokenHost,
    audit: MemoryAudit,
    dialer: Dialer,
    addresses: Arc<Mutex<Vec<&'static str>>>,
}

impl SdkPort {
    async fn start(limits: Limits) -> Self {
        let host = TokenHost::with(Config { limits, ..Config::default() }).await;
        let audit = MemoryAudit::of(&host.host);
        let (dialer, pipes) = pipes();
        let secret = Some(EndpointSecret::Token(host.tokens.host_token().clone()));
        let config = EndpointConfig {
            store: "copilot".into(),
            secret,
            keeps_temp_files: false,
            default_folder: None,
            allows_all: false,
        };
        let addresses = Arc::<Mutex<Vec<_>>>::default();
        host.serving.serve_sdks(config, Box::new(Addressed { pipes, addresses: addresses.clone() }));
        Self { host, audit, dialer, addresses }
    }

    fn dial(&self, address: &'static str) -> Sdk {
        self.addresses.lock().unwrap().push(address);
        Sdk::over(self.dialer.dial(256 << 10).unwrap())
    }
}

async fn connect(sdk: &mut Sdk, token: &str) -> Value {
    sdk.call(1, "connect", json!({"token": token})).await
}

#[tokio::test(start_paused = true)]
async fn a_named_token_opens_the_port_for_sdks_with_its_scopes_until_it_ends() {
    let port = SdkPort::start(Limits::default()).await;
    let reader = port.host.add("reader", &[Scope::Read], None);
    let (mut sdk, mut own) = (port.dial("10.0.0.2:1"), port.dial("10.0.0.2:2"));
    assert!(connect(&mut own, TOKEN).await["result"].is_object());
    assert!(connect(&mut sdk, &reader).await["result"].is_object());
    let log_ins: Vec<_> = port.audit.take().into_iter().map(|record| (record.token, record.address)).collect();
    let expected = [("host", "10.0.0.2:2"), ("reader", "10.0.0.2:1")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(log_ins, expected);
    assert!(sdk.call(2, "session.list", json!({})).await["result"].is_object());
    let create = json!({"sessionId": "s1", "model": "scripted"});
    let refused = sdk.call(3, "session.create", create.clone()).await["error"].take();
    assert_eq!(refused["code"], -32009, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("`prompt`"), "{refused}");
    assert!(own.call(3, "session.create", create).await["result"].is_object());
    port.host.tokens.revoke("reader").unwrap();
    sdk.rest().await;
    assert!(own.call(4, "ping", json!({})).await["result"].is_object(), "other tokens' connections stay");
}

#[tokio::test(start_paused = true)]
async fn wrong_secrets_at_the_port_for_sdks_are_delayed_by_address_and_recorded() {
    let port = SdkPort::start(Limits::default()).await;
    let took = async |address: &'static str, token: &str| {
        let (mut sdk, start) = (port.dial(address), Instant::now());
        let is_in = connect(&mut sdk, token).await["result"].is_object();
        (is_in, start.elapsed().as_millis())
    };
    assert_eq!(took("10.0.0.2:1", WRONG).await, (false, 50));
    assert_eq!(took("10.0.0.2:2", WRONG).await, (false, 100), "another connection of the address");
    assert_eq!(took("10.0.0.3:1", WRONG).await, (false, 50), "another address");
    assert_eq!(took("10.0.0.2:3", TOKEN).await, (true, 0), "a right one is not delayed");
    let records = port.audit.take();
    let wrong = |address: &str| (String::new(), address.to_owned(), AuditAction::LogIn, AuditOutcome::Refused);
    let found: Vec<_> =
        records[..3].iter().map(|one| (one.token.clone(), one.address.clone(), one.action, one.outcome)).collect();
    assert_eq!(found, [wrong("10.0.0.2:1"), wrong("10.0.0.2:2"), wrong("10.0.0.3:1")]);
    assert_eq!((records[3].token.as_str(), records[3].outcome), ("host", AuditOutcome::Done));
    assert_eq!(port.host.host.env().metrics.wrong_tokens.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn clients_of_the_port_use_nothing_of_the_hosts_token_before_they_log_in() {
    let none = Rate { per_second: 1, burst: 1 };
    let limits = Limits { requests: none, token_requests: Rate { per_second: 1, burst: 20 }, ..Limits::default() };
    let port = SdkPort::start(limits).await;
    let mut flood = port.dial("10.0.0.2:1");
    for id in 0..40 {
        flood.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {}})).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut own = port.dial("10.0.0.3:1");
    assert!(connect(&mut own, TOKEN).await["result"].is_object());
    let start = Instant::now();
    for id in 2..20 {
        own.call(id, "ping", json!({})).await;
    }
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_token_without_approve_configures_no_mcp_server() {
    let port = SdkPort::start(Limits::default()).await;
    let prompter = port.host.add("prompter", &[Scope::Read, Scope::Prompt], None);
    let mut sdk = port.dial("10.0.0.2:1");
    assert!(connect(&mut sdk, &prompter).await["result"].is_object());
    let servers = json!({"search": {"type": "local", "command": "/bin/search", "tools": ["*"]}});
    let create = json!({"sessionId": "s1", "model": "scripted", "mcpServers": servers});
    let refused = sdk.call(2, "session.create", create).await["error"].take();
    assert!(refused["message"].as_str().unwrap().contains("`approve`"), "{refused}");
    let created = sdk.call(3, "session.create", json!({"sessionId": "s1", "model": "scripted"})).await;
    assert!(created["result"].is_object(), "nothing was created before: {created}");
    let resume = json!({"sessionId": "s1", "mcpServers": servers});
    let refused = sdk.call(4, "session.resume", resume).await["error"].take();
    assert!(refused["message"].as_str().unwrap().contains("`approve`"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_a_program_configures_is_honoured_or_refused_with_a_reason() {
    let port = SdkPort::start(Limits::default()).await;
    let mut sdk = port.dial("10.0.0.2:1");
    assert!(connect(&mut sdk, TOKEN).await["result"].is_object());
    let server = |more: Value| {
        let mut server = json!({"type": "local", "command": "/bin/search", "env": {"KEY": "hunter2"}});
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"mcpServers": {"search": server}})
    };
    let cases = [
        (server(json!({"type": "carrier-pigeon"})), "not one of local, stdio, http and sse"),
        (server(json!({"args": "hunter2"})), "members of a wrong type"),
        (
            server(json!({"type": "http", "url": "http://x", "tools": ["one"]})),
            "tools of the MCP server search cannot be",
        ),
        (json!({"systemMessage": {"mode": "customize", "sections": {"tone": {"action": "transform"}}}}), "transform"),
        (json!({"availableTools": ["mcp:*"], "mcpServers": {"s": {"command": "x"}}}), "name each tool"),
        (json!({"customAgents": [{"prompt": "p"}]}), "`customAgents` cannot be used"),
        (json!({"customAgents": [{"name": "a"}, {"name": "a"}]}), "\"a\" cannot name a custom agent"),
        (json!({"agent": "a"}), "there is no custom agent \"a\""),
        (json!({"pluginDirectories": ["/plugins"]}), "`pluginDirectories` cannot be honoured"),
        (json!({"enableFileHooks": true}), "`enableFileHooks` cannot be honoured"),
    ];
    for (id, (config, reason)) in cases.into_iter().enumerate() {
        let mut create = json!({"sessionId": "s1", "model": "scripted"});
        create.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let refused = sdk.call(2 + id as u64, "session.create", create).await["error"].take();
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason) && !message.contains("hunter2"), "{config}: {refused}");
    }
    let tools = json!([{"name": "look"}, {"name": "hide"}]);
    let config = json!({
        "sessionId": "s1", "model": "scripted", "tools": tools, "excludedTools": ["custom:hide"], "enableFileHooks": false,
        "mcpServers": {}, "customAgents": [], "systemMessage": {"mode": "append", "content": ""},
    });
    let created = sdk.call(40, "session.create", config).await;
    assert!(created["result"].is_object(), "{created}");
    let prompt = "script:[{\"clientTool\": {\"name\": \"hide\"}}]";
    let sent = json!({"sessionId": "s1", "prompt": prompt, "wait": true});
    sdk.call(41, "session.send", sent).await;
    let mut events = String::new();
    // The turn may end a moment later.
    for id in 42..142 {
        events = sdk.call(id, "session.getMessages", json!({"sessionId": "s1"})).await.to_string();
        if events.contains("assistant.turn_end") || events.contains("session.error") {
            break;
        }
    }
    assert!(events.contains("no client offers a tool hide"), "{events}");
}
