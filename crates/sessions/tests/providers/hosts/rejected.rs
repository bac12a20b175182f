//! Hosts that refuse this client: they are not retried automatically.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use grove_client::{ByteStream, CertificateError, Credentials, Dial, Endpoint, Fingerprint};
use grove_sessions::SessionsProvider;
use grove_sessions::provider::Availability;
use grove_sessions::providers::hosts::HostProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::foreign::provider_of;
use super::harness::*;

/// Several times the longest delay between attempts.
const LONG: Duration = Duration::from_millis(600);

fn reason(provider: &HostProvider) -> Option<String> {
    match provider.availability() {
        Availability::Away { reason } => Some(reason.to_string()),
        Availability::Ready | Availability::Connecting | Availability::Incompatible { .. } => None,
    }
}

/// The host is tried once, and once more after each request or change of the endpoint.
async fn is_tried_when_asked(endpoint: Endpoint, tried: impl Fn() -> usize, why: &str) {
    let provider = provider_of(endpoint.clone());
    until("a refusal", || reason(&provider).is_some()).await;
    pass(LONG).await;
    assert_eq!(tried(), 1, "it is not tried again by itself");
    let said = reason(&provider).unwrap();
    assert!(said.contains(why) && said.contains("not tried again"), "{said}");
    provider.retry_now();
    until("what was asked for", || tried() == 2 && reason(&provider).is_some()).await;
    pass(LONG).await;
    assert!(tried() == 2 && reason(&provider).is_some());
    provider.reach(endpoint);
    until("the other way", || tried() == 3 && reason(&provider).is_some()).await;
    pass(LONG).await;
    assert!(tried() == 3 && reason(&provider).is_some());
}

/// A stand-in for `ssh`: a script that records each run.
fn ssh(folder: &Path, script: &str) -> (Endpoint, impl Fn() -> usize) {
    let (program, runs) = (folder.join("ssh"), folder.join("runs"));
    std::fs::write(&program, format!("#!/bin/sh\necho run >>'{}'\n{script}\n", runs.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let access = Credentials { ssh: Some(program.into_os_string()), ..Credentials::default() };
    let endpoint = Endpoint::new(&"ssh://me@dev-box".parse().unwrap(), &access).unwrap();
    (endpoint, move || std::fs::read_to_string(&runs).map_or(0, |runs| runs.lines().count()))
}

#[tokio::test]
async fn a_machine_that_refuses_the_login_is_not_logged_in_to_again_before_somebody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, runs) = ssh(folder.path(), "echo 'me@dev-box: Permission denied (publickey).' >&2; exit 255");
    is_tried_when_asked(endpoint, runs, "Permission denied (publickey)").await;
}

#[tokio::test]
async fn a_machine_that_refuses_the_login_later_is_not_logged_in_to_again_either() {
    let folder = tempfile::tempdir().unwrap();
    // It sends a hello the first time, and then the connection is lost.
    let script = r#"if [ "$(wc -l <"$(dirname "$0")/runs")" -gt 1 ]; then
  echo 'me@dev-box: Permission denied (publickey).' >&2; exit 255
fi
read -r line
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
agent='{"provider":"claude","displayName":"Claude","description":"","models":[]}'
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[{"resource":"ahp-root://","state":{"agents":[%s]},"fromSeq":1}]}}\n' "$id" "$agent"
while [ ! -e "$(dirname "$0")/lost" ]; do sleep 0.05; done"#;
    let (endpoint, runs) = ssh(folder.path(), script);
    let provider = provider_of(endpoint);
    until("a connection", || provider.availability() == Availability::Ready).await;
    std::fs::write(folder.path().join("lost"), "").unwrap();
    until("a refusal", || reason(&provider).is_some_and(|said| said.contains("not tried again"))).await;
    // The client may have begun another attempt before it was closed.
    let tried = runs();
    assert!((2..=3).contains(&tried), "{tried}");
    pass(LONG).await;
    assert!(runs() == tried && reason(&provider).is_some());
    provider.retry_now();
    until("what was asked for", || runs() == tried + 1 && reason(&provider).is_some()).await;
}

#[tokio::test]
async fn a_machine_that_is_only_not_there_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, runs) = ssh(folder.path(), "echo 'ssh: connect to host dev-box: No route to host' >&2; exit 255");
    let provider = provider_of(endpoint);
    until("some attempts", || runs() >= 3).await;
    assert!(reason(&provider).unwrap().contains("tried again by itself"));
}

#[tokio::test]
async fn a_host_that_does_not_take_the_token_is_not_asked_again_before_somebody_asks() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/ws", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let Ok(1..) = stream.read(&mut [0; 4096]).await else { continue };
            let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 14\r\n\r\nno such token\n";
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    let endpoint = Endpoint::tcp(&url, Some("old")).unwrap();
    is_tried_when_asked(endpoint, || asked.load(Ordering::SeqCst), "no such token").await;
}

/// An endpoint at which the host shows another certificate than the pinned one.
struct OtherCertificate(Arc<AtomicUsize>);

#[async_trait]
impl Dial for OtherCertificate {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let fingerprint = |digit: &str| -> Fingerprint { format!("sha256:{}", digit.repeat(64)).parse().unwrap() };
        let (pinned, shown) = (fingerprint("1"), fingerprint("2"));
        Err(io::Error::other(CertificateError::Changed { pinned, shown }))
    }
}

#[tokio::test]
async fn a_host_with_another_certificate_is_not_tried_again_before_somebody_asks() {
    let tried = Arc::new(AtomicUsize::new(0));
    let endpoint = Endpoint::over("ws://lab/ws", None, Arc::new(OtherCertificate(tried.clone()))).unwrap();
    is_tried_when_asked(endpoint, || tried.load(Ordering::SeqCst), "another certificate").await;
}
