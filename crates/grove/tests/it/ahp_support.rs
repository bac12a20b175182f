//! Helpers for tests of the Agent Host Protocol.

use grove_testkit::ahp::{Client, ReconnectOutcome};
use grove_wire::ahp::ROOT;
use serde_json::{Value, json};

use crate::support::{Host, S};

/// The session [`S`] under its plain name.
pub(crate) const PLAIN: &str = "ahp-session:/s";
/// The main chat of [`S`], as clients compute it.
pub(crate) const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";
/// The same under its plain name.
pub(crate) const PLAIN_CHAT: &str = "ahp-chat:/s";

impl Host {
    /// A connected client that has not sent `initialize`.
    pub(crate) async fn ahp_connect(&self, client_id: &str) -> Client {
        Client::connect(&self.ws, &self.token, client_id).await
    }

    /// An initialized client without subscriptions.
    pub(crate) async fn ahp(&self, client_id: &str) -> Client {
        let mut client = self.ahp_connect(client_id).await;
        client.initialize(&[]).await;
        client
    }

    /// A client with a new session [`S`], subscribed to it and its main chat.
    pub(crate) async fn ahp_with_session(&self, client_id: &str) -> Client {
        let mut client = self.ahp(client_id).await;
        assert_eq!(client.ready_session(S).await, CHAT);
        client
    }

    /// A client that is subscribed to [`S`] and its main chat.
    pub(crate) async fn ahp_subscriber(&self, client_id: &str) -> Client {
        let mut client = self.ahp_connect(client_id).await;
        client.initialize(&[S, CHAT]).await;
        client
    }

    /// Connects a client again.
    pub(crate) async fn ahp_redial(&self, client: &mut Client) {
        let stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        client.move_to(Box::new(stream), &format!("{}?tkn={}", self.ws, self.token)).await;
    }

    /// Reconnects a client.
    pub(crate) async fn ahp_reconnect(&self, client: &mut Client) -> ReconnectOutcome {
        let stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        client.reconnect(Box::new(stream), &format!("{}?tkn={}", self.ws, self.token)).await
    }
}

/// The params of a request on the root's channel.
pub(crate) fn on_root(more: Value) -> Value {
    let mut params = json!({"channel": ROOT});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// An active client with tools of these names.
pub(crate) fn active_client(client: &str, tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    json!({"clientId": client, "tools": tools})
}
