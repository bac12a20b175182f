//! Requests over real sockets, to services that behave badly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use grove_notify::http::{HttpsTransport, Post, PostAnswer, PostError, Reach, TargetUrl, Transport};
use http::HeaderMap;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, version};

/// A service on loopback that answers each connection with these bytes, and keeps it open then.
async fn service(answer: Vec<u8>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(converse(stream, answer.clone()));
        }
    });
    (port, connections)
}

async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: Vec<u8>) {
    let mut head = vec![0; 4096];
    let read = stream.read(&mut head).await.unwrap_or_default();
    assert!(head[..read].starts_with(b"POST /x HTTP/1.1\r\n") || read == 0);
    stream.write_all(&answer).await.ok();
    tokio::time::sleep(Duration::from_secs(600)).await;
}

fn transport() -> HttpsTransport {
    HttpsTransport::new(Box::new(|| Ok(Vec::new())))
}

fn post(url: &str, reach: Reach) -> Post {
    let url = TargetUrl::read(url, reach).unwrap();
    Post { url, headers: HeaderMap::new(), body: Bytes::from_static(b"body") }
}

async fn local(port: u16) -> Result<PostAnswer, PostError> {
    transport().post(post(&format!("http://127.0.0.1:{port}/x"), Reach::Private)).await
}

#[tokio::test]
async fn an_answer_is_its_status_and_nothing_else() {
    let (port, _) = service(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
    assert_eq!(local(port).await.unwrap(), PostAnswer { status: 201, retry_after: None });
    let (port, _) =
        service(b"HTTP/1.1 429 Slow\r\nretry-after: 30\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec())
            .await;
    assert_eq!(local(port).await.unwrap(), PostAnswer { status: 429, retry_after: Some(Duration::from_secs(30)) });
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (target, reached) = service(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    let answer = format!("HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{target}/\r\ncontent-length: 0\r\n\r\n");
    let (port, _) = service(answer.into_bytes()).await;
    assert_eq!(local(port).await.unwrap().status, 307);
    assert_eq!(reached.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn of_a_huge_answer_only_the_beginning_is_read() {
    let mut answer = b"HTTP/1.1 201 Created\r\ncontent-length: 1000000000\r\n\r\n".to_vec();
    answer.resize(answer.len() + (1 << 20), b'x');
    let (port, _) = service(answer).await;
    assert_eq!(local(port).await.unwrap().status, 201);
    let mut head = b"HTTP/1.1 201 Created\r\n".to_vec();
    head.extend(std::iter::repeat_n(b"x-more: yes\r\n".as_slice(), 100_000).flatten());
    let (port, _) = service(head).await;
    assert!(matches!(local(port).await, Err(PostError::Http { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_answer_costs_some_seconds() {
    let (port, _) = service(Vec::new()).await;
    let begun = tokio::time::Instant::now();
    let error = local(port).await.unwrap_err();
    assert!(matches!(error, PostError::Slow { .. } | PostError::Unreachable { .. }), "{error}");
    assert!(begun.elapsed() <= Duration::from_secs(20));
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
    let url = post("https://localhost/x", Reach::Public);
    assert!(matches!(transport().post(url).await, Err(PostError::Private { .. })));
    // Other ways to write the same machine.
    for url in ["https://2130706433/x", "https://127.1/x", "https://0x7f000001/x"] {
        let error = transport().post(post(url, Reach::Public)).await.unwrap_err();
        assert!(matches!(error, PostError::Private { .. } | PostError::Unreachable { .. }), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_service_with_a_certificate_of_somebody_else_gets_nothing() {
    let certified = || generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (CertifiedKey { cert, signing_key }, stranger) = (certified(), certified());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    converse(stream, b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
                }
            });
        }
    });
    let with = |pem: String| HttpsTransport::new(Box::new(move || Ok(pem.clone().into_bytes())));
    let url = format!("https://localhost:{port}/x");
    let answer = with(cert.pem()).post(post(&url, Reach::Private)).await;
    assert_eq!(answer.unwrap().status, 201);
    let refused = with(stranger.cert.pem()).post(post(&url, Reach::Private)).await;
    assert!(matches!(refused, Err(PostError::Unreachable { .. })));
    let without = transport().post(post(&url, Reach::Private)).await;
    assert!(matches!(without, Err(PostError::Roots(_))));
}
