//! The audit log: what is recorded of requests, and about what.

use std::sync::{Arc, Mutex};

use grove_core::{Scope, ScopeSet};
use grove_host::Host;
use grove_host::audit::{AuditAction, AuditLog, AuditOutcome, AuditRecord};
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_testkit::host::{ADDRESS, TOKEN, pipes};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::copilot::Sdk;
use crate::harness::Addressed;
use crate::tokens::{SecretPage, TokenHost};

/// An audit log in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryAudit(Arc<Mutex<Vec<AuditRecord>>>);

impl AuditLog for MemoryAudit {
    fn record(&self, record: AuditRecord) {
        self.0.lock().unwrap().push(record);
    }
}

impl MemoryAudit {
    pub(crate) fn of(host: &Host) -> Self {
        let log = Self::default();
        host.set_audit_log(Arc::new(log.clone()));
        log
    }

    /// The records that were written since the last call.
    pub(crate) fn take(&self) -> Vec<AuditRecord> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn records_about_tokens_name_the_token_that_they_are_about() {
    let host = TokenHost::start().await.with_remote_clients();
    let audit = MemoryAudit::of(&host.host);
    let mut client = host.client(TOKEN, "owner").await;
    client.ask("x-grove/tokens/add", json!({"name": "phone", "scopes": ["read"]})).await.unwrap();
    client.ask("x-grove/tokens/rotate", json!({"name": "phone"})).await.unwrap();
    client.ask("x-grove/tokens/revoke", json!({"name": "phone"})).await.unwrap();
    client.ask("x-grove/tokens/revoke", json!({"name": "phone"})).await.unwrap_err();
    let records: Vec<_> = audit.take().into_iter().filter(|record| record.action == AuditAction::Token).collect();
    let found: Vec<_> =
        records.iter().map(|one| (one.operation.as_str(), one.detail.as_deref(), one.outcome)).collect();
    let about = Some("phone");
    assert_eq!(
        found,
        [
            ("x-grove/tokens/add", about, AuditOutcome::Done),
            ("x-grove/tokens/rotate", about, AuditOutcome::Done),
            ("x-grove/tokens/revoke", about, AuditOutcome::Done),
            ("x-grove/tokens/revoke", about, AuditOutcome::Refused),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_paired_is_recorded_with_the_name_of_its_token() {
    let host = TokenHost::start().await;
    let audit = MemoryAudit::of(&host.host);
    let code = host.tokens.issue_code(ScopeSet::ALL).unwrap().reveal().to_owned();
    SecretPage::of(&code).pair(&host).await.unwrap();
    let name = host.tokens.list().into_iter().find(|token| token.name.starts_with("browser-")).unwrap().name;
    let records = audit.take();
    assert_eq!(records.len(), 1, "{records:?}");
    let AuditRecord { token, detail, action, operation, outcome, .. } = &records[0];
    assert_eq!((token, detail.as_ref()), (&name, Some(&name)));
    assert_eq!((*action, operation.as_str(), *outcome), (AuditAction::Token, "POST /pair", AuditOutcome::Done));
}

#[tokio::test(start_paused = true)]
async fn approvals_through_the_copilot_sdk_are_recorded_with_their_verdict_and_command() {
    let host = TokenHost::start().await;
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
    host.serving.serve_sdks(config, Box::new(Addressed { pipes, addresses: Arc::default() }));
    let mut sdk = Sdk::over(dialer.dial(256 << 10).unwrap());
    let token = host.add("approver", &[Scope::Read, Scope::Prompt, Scope::Approve], None);
    sdk.call(1, "connect", json!({"token": token})).await;
    let create = json!({"sessionId": "s1", "model": "scripted", "requestPermission": true});
    assert!(sdk.call(2, "session.create", create).await["result"].is_object());
    for (id, (kind, action)) in
        [("approve-once", AuditAction::Approve), ("reject", AuditAction::Deny)].into_iter().enumerate()
    {
        let tool = json!([{"tool": {"name": "shell", "input": "rm -rf /tmp/x", "permission": "shell"}}]);
        let prompt = json!({"sessionId": "s1", "prompt": format!("script:{tool}")});
        sdk.call(10 + id as u64, "session.send", prompt).await;
        let mut pending = json!([]);
        while pending.as_array().unwrap().is_empty() {
            let listed = sdk.call(20, "session.permissions.pendingRequests", json!({"sessionId": "s1"})).await;
            pending = listed["result"]["items"].clone();
        }
        let request = pending[0]["requestId"].clone();
        audit.take();
        let answer = json!({"sessionId": "s1", "requestId": request, "result": {"kind": kind}});
        let answered = sdk.call(30, "session.permissions.handlePendingPermissionRequest", answer.clone()).await;
        assert_eq!(answered["result"]["success"], true, "{answered}");
        let record = audit.take().remove(0);
        assert_eq!((record.action, record.outcome), (action, AuditOutcome::Done), "{record:?}");
        assert_eq!((record.detail.as_deref(), record.token.as_str()), (Some("rm -rf /tmp/x"), "approver"));
        sdk.call(31, "session.permissions.handlePendingPermissionRequest", answer).await;
        let record = audit.take().remove(0);
        assert_eq!((record.outcome, record.detail), (AuditOutcome::Unchanged, None), "the answer came too late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_another_reason_than_the_token_is_no_wrong_token() {
    let host = TokenHost::start().await.with_remote_clients();
    let audit = MemoryAudit::of(&host.host);
    let blind = host.add("blind", &[Scope::Prompt], None);
    let (own, blind) = (format!("Bearer {TOKEN}"), format!("Bearer {blind}"));
    let foreign = [("Authorization", own.as_str()), ("Origin", "http://evil.example")];
    let start = tokio::time::Instant::now();
    assert_eq!(host.http("POST /ticket", &foreign, "").await.0, 403);
    assert_eq!(host.http("GET /metrics", &[("Authorization", &blind)], "").await.0, 403, "it may not read");
    assert!(start.elapsed().is_zero() && audit.take().is_empty(), "nothing is delayed and recorded");
    assert_eq!(host.host.env().metrics.wrong_tokens.get(), 0);
    assert_eq!(host.http("POST /ticket", &[("Authorization", "Bearer wrong")], "").await.0, 403);
    assert_eq!((audit.take().len(), host.host.env().metrics.wrong_tokens.get()), (1, 1));
}

#[tokio::test]
async fn the_process_behind_a_connection_is_looked_up_once_for_all_its_requests() {
    let host = TokenHost::start().await.with_remote_clients();
    host.addresses.lock().unwrap().push("127.0.0.1:1");
    let mut near = host.dial();
    let request = format!(
        "POST /ticket HTTP/1.1\r\nHost: {ADDRESS}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"
    );
    for _ in 0..3 {
        near.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"connect again\n") {
            answer.push(near.read_u8().await.unwrap());
        }
    }
    assert_eq!(host.host.env().metrics.process_lookups.get(), 1);
}
