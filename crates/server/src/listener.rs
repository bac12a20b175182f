//! Listeners: sources of connections, which are arguments of the server.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// A source of connections.
#[async_trait]
pub trait Listener: Send {
    async fn accept(&mut self) -> io::Result<AcceptedStream>;
}

/// A connection's bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A new connection, with the other end of it.
pub struct AcceptedStream {
    pub stream: Box<dyn Stream>,
    pub peer: PeerAddress,
}

impl fmt::Debug for AcceptedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The other end of a connection, as the operating system names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// A process of this machine, through a Unix socket. `started` is its start, by which it is told from a later one.
    Unix { pid: Option<u32>, started: Option<u64>, uid: u32 },
    /// An address, through TCP, and the address of this host that it connected to.
    Tcp { peer: SocketAddr, local: SocketAddr },
    /// The host's own process.
    InProcess,
}

impl PeerAddress {
    /// The network that one party can have: an IPv4 address, or the first half of an IPv6 address.
    pub(crate) fn network(self) -> Option<IpAddr> {
        let PeerAddress::Tcp { peer, .. } = self else { return None };
        Some(match peer.ip().to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
            }
            address => address,
        })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Unix { pid: Some(pid), uid, .. } => write!(f, "process {pid} of user {uid}"),
            PeerAddress::Unix { pid: None, uid, .. } => write!(f, "user {uid}"),
            PeerAddress::Tcp { peer, .. } => peer.fmt(f),
            PeerAddress::InProcess => f.write_str("this host"),
        }
    }
}

#[async_trait]
impl Listener for tokio::net::TcpListener {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        let (stream, peer) = tokio::net::TcpListener::accept(self).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        let peer = PeerAddress::Tcp { peer, local: stream.local_addr()? };
        Ok(AcceptedStream { stream: Box::new(stream), peer })
    }
}
