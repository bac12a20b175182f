//! Page access: both sides prove that they know the token, and neither sends it.

use futures_util::{SinkExt, StreamExt};
use grove_testkit::host::{ADDRESS, TOKEN};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::server::Served;

/// HMAC-SHA-256, as a page makes it.
fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let pad = |with: u8| (0..64).map(|at| key.get(at).copied().unwrap_or_default() ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([pad(0x36), message.as_bytes().to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

struct TestPage {
    key: Vec<u8>,
    nonce: String,
}

impl TestPage {
    fn at(origin: &str) -> Self {
        Self { key: hmac(TOKEN.as_bytes(), &format!("grove page key 1\n{origin}\n")), nonce: "5f".repeat(32) }
    }

    fn sign(&self, domain: &str, challenge: &str) -> String {
        hex::encode(hmac(&self.key, &format!("{domain}\n{}\n{challenge}", self.nonce)))
    }

    /// The challenge that comes with the host's proof, and whether the proof is right.
    async fn ask(&self, host: &Served) -> (String, bool) {
        let answer = host.http(&format!("POST /proof?nonce={}", self.nonce), &[]).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        assert!(!answer.body.contains(TOKEN) && !answer.body.contains(&hex::encode(&self.key)));
        let said: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(said.as_object().unwrap().len(), 2, "{said}");
        let challenge = said["challenge"].as_str().unwrap().to_owned();
        let is_right = said["proof"] == self.sign("grove host proof 1", &challenge);
        (challenge, is_right)
    }

    async fn open(&self, host: &Served, challenge: &str, answer: &str) -> Result<WebSocketStream<impl Sized>, u16> {
        let url = format!("ws://{ADDRESS}/ws?challenge={challenge}&answer={answer}&nonce={}", self.nonce);
        match client_async(url, host.dial()).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_page_and_the_host_prove_to_each_other_that_they_know_the_token_and_send_none() {
    let host = Served::start(Default::default(), None).await;
    let page = TestPage::at(&format!("http://{ADDRESS}"));
    let (challenge, is_right) = page.ask(&host).await;
    assert!(is_right);
    let answer = page.sign("grove page answer 1", &challenge);
    let url = format!("ws://{ADDRESS}/ws?challenge={challenge}&answer={answer}&nonce={}", page.nonce);
    let (mut socket, _) = client_async(url, host.dial()).await.unwrap();
    // The host sends first: a program that took its port since the proof could not send this.
    let first = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let proof = page.sign("grove socket proof 1", &challenge);
    let expected = json!({"jsonrpc": "2.0", "method": "x-grove/hostProof", "params": {"proof": proof}});
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap(), expected);
    // From here on it is a socket like any other.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "page", "initialSubscriptions": [],
    }});
    socket.send(Message::text(hello.to_string())).await.unwrap();
    let answer: Value = serde_json::from_str(&socket.next().await.unwrap().unwrap().into_text().unwrap()).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(1), &json!("1.0.0")), "{answer}");
}

#[tokio::test]
async fn an_answer_opens_one_socket_once_and_a_wrong_one_none() {
    let host = Served::start(Default::default(), None).await;
    let page = TestPage::at(&format!("http://{ADDRESS}"));
    let (challenge, _) = page.ask(&host).await;
    let right = page.sign("grove page answer 1", &challenge);
    let stranger = TestPage { key: hmac(b"another token", "x"), nonce: page.nonce.clone() };
    for wrong in [
        String::new(),
        TOKEN.to_owned(),
        page.sign("grove host proof 1", &challenge),
        page.sign("grove socket proof 1", &challenge),
        stranger.sign("grove page answer 1", &challenge),
        page.sign("grove page answer 1", "another"),
    ] {
        assert_eq!(page.open(&host, &challenge, &wrong).await.err(), Some(401), "{wrong}");
    }
    let invented = "A".repeat(43);
    let answer = page.sign("grove page answer 1", &invented);
    assert_eq!(page.open(&host, &invented, &answer).await.err(), Some(401), "a challenge that the host never gave");
    assert!(page.open(&host, &challenge, &right).await.is_ok(), "guesses used nothing up");
    assert_eq!(page.open(&host, &challenge, &right).await.err(), Some(401));
}

#[tokio::test]
async fn a_proof_is_for_the_address_that_was_asked_and_nobody_can_pass_it_on() {
    let host = Served::start(Default::default(), None).await;
    // A page whose host had another port, and a program there that asks this host in its place.
    let elsewhere = TestPage::at("http://127.0.0.1:4747");
    let (challenge, is_right) = elsewhere.ask(&host).await;
    assert!(!is_right, "it is for the port that was asked");
    let answer = elsewhere.sign("grove page answer 1", &challenge);
    assert_eq!(elsewhere.open(&host, &challenge, &answer).await.err(), Some(401));
    let mut asked = Vec::new();
    for header in ["Origin: http://127.0.0.1:4747", "Origin: http://evil.example"] {
        asked.push(host.http(&format!("POST /proof?nonce={}", elsewhere.nonce), &[header]).await.status);
    }
    assert_eq!(asked, [403, 403]);
}

#[tokio::test]
async fn proofs_are_given_for_nonces_alone_and_so_many_at_a_time() {
    let host = Served::start(Default::default(), None).await;
    for (line, status) in [
        ("POST /proof".to_owned(), 400),
        ("POST /proof?nonce=".to_owned(), 400),
        (format!("POST /proof?nonce={}", "5F".repeat(32)), 400),
        (format!("POST /proof?nonce={}", "5f".repeat(33)), 400),
        (format!("GET /proof?nonce={}", "5f".repeat(32)), 405),
    ] {
        assert_eq!(host.http(&line, &[]).await.status, status, "{line}");
    }
    let line = format!("POST /proof?nonce={}", "5f".repeat(32));
    let mut given = 0;
    let refused = loop {
        let answer = host.http(&line, &[]).await;
        if answer.status != 200 {
            break answer;
        }
        given += 1;
        assert!(given < 2_000, "they are without a bound");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert!(given >= 64, "{given}");
    // Clients with the token can connect meanwhile.
    host.client("a").await;
}
