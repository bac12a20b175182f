//! Sockets that acknowledge at once.
//!
//! The SDK writes a message's head and body separately, and its system holds the second back until the first is
//! acknowledged, which ours would take 40 ms to do. So every read sets the option for immediate acknowledgement again;
//! the system resets it by itself.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::listener::{AcceptedStream, Listener, PeerAddress};

/// A TCP connection that acknowledges its input at once, and writes without delay.
#[derive(Debug)]
pub struct QuickAckStream(TcpStream);

impl QuickAckStream {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let quick_ack = Self(stream);
        quick_ack.acknowledge();
        Ok(quick_ack)
    }

    /// Sets the option. A system without it is slower, and nothing else.
    fn acknowledge(&self) {
        sockopt::set_tcp_quickack(&self.0, true).ok();
    }
}

impl AsyncRead for QuickAckStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, into);
        if read.is_ready() {
            self.acknowledge();
        }
        read
    }
}

impl AsyncWrite for QuickAckStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A listener whose connections acknowledge at once.
#[derive(Debug)]
pub struct QuickAckListener(TcpListener);

impl QuickAckListener {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self)
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The next connection, and its peer.
    pub async fn accept(&mut self) -> io::Result<(QuickAckStream, SocketAddr)> {
        let (stream, peer) = self.0.accept().await?;
        Ok((QuickAckStream::new(stream)?, peer))
    }
}

#[async_trait]
impl Listener for QuickAckListener {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        let local = self.local_addr()?;
        let (stream, peer) = QuickAckListener::accept(self).await?;
        Ok(AcceptedStream { stream: Box::new(stream), peer: PeerAddress::Tcp { peer, local } })
    }
}
