//! Requests that wait for a person, of sessions of this host and of others.

use std::time::Duration;

use serde_json::{Value, json};

use super::{LOCAL, Page, Protocol, local, row};
use crate::support::{Deadline, Host, TestHome};

/// The pending requests, once they match.
async fn until_waiting(page: &mut Page, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Deadline::new("other requests are pending");
    loop {
        let waiting = page.get("waiting", json!({})).await;
        assert_eq!(waiting["more"], 0);
        let items = waiting["items"].as_array().unwrap().clone();
        if fits(&items) {
            return items;
        }
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn has_request(items: &[Value]) -> bool {
    matches!(items, [item] if item["request"].is_object())
}

#[tokio::test]
async fn requests_of_this_host_and_of_others_are_listed_and_answered() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let mut away = far_host.client("away").await;
    away.ready_session("scripted:/far").await;
    let token = near.write("token", &far_host.token);
    let add = near.run(&["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    assert_eq!(add.code, Some(0), "{}", add.stderr);
    let host = near.serve(&[]);
    let mut here = host.client("here").await;
    here.ready_session("scripted:/near").await;
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    assert_eq!(page.get("waiting", json!({})).await, json!({"items": [], "more": 0}));

    // A permission request of another host, with everything that is needed to show it.
    let tool = json!({"name": "shell", "input": "rm -r build", "output": "", "permission": "shell", "options": [
        {"id": "once", "label": "Allow once", "allows": true}, {"id": "no", "label": "Deny", "allows": false}]});
    away.script("scripted:/far", "t", json!([{"tool": tool}, {"say": "done"}])).await;
    let items = until_waiting(&mut page, has_request).await;
    let item = &items[0];
    assert_eq!((&item["providerLabel"], &item["request"]["kind"]), (&json!("lab"), &json!("toolConfirmation")));
    let call = &item["request"]["toolCall"];
    assert_eq!((&call["status"], call["options"][0]["id"].as_str()), (&json!("pending-confirmation"), Some("once")));
    assert!(call.to_string().contains("rm -r build"), "{call}");
    let id = item["session"].as_str().unwrap().to_owned();
    let told = page.told("changed", row(&id, |row| row["waiting"] == 1)).await;
    assert!(told["changed"][0]["status"] == "needsInput" && told["changed"][0]["activity"].is_string(), "{told}");

    // An option of the other kind is refused, and nothing happens.
    let answer = |approved: bool, option: &str| {
        json!({"session": id, "request": item["id"],
            "answer": {"kind": "permission", "approved": approved, "optionId": option}})
    };
    let refused = page.refused("answer", answer(true, "no")).await;
    assert!(refused.code == -32602 && refused.message.contains("no such option"), "{refused:?}");
    let questions = json!({"session": id, "request": item["id"], "answer": {"kind": "input", "response": "accept"}});
    assert_eq!(page.refused("answer", questions).await.code, -32602);
    assert_eq!(until_waiting(&mut page, has_request).await.len(), 1, "it still waits");
    page.get("answer", answer(true, "once")).await;
    assert_eq!(away.turn_end("scripted:/far", "t").await.tool_calls.len(), 1);
    until_waiting(&mut page, <[Value]>::is_empty).await;
    let late = page.refused("answer", answer(true, "once")).await;
    assert!(late.code == -32602 && late.message.contains("does not wait"), "{late:?}");

    // Questions of this host.
    here.script("scripted:/near", "t", json!([{"ask": "What is your name?"}, {"say": "thank you"}])).await;
    let items = until_waiting(&mut page, has_request).await;
    let item = &items[0];
    assert_eq!((&item["providerId"], &item["session"]), (&json!(LOCAL), &json!(local("scripted:/near"))));
    let question = item["request"]["request"]["questions"][0]["id"].as_str().unwrap();
    let answers = json!({question: {"state": "submitted", "value": {"kind": "text", "value": "Ada"}}});
    let answer = json!({"session": item["session"], "request": item["id"],
        "answer": {"kind": "input", "response": "accept", "answers": answers}});
    page.get("answer", answer).await;
    here.turn_end("scripted:/near", "t").await;
    until_waiting(&mut page, <[Value]>::is_empty).await;
}

#[tokio::test]
async fn a_token_without_approve_sees_what_waits_and_cannot_answer() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    maker.ready_session("scripted:/s").await;
    let tool = json!({"name": "shell", "input": "ls", "output": "", "permission": "shell"});
    maker.script("scripted:/s", "t", json!([{"tool": tool}, {"hang": true}])).await;
    let added = host.place.run(&["token", "add", "phone", "--can", "read,prompt", "--json"]);
    let added: Value = serde_json::from_str(&added.stdout).unwrap();
    let mut page = Page::with_token(&host, "phone", Protocol::Ahp, added["token"].as_str().unwrap()).await;
    let items = until_waiting(&mut page, has_request).await;
    let answer = json!({"session": items[0]["session"], "request": items[0]["id"],
        "answer": {"kind": "permission", "approved": true}});
    let refused = page.refused("answer", answer).await;
    assert!(refused.code == -32009 && refused.message.contains("approve"), "{refused:?}");
    assert_eq!(until_waiting(&mut page, has_request).await.len(), 1);
}
