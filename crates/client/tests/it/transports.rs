//! Transports: TLS with a pinned certificate, a socket of this machine, ssh.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use grove_agents::scripted::ScriptedAgent;
use grove_client::{
    Ahp, Backoff, CertificateError, Client, ClientClosed, ConnectError, ConnectionStatus, Credentials, Endpoint,
    Fingerprint, Options, SshError, TransportError, V1,
};
use grove_host::{Config, Env, Host, Token};
use grove_server::{
    AccessPolicy, Asset, Caching, Certificate, HostNames, HostServer, TlsListener, TransportSecurity, UnixSocket,
    WebPage,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::ahp::{ready, script, text};
use crate::harness::{self, options, soon};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A self-signed certificate in files.
struct TestCertificate {
    folder: TempDir,
    der: Vec<u8>,
}

impl TestCertificate {
    fn new() -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        Self { folder, der: cert.der().to_vec() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self) -> Certificate {
        Certificate::read(&self.path("cert.pem"), &self.path("key.pem")).unwrap()
    }

    fn pin(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }
}

async fn host() -> Host {
    Host::in_memory(Env::in_memory(), Config::default(), vec![Arc::new(ScriptedAgent)]).await.unwrap()
}

fn remote() -> AccessPolicy {
    let names = HostNames::listed(["localhost".to_owned()]);
    AccessPolicy::remote(Token::parse(TOKEN).unwrap(), TransportSecurity::Tls, names)
}

/// A host behind TLS, and its port.
async fn behind_tls(made: &TestCertificate) -> (HostServer, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let index =
        Asset { content: "the page".into(), content_type: "text/html", tag: "1".into(), caching: Caching::Revalidated };
    let page = WebPage::new([("index.html".into(), index)]);
    let listener = Box::new(TlsListener::new(listener, &made.read()));
    let serving = HostServer::new(host().await).with_page(page);
    serving.listen(remote(), listener);
    (serving, port)
}

fn endpoint(address: &str, access: Credentials) -> Endpoint {
    Endpoint::new(&address.parse().unwrap(), &access).unwrap()
}

fn pinned(port: u16, pin: Option<Fingerprint>) -> Endpoint {
    let access = Credentials { token: Some(TOKEN.to_owned()), pin, ..Credentials::default() };
    endpoint(&format!("wss://localhost:{port}/ws"), access)
}

async fn refused(endpoint: Endpoint) -> TransportError {
    match soon("an answer", Client::connect(endpoint, Ahp::default(), Options::default())).await {
        Err(ConnectError::Open(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn both_protocols_go_through_tls_to_a_host_whose_certificate_is_pinned() {
    let made = TestCertificate::new();
    let (_serving, port) = behind_tls(&made).await;
    let endpoint = pinned(port, Some(made.pin()));
    let client = soon("a connection", Client::connect(endpoint.clone(), Ahp::default(), options("a"))).await.unwrap();
    let mut talk = ready(&client, "scripted:/s").await;
    // More than the system's socket buffers: nothing must stay in a buffer.
    let steps = json!([{"say": "x".repeat(3 << 20), "chunks": 3}, {"say": "end"}]);
    talk.chat.dispatch(script("t", steps)).unwrap();
    talk.turn_end("t").await;
    assert!(text(&talk.confirmed().turns[0].response_parts).ends_with("xend"));
    let old = soon("a connection", Client::connect(endpoint, V1::default(), options("b"))).await.unwrap();
    let session = harness::ready_session(&old, "scripted:/t").await;
    harness::must_agree(&session).await;
}

#[tokio::test]
async fn a_certificate_that_is_not_pinned_is_refused_and_shown() {
    let (made, other) = (TestCertificate::new(), TestCertificate::new());
    let (_serving, port) = behind_tls(&made).await;
    let unpinned = refused(pinned(port, None)).await;
    assert!(
        matches!(unpinned, TransportError::Certificate(CertificateError::Unpinned { shown }) if shown == made.pin()),
        "{unpinned}"
    );
    let changed = refused(pinned(port, Some(other.pin()))).await;
    let TransportError::Certificate(CertificateError::Changed { pinned, shown }) = changed else { panic!("{changed}") };
    assert_eq!((pinned, shown), (other.pin(), made.pin()));
    assert!(changed.to_string().contains("another certificate than the pinned one"), "{changed}");
}

#[tokio::test]
async fn a_certificate_that_changes_is_the_end_of_a_client() {
    let (made, other) = (TestCertificate::new(), TestCertificate::new());
    let ((_serving, first), (_other, second)) = (behind_tls(&made).await, behind_tls(&other).await);
    // A man in the middle, who redirects from the second connection on.
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = between.local_addr().unwrap().port();
    let (cut, mut cutting) = tokio::sync::oneshot::channel::<()>();
    let leading = tokio::spawn(async move {
        let (mut near, _) = between.accept().await.unwrap();
        let mut far = TcpStream::connect(("127.0.0.1", first)).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            _ = &mut cutting => {}
        }
        drop((near, far));
        let (mut near, _) = between.accept().await.unwrap();
        let mut far = TcpStream::connect(("127.0.0.1", second)).await.unwrap();
        tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
    });
    let connect = Client::connect(pinned(port, Some(made.pin())), V1::default(), options("a"));
    let client = soon("a connection", connect).await.unwrap();
    cut.send(()).unwrap();
    let mut status = client.status();
    let closed = soon("the end", status.wait_for(ConnectionStatus::is_closed)).await.unwrap().clone();
    let ConnectionStatus::ClientClosed(ClientClosed::Refused(why)) = closed else { panic!("{closed:?}") };
    assert!(why.contains("another certificate"), "{why}");
    leading.abort();
}

#[tokio::test]
async fn a_host_behind_tls_wants_its_token_and_speaks_nothing_else() {
    let made = TestCertificate::new();
    let (_serving, port) = behind_tls(&made).await;
    let access = Credentials { pin: Some(made.pin()), ..Credentials::default() };
    let denied = refused(endpoint(&format!("wss://localhost:{port}"), access)).await;
    assert!(matches!(denied, TransportError::Denied { status: 403, .. }), "{denied}");
    let plain = refused(endpoint(&format!("ws://localhost:{port}"), Credentials::default())).await;
    assert!(matches!(plain, TransportError::Unreachable(_) | TransportError::NoWebSocket(_)), "{plain}");
    // A host without TLS is refused, too.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _serving = grove_server::serve(host().await, remote(), Box::new(listener));
    let none = refused(pinned(port, Some(made.pin()))).await;
    assert!(none.to_string().contains("the TLS handshake failed"), "{none}");
}

#[tokio::test]
async fn somebody_who_is_slow_to_shake_hands_holds_up_nobody() {
    let made = TestCertificate::new();
    let (_serving, port) = behind_tls(&made).await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let connect = Client::connect(pinned(port, Some(made.pin())), Ahp::default(), options("a"));
    soon("a connection", connect).await.unwrap();
}

#[tokio::test]
async fn the_page_is_there_over_https_on_the_same_port() {
    let made = TestCertificate::new();
    let (_serving, port) = behind_tls(&made).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.der.clone())).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("the page"), "{answer}");
}

#[test]
fn files_that_are_no_certificate_and_key_are_named() {
    let (made, other) = (TestCertificate::new(), TestCertificate::new());
    std::fs::write(made.path("empty"), "").unwrap();
    let read = |certificate: &Path, key: &Path| Certificate::read(certificate, key).unwrap_err().to_string();
    let (certificate, key) = (made.path("cert.pem"), made.path("key.pem"));
    assert!(read(&made.path("none"), &key).contains("none cannot be read"));
    assert!(read(&made.path("empty"), &key).contains("empty cannot be read"));
    assert!(read(&certificate, &made.path("empty")).contains("private key"));
    assert!(read(&certificate, &other.path("key.pem")).contains("belong together"));
}

#[tokio::test]
async fn the_owner_of_a_socket_comes_in_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.sock");
    // A leftover socket.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let socket = UnixSocket::bind(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let _serving = grove_server::serve(host().await, AccessPolicy::owner(), Box::new(socket));
    let endpoint = endpoint(&format!("unix:{}", path.display()), Credentials::default());
    let client = soon("a connection", Client::connect(endpoint.clone(), Ahp::default(), options("a"))).await.unwrap();
    ready(&client, "scripted:/s").await.must_agree().await;
    let old = soon("a connection", Client::connect(endpoint, V1::default(), options("b"))).await.unwrap();
    assert_eq!(old.client_id(), "b");
}

