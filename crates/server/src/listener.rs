//! Listeners: sources of connections, which are arguments of the server.

use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// A source of connections.
#[async_trait]
pub trait Listener: Send {
    async fn accept(&mut self) -> io::Result<Box<dyn Stream>>;
}

/// A connection's bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[async_trait]
impl Listener for tokio::net::TcpListener {
    async fn accept(&mut self) -> io::Result<Box<dyn Stream>> {
        let (stream, _) = tokio::net::TcpListener::accept(self).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
