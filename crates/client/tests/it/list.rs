//! The session list.

use grove_client::{Client, Options, SessionListHandle, V1};
use grove_host::Config;
use grove_wire::v1;

use crate::harness::{TestHost, create, options, soon};

async fn until_listed(sessions: &mut SessionListHandle<V1>, wanted: &[&str]) {
    let listed = sessions.until(|list| {
        let mut listed: Vec<&str> = list.iter().map(|row| row.resource.as_str()).collect();
        listed.sort_unstable();
        (list.is_fetched() && listed == wanted).then_some(())
    });
    soon("the list", listed).await.unwrap();
}

#[tokio::test]
async fn the_list_is_fetched_once_kept_by_notifications_and_fetched_again_after_a_reconnect() {
    let host = TestHost::on_tcp(Config::default()).await;
    let other = host.client("b").await;
    create(&other, "scripted:/1").await;
    let client = host.client("a").await;
    let mut sessions = client.sessions();
    until_listed(&mut sessions, &["scripted:/1"]).await;
    create(&other, "scripted:/2").await;
    create(&other, "scripted:/3").await;
    until_listed(&mut sessions, &["scripted:/1", "scripted:/2", "scripted:/3"]).await;
    other.request(v1::DisposeSessionParams { session: "scripted:/2".to_owned() }).await.unwrap();
    until_listed(&mut sessions, &["scripted:/1", "scripted:/3"]).await;
    assert_eq!(sessions.read(|list| list.fetched()), 1);
    assert_eq!(sessions.read(|list| list.iter().next().unwrap().resource.clone()), "scripted:/3", "the newest first");

    host.front.let_down(false);
    let dispose = tokio::spawn({
        let other = other.clone();
        async move { other.request(v1::DisposeSessionParams { session: "scripted:/1".to_owned() }).await }
    });
    soon("a disposed session", async {
        while host.host.status().await.unwrap().sessions != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    host.front.cut();
    host.front.let_down(true);
    until_listed(&mut sessions, &["scripted:/3"]).await;
    assert!(sessions.read(|list| list.fetched()) >= 2);
    dispose.abort();
    soon("the list", sessions.refresh()).await.unwrap();
}

#[tokio::test]
async fn a_client_that_wants_no_list_fetches_none() {
    let host = TestHost::on_tcp(Config::default()).await;
    let options = Options { list_sessions: false, ..options("a") };
    let client = Client::connect(host.endpoint(), V1::default(), options).await.unwrap();
    create(&client, "scripted:/1").await;
    assert!(client.sessions().read(|list| !list.is_fetched() && list.is_empty()));
}
