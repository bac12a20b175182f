//! Tickets: for one WebSocket each, for clients that cannot send a header.

use grove_testkit::Client;
use serde_json::{Value, json};

use crate::support::*;

fn ask(host: &Host, line: &str, headers: &[String]) -> HttpAnswer {
    let mut head =
        format!("{line} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 0", host.address);
    headers.iter().for_each(|header| head.push_str(&format!("\r\n{header}")));
    host.http(&head)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn ticket(host: &Host) -> String {
    let answer = ask(host, "POST /ticket", &[bearer(&host.token), format!("Origin: http://{}", host.address)]);
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(answer["expiresInMs"], 30_000);
    assert_eq!(answer.as_object().unwrap().len(), 2);
    answer["ticket"].as_str().unwrap().to_owned()
}

fn upgrade(host: &Host, path: &str) -> HttpAnswer {
    host.upgrade(path, &[&format!("Host: {}", host.address), &format!("Origin: http://{}", host.address)])
}

#[test]
fn a_ticket_opens_one_websocket_once() {
    let host = Host::start();
    for path in ["/ws", "/"] {
        let ticket = ticket(&host);
        assert_eq!(ticket.len(), 43, "256 bits in base64");
        assert!(ticket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{ticket}");
        let url = format!("{path}?ticket={ticket}");
        assert_eq!(upgrade(&host, &url).status, 101);
        let again = upgrade(&host, &url);
        assert_eq!(again.status, 401);
        assert!(again.body.contains("was used") && again.body.contains("POST /ticket"), "{}", again.body);
    }
    for wrong in ["", "x", &"A".repeat(43)] {
        assert_eq!(upgrade(&host, &format!("/ws?ticket={wrong}")).status, 401, "{wrong}");
    }
    let ticket = ticket(&host);
    assert_eq!(ask(&host, &format!("GET /ws?ticket={ticket}"), &[]).status, 426, "no WebSocket: it is not used up");
    assert_eq!(
        upgrade(&host, &format!("/ws?ticket={ticket}&tkn={}", host.token)).status,
        101,
        "nor where the token is"
    );
    assert_eq!(upgrade(&host, &format!("/ws?tkn=wrong&ticket={ticket}")).status, 101);
}

#[test]
fn a_ticket_is_for_those_who_hold_the_token() {
    let host = Host::start();
    for headers in [vec![], vec![bearer("wrong")], vec![format!("Authorization: Basic {}", host.token)]] {
        let refused = ask(&host, "POST /ticket", &headers);
        assert_eq!(refused.status, 403, "{headers:?}");
        assert!(refused.body.contains("Bearer"), "{}", refused.body);
    }
    // A simple request of a foreign page is not enough.
    assert_eq!(ask(&host, &format!("POST /ticket?tkn={}", host.token), &[]).status, 403);
    let foreign = [bearer(&host.token), "Origin: http://evil.example".to_owned()];
    assert_eq!(ask(&host, "POST /ticket", &foreign).status, 403);
    assert_eq!(ask(&host, "GET /ticket", &[bearer(&host.token)]).status, 405);
    assert_eq!(ask(&host, &format!("GET /healthz?ticket={}", ticket(&host)), &[]).body, r#"{"status":"ok"}"#);
}

#[tokio::test]
async fn a_client_with_a_ticket_is_a_client_and_the_ticket_is_not_logged() {
    let place = TestHome::new();
    let mut command = place.serve_command(&[]);
    command.env("GROVE_LOG", "trace");
    let host = place.start(command);
    let ticket = ticket(&host);
    let stream = tokio::net::TcpStream::connect(&host.address).await.unwrap();
    let mut client = Client::over(Box::new(stream), &format!("{}?ticket={ticket}", host.ws), "page").await;
    client.initialize(&[]).await;
    client.ready_session(S).await;
    client.run_script(S, "t", json!([{"say": "x"}])).await;
    upgrade(&host, &format!("/ws?ticket={ticket}"));
    // A request head that is cut off, with the ticket in it.
    drop(std::io::Write::write_all(&mut host.tcp(), format!("GET /ws?ticket={ticket} HTT").as_bytes()));
    // The host notices it: so there is a log at all.
    let deadline = Deadline::new("nothing is logged about a request that was cut off");
    while !std::fs::read_to_string(host.place.path("stderr")).unwrap().contains("DEBUG") {
        deadline.check();
    }
    let token = host.token.clone();
    let log = host.stop_and_read_log();
    assert!(!log.contains(&ticket) && !log.contains(&token));
}
