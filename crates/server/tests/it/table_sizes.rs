//! No table grows with the clients and sessions that there once were.

use grove_host::{Config, Limits};
use serde_json::json;

use crate::harness::{TestHost, until};

#[tokio::test(start_paused = true)]
async fn sessions_that_are_gone_are_in_no_table() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session("scripted:/stays").await;
    let before = host.host.table_sizes();
    for number in 0..300 {
        let uri = format!("scripted:/s{number}");
        client.ready_session(&uri).await;
        client.run_script(&uri, "t", json!([{"say": "hello"}])).await;
        client.call::<()>("disposeSession", json!({"session": uri})).await.unwrap();
        // Asking for a session that never was leaves nothing either.
        client.subscribe(&format!("scripted:/never{number}")).await.unwrap_err();
    }
    // A session that everybody left is looked at once more.
    until("only the session that stays is in a table", async || host.host.table_sizes() == before).await;
}

#[tokio::test(start_paused = true)]
async fn clients_that_come_and_go_are_remembered_up_to_the_bound() {
    let limits = Limits { known_clients: 100, ..Limits::default() };
    let host = TestHost::start(Config { limits, ..Config::default() }).await;
    host.client("first").await.ready_session("scripted:/s").await;
    for number in 0..2_000 {
        // Every tenth is another client; the others return.
        let mut client = host.connect(&format!("c{}", number / 10)).await;
        client.initialize(&["scripted:/s"]).await;
        client.cut().await;
    }
    until("all connections have ended", async || host.host.status().await.unwrap().connections == 0).await;
    let sizes = host.host.table_sizes();
    assert!(sizes.clients <= 101, "{sizes:?}");
    assert_eq!((sizes.open_sessions, sizes.used_sessions), (1, 1), "{sizes:?}");
}
