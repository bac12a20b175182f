//! The part of a test client that every dialect shares: its connection, and its numbers.

use grove_wire::jsonrpc::Id;
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::socket::{ByteStream, ConnectionEnd, TestSocket};

/// A client's connection, with the numbers that it gives and sees.
pub struct TestConnection {
    socket: TestSocket,
    pub client_id: String,
    last_id: u64,
    last_client_seq: u64,
    /// The highest sequence number seen, in actions and snapshots.
    pub seen: u64,
    /// The sequence number that the next action must exceed.
    pub(crate) last_action_seq: u64,
}

impl std::fmt::Debug for TestConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestConnection")
            .field("client_id", &self.client_id)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl TestConnection {
    /// Connects over TCP. `ws` is the address that the host prints.
    pub(crate) async fn connect(ws: &str, token: &str, client_id: &str) -> Self {
        Self::on(TestSocket::connect(ws, token).await, client_id)
    }

    /// Connects over any stream.
    pub(crate) async fn over(stream: Box<dyn ByteStream>, url: &str, client_id: &str) -> Self {
        Self::on(TestSocket::over(stream, url).await, client_id)
    }

    fn on(socket: TestSocket, client_id: &str) -> Self {
        let client_id = client_id.to_owned();
        Self { socket, client_id, last_id: 0, last_client_seq: 0, seen: 0, last_action_seq: 0 }
    }

    /// Replaces the stream.
    pub(crate) async fn reopen(&mut self, stream: Box<dyn ByteStream>, url: &str) {
        self.socket = TestSocket::over(stream, url).await;
        // Numbers grow across connections and restarts of the host, too.
        self.last_action_seq = self.seen;
    }

    /// The id of the next request.
    pub(crate) fn next_id(&mut self) -> Id {
        self.last_id += 1;
        Id::from(self.last_id)
    }

    /// The `clientSeq` of the next action.
    pub(crate) fn next_client_seq(&mut self) -> u64 {
        self.last_client_seq += 1;
        self.last_client_seq
    }

    /// Asserts law 5 for an action, and notes its number.
    pub(crate) fn see_action(&mut self, server_seq: u64) {
        assert!(
            server_seq > self.last_action_seq,
            "{}: {server_seq} came after {}",
            self.client_id,
            self.last_action_seq
        );
        self.last_action_seq = server_seq;
        self.see(server_seq);
    }

    /// Notes the number of a state.
    pub(crate) fn see(&mut self, server_seq: u64) {
        self.seen = self.seen.max(server_seq);
    }

    /// Drops the connection without closing it; pending messages are lost.
    pub async fn cut(&mut self) {
        self.socket.cut().await;
    }

    /// The end of the connection, once it has ended.
    pub fn ended(&self) -> Option<&ConnectionEnd> {
        self.socket.ended()
    }

    /// Sends a text frame as it is.
    pub async fn send(&mut self, text: String) {
        self.socket.send(text).await;
    }

    /// Sends any message as it is.
    pub async fn send_raw(&mut self, message: Message) -> bool {
        self.socket.send_raw(message).await
    }

    /// The next text frame, not applied yet; `None` at the connection's end.
    pub async fn frame(&mut self) -> Option<String> {
        self.socket.frame(&self.client_id).await
    }
}
