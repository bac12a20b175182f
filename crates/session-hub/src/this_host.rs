//! The connection to this host, whose sessions the hub lists like those of any other host.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use grove_client::{ConnectInProcess, Endpoint, HostMessage, MessageChannel};
use grove_server::{InProcessConnection, InProcessHost, InProcessMessage};

/// The endpoint of this host: the messages of any client, through channels.
pub(super) fn endpoint(host: InProcessHost) -> Endpoint {
    Endpoint::in_process(Arc::new(ThisHost(host)))
}

struct ThisHost(InProcessHost);

impl ConnectInProcess for ThisHost {
    fn connect(&self) -> Option<MessageChannel> {
        self.0.connect().ok().map(message_channel)
    }
}

/// A connection to a host in this process, for clients.
pub fn message_channel(connection: InProcessConnection) -> MessageChannel {
    let InProcessConnection { to_host, from_host } = connection;
    let from_host = stream::unfold(from_host, |mut from_host| async move {
        let message = match from_host.recv().await? {
            InProcessMessage::Frame(frame) => HostMessage::Text(frame),
            InProcessMessage::Closed { code, reason } => HostMessage::Closed { code, reason: reason.to_owned() },
        };
        Some((message, from_host))
    });
    MessageChannel { to_host, from_host: from_host.boxed() }
}
