//! A host in this process: messages go through channels, without a socket, a token or frames.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{Sink, StreamExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError};

use super::{MessageSocket, TransportError};

/// Connects to a host in this process.
pub trait ConnectInProcess: Send + Sync {
    /// Opens a connection; `None` if the host has ended.
    fn connect(&self) -> Option<MessageChannel>;
}

/// A connection to a host in this process. Dropping it ends it.
pub struct MessageChannel {
    pub to_host: mpsc::Sender<String>,
    pub from_host: BoxStream<'static, HostMessage>,
}

impl fmt::Debug for MessageChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageChannel").finish_non_exhaustive()
    }
}

/// A message of a host in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMessage {
    Text(Arc<str>),
    /// The last message, with the close code that a WebSocket would have.
    Closed {
        code: u16,
        reason: String,
    },
}

/// Opens a connection.
pub(super) fn open(host: &dyn ConnectInProcess) -> Result<MessageSocket, TransportError> {
    let ended = || TransportError::Unreachable(io::Error::new(io::ErrorKind::NotConnected, "the host has ended"));
    let MessageChannel { to_host, from_host } = host.connect().ok_or_else(ended)?;
    // A host in this process is alive as long as its channel is open, so pings are answered here.
    let (pings, pongs) = mpsc::channel(1);
    let pongs = stream::unfold(pongs, |mut pongs: mpsc::Receiver<()>| async move {
        pongs.recv().await?;
        Some((Message::Pong(Bytes::new()), pongs))
    });
    let messages = from_host.map(|message| match message {
        HostMessage::Text(text) => Message::text(&*text),
        HostMessage::Closed { code, reason } => {
            Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
        }
    });
    // The end of the host's messages ends the stream, whatever the other one does.
    let messages = messages.map(Some).chain(stream::iter([None]));
    let stream = stream::select(messages, pongs.map(Some)).take_while(|message| std::future::ready(message.is_some()));
    Ok(MessageSocket {
        sink: Box::pin(sink(to_host, pings)),
        stream: stream.filter_map(|message| std::future::ready(message.map(Ok))).boxed(),
    })
}

fn sink(
    to_host: mpsc::Sender<String>,
    pings: mpsc::Sender<()>,
) -> impl Sink<Message, Error = SocketError> + Send + 'static {
    futures_util::sink::unfold((to_host, pings), |(to_host, pings), message: Message| async move {
        match message {
            Message::Text(text) => {
                to_host.send(text.as_str().to_owned()).await.map_err(|_| SocketError::ConnectionClosed)?;
            }
            // One unread pong is as good as two.
            Message::Ping(_) => _ = pings.try_send(()),
            Message::Close(_) | Message::Binary(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
        Ok((to_host, pings))
    })
}

#[cfg(test)]
mod tests {
    use futures_util::SinkExt;
    use std::sync::Mutex;

    use super::*;

    /// The host's ends of one connection.
    struct OneConnection(Mutex<Option<MessageChannel>>);

    impl ConnectInProcess for OneConnection {
        fn connect(&self) -> Option<MessageChannel> {
            self.0.lock().unwrap().take()
        }
    }

    fn connection() -> (OneConnection, mpsc::Receiver<String>, mpsc::Sender<HostMessage>) {
        let (to_host, received) = mpsc::channel(4);
        let (sent, messages) = mpsc::channel(4);
        let from_host = stream::unfold(messages, |mut messages| async move {
            let message = messages.recv().await?;
            Some((message, messages))
        });
        (OneConnection(Mutex::new(Some(MessageChannel { to_host, from_host: from_host.boxed() }))), received, sent)
    }

    #[tokio::test]
    async fn messages_pass_as_they_are_and_a_ping_is_answered() {
        let (host, mut received, sent) = connection();
        let mut socket = open(&host).unwrap();
        socket.sink.send(Message::text("{\"a\":1}")).await.unwrap();
        assert_eq!(received.recv().await.unwrap(), "{\"a\":1}");
        socket.sink.send(Message::Ping(Bytes::new())).await.unwrap();
        assert_eq!(socket.stream.next().await.unwrap().unwrap(), Message::Pong(Bytes::new()));
        sent.send(HostMessage::Text("{}".into())).await.unwrap();
        assert_eq!(socket.stream.next().await.unwrap().unwrap(), Message::text("{}"));
    }

    #[tokio::test]
    async fn the_end_comes_with_its_code_and_a_host_that_is_gone_cannot_be_reached() {
        let (host, received, sent) = connection();
        let mut socket = open(&host).unwrap();
        sent.send(HostMessage::Closed { code: 4008, reason: "behind".to_owned() }).await.unwrap();
        drop((sent, received));
        let Some(Ok(Message::Close(Some(end)))) = socket.stream.next().await else { panic!("no end") };
        assert_eq!((u16::from(end.code), end.reason.as_str()), (4008, "behind"));
        assert!(socket.stream.next().await.is_none());
        assert!(socket.sink.send(Message::text("{}")).await.is_err());
        assert!(matches!(open(&host), Err(TransportError::Unreachable(_))));
    }
}
