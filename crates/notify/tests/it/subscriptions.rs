//! The devices of tokens: who may add, see and remove them, and until when they are told.

use grove_core::{Scope, ScopeSet};
use grove_testkit::ahp::Client;
use grove_testkit::host::TOKEN;
use serde_json::{Value, json};

use crate::harness::*;

const PHONE: &str = "https://push.example/phone";

async fn devices(client: &mut Client) -> Vec<Value> {
    client.ask("x-grove/notify/list", json!({})).await.unwrap()["devices"].as_array().unwrap().clone()
}

/// Has a turn end, which everybody is told of.
async fn turn(host: &NotifyHost, id: &str) {
    let mut client = host.client(TOKEN, id).await;
    let chat = client.ready_session(&format!("scripted:/{id}")).await;
    client.run_script(&chat, "t", json!([{"say": "done"}])).await;
    drop(client);
    seconds(60).await;
}

#[tokio::test(start_paused = true)]
async fn a_device_is_told_until_its_token_ends() {
    let disk = Disk::default();
    let host = NotifyHost::with(config(), &disk).await;
    for name in ["phone", "tablet", "watch"] {
        let mut client = host.client(&host.add_token(name, &[Scope::Read]), name).await;
        let subscription = subscription(&format!("https://push.example/{name}"));
        client.ask("x-grove/notify/subscribe", subscription).await.unwrap();
    }
    turn(&host, "a").await;
    host.tokens.revoke("tablet").unwrap();
    host.tokens.rotate("watch", ScopeSet::ALL).unwrap();
    turn(&host, "b").await;
    let told = ["phone", "tablet", "watch"].map(|name| host.pushed(&format!("https://push.example/{name}")).len());
    assert_eq!(told, [2, 1, 1]);
    let mut owner = host.client(TOKEN, "owner").await;
    let left: Vec<_> = devices(&mut owner).await.iter().map(|device| device["token"].clone()).collect();
    assert_eq!(left, ["phone"]);
}

#[tokio::test(start_paused = true)]
async fn devices_and_the_key_outlive_the_host() {
    let disk = Disk::default();
    let host = NotifyHost::with(config(), &disk).await;
    let mut client = host.client(TOKEN, "owner").await;
    let key = client.ask("x-grove/notify/key", json!({})).await.unwrap();
    client.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap();
    let before = devices(&mut client).await;
    drop((client, host));

    let host = NotifyHost::with(config(), &disk).await;
    let mut client = host.client(TOKEN, "owner").await;
    assert_eq!(client.ask("x-grove/notify/key", json!({})).await.unwrap(), key);
    assert_eq!(devices(&mut client).await, before);
    turn(&host, "a").await;
    assert_eq!(host.pushed(PHONE).len(), 1);
    let stored = disk.files.0.lock().unwrap().clone();
    assert!(stored.iter().flatten().all(|text| !text.contains(TOKEN)), "no file has a token");
}

#[tokio::test(start_paused = true)]
async fn a_token_sees_and_removes_its_own_devices_and_the_owner_all() {
    let host = NotifyHost::start().await;
    let mut phone = host.client(&host.add_token("phone", &[Scope::Read]), "phone").await;
    let mut other = host.client(&host.add_token("other", &[Scope::Read]), "other").await;
    let mut owner = host.client(TOKEN, "owner").await;
    let added = phone.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap();
    let row = devices(&mut phone).await[0].clone();
    let expected = json!({"id": added["id"], "name": "Phone", "token": "phone", "service": "push.example",
        "events": ["waiting", "finished", "failed"], "createdAt": NOON});
    assert_eq!(row, expected, "a list has no address and no key");
    assert_eq!((devices(&mut other).await.len(), devices(&mut owner).await.len()), (0, 1));
    let by_id = json!({"id": added["id"]});
    let removed = other.ask("x-grove/notify/unsubscribe", by_id.clone()).await.unwrap();
    assert_eq!(removed, json!({"removed": false}));
    other.ask("x-grove/notify/test", by_id.clone()).await.unwrap_err();
    let tested = phone.ask("x-grove/notify/test", by_id.clone()).await.unwrap();
    assert_eq!(tested, json!({"delivered": true}));
    // The same address again is the same device, with the newest token.
    other.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap();
    assert_eq!((devices(&mut phone).await.len(), devices(&mut other).await.len()), (0, 1));
    assert_eq!(owner.ask("x-grove/notify/unsubscribe", by_id).await.unwrap(), json!({"removed": true}));
    assert_eq!(devices(&mut owner).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_device_that_its_service_does_not_know_any_more_is_removed() {
    let host = NotifyHost::start().await;
    let mut owner = host.client(TOKEN, "owner").await;
    owner.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap();
    // The webhook is told too: both get the same answer, and it stays.
    host.network.answers.lock().unwrap().extend([status(410), status(410)]);
    turn(&host, "a").await;
    assert_eq!(devices(&mut owner).await, Vec::<Value>::new());
    turn(&host, "b").await;
    assert_eq!((host.pushed(PHONE).len(), host.hooked().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_or_hostile_subscription_is_refused() {
    let host = NotifyHost::start().await;
    let mut client = host.client(TOKEN, "owner").await;
    let with = |member: &str, value: Value| {
        let mut params = subscription(PHONE);
        params[member] = value;
        params
    };
    for params in [
        json!({}),
        with("endpoint", json!("http://push.example/x")),
        with("endpoint", json!("https://127.0.0.1/x")),
        with("endpoint", json!("https://[::1]/x")),
        with("endpoint", json!("https://169.254.169.254/latest/meta-data")),
        with("endpoint", json!("https://push.example:8443/x")),
        with("endpoint", json!("file:///etc/passwd")),
        with("keys", json!({"p256dh": "BA", "auth": "AA"})),
        with("keys", json!({"p256dh": "A".repeat(87), "auth": "A".repeat(22)})),
        with("events", json!(["everything"])),
        with("events", json!(vec!["waiting"; 1_000])),
        with("quiet", json!("night")),
        with("language", json!("de\r\nx: y")),
    ] {
        let refused = client.ask("x-grove/notify/subscribe", params.clone()).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{params}: {refused:?}");
    }
    assert_eq!(devices(&mut client).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_token_has_so_many_devices_and_a_token_that_may_not_read_has_none() {
    let host = NotifyHost::start().await;
    let mut phone = host.client(&host.add_token("phone", &[Scope::Read]), "phone").await;
    for number in 0..8 {
        let one = subscription(&format!("https://push.example/{number}"));
        phone.ask("x-grove/notify/subscribe", one).await.unwrap();
    }
    let refused = phone.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap_err();
    assert_eq!(refused.code, -32029, "{refused:?}");
    phone.ask("x-grove/notify/subscribe", subscription("https://push.example/0")).await.unwrap();
    let mut blind = host.client(&host.add_token("blind", &[Scope::Approve]), "blind").await;
    for method in ["key", "list", "subscribe", "unsubscribe", "test"] {
        let refused = blind.ask(&format!("x-grove/notify/{method}"), subscription(PHONE)).await.unwrap_err();
        assert_eq!(refused.code, -32009, "{method}: {refused:?}");
    }
}