#[tokio::test]
async fn what_is_no_socket_is_not_removed_and_a_path_that_is_too_long_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.sock");
    std::fs::write(&path, "precious").unwrap();
    assert!(UnixSocket::bind(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert!(UnixSocket::bind(&folder.path().join("x".repeat(200))).is_err());
    let none = refused(endpoint("unix:/nowhere/host.sock", Credentials::default())).await;
    assert!(matches!(none, TransportError::Unreachable(_)), "{none}");
}

/// A replacement for ssh.
fn instead_of_ssh(folder: &Path, script: &str) -> Credentials {
    let program = folder.join("ssh");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    Credentials { ssh: Some(program.into()), ..Credentials::default() }
}

#[tokio::test]
async fn what_ssh_complains_about_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let access = instead_of_ssh(folder.path(), "echo \"$*: Permission denied\" >&2; exit 255");
    let error = refused(endpoint("ssh://me@dev-box:2222", access)).await;
    let TransportError::Ssh(SshError::Ended { host, status, complaint }) = &error else { panic!("{error}") };
    assert_eq!((host.as_str(), status.as_deref()), ("dev-box", Some("exit status: 255")));
    assert_eq!(complaint, "-T -o BatchMode=yes -p 2222 -- me@dev-box grove serve --stdio: Permission denied");
    let access = Credentials { ssh: Some(folder.path().join("none").into()), ..Credentials::default() };
    let error = refused(endpoint("ssh://dev-box", access)).await;
    assert!(matches!(error, TransportError::Ssh(SshError::NotRun { .. })), "{error}");
}

#[tokio::test]
async fn a_flood_from_ssh_ends_at_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let access = instead_of_ssh(folder.path(), "yes complaint | head -c 1000000 >&2; yes no message | tr -d '\\n'");
    let mut few = Options { reconnect: Backoff::never(), ..Options::default() };
    few.limits.message_bytes = 1 << 20;
    let connect = Client::connect(endpoint("ssh://dev-box", access), V1::default(), few);
    let error = soon("an end", connect).await.unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
}

#[tokio::test]
async fn a_client_that_was_taken_over_through_ssh_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"read line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"serverSeq":0,"snapshots":[]}}'
        echo '{"jsonrpc":"2.0","method":"x-grove/closed","params":{"code":4010,"reason":"taken over"}}'
        cat > /dev/null"#;
    let access = instead_of_ssh(folder.path(), script);
    let quiet = Options { list_sessions: false, ..options("a") };
    let connect = Client::connect(endpoint("ssh://dev-box", access), V1::default(), quiet);
    let client = soon("a connection", connect).await.unwrap();
    let mut status = client.status();
    let closed = soon("the end", status.wait_for(ConnectionStatus::is_closed)).await.unwrap().clone();
    assert!(matches!(closed, ConnectionStatus::ClientClosed(ClientClosed::TakenOver)), "{closed:?}");
}
