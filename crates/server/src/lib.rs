//! The clients' side of a host: it listens, speaks the protocols, and connects clients to the host's sessions.
//!
//! # Contents
//!
//! - [`HostServer`]: HTTP and WebSocket on one port, and access control (`http`); [`serve`] is the short way to one
//!   listener. A [`Listener`] is an argument: a port, [`UnixSocket`], [`TlsListener`], or pipes in tests.
//! - `connection`: reads a client's requests in order; writes from a bounded queue, so that a slow client slows down
//!   only itself. At most 64 answers and 64 MiB of them are pending; a client that reads nothing for 30 s is dropped.
//!   [`InProcessHost`] connects clients in the host's own process. [`EditorService`] serves editors on `/acp`.
//!   [`FrameLog`] records every frame.
//! - [`Principal`]: the holder of a token behind a connection, with its scopes and its address.
//! - `dialect`: the handling of each protocol's messages. A connection finds out which one its client speaks.
//! - [`copilot`]: the same for the GitHub Copilot SDK. [`sdk`]: SDKs that connect through `grove copilot`.
//!
//! # Boundaries
//!
//! This crate decides nothing about sessions: it turns messages into requests to a [`Host`](grove_host::Host), and
//! answers, events and refusals into messages. Its queues, and the sequencer that fills them, belong to `grove-host`,
//! which knows no socket and no request of a client. The JSON formats are those of `grove-wire`.
//!
//! # Example
//!
//! ```no_run
//! use grove_host::{Config, Env, Host, Token};
//! use grove_server::AccessPolicy;
//! use tokio::net::TcpListener;
//!
//! /// Serves a host without agents on a free port of this machine.
//! async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     let env = Env::in_memory();
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let access = AccessPolicy::loopback(Token::generate(env.random.as_ref())?, listener.local_addr()?);
//!     let host = Host::in_memory(env, Config::default(), Vec::new()).await?;
//!     grove_server::serve(host, access, Box::new(listener)).drained().await;
//!     Ok(())
//! }
//! ```
//!
//! `examples/embed.rs` serves a host with an agent of its own.

mod connection;
pub mod copilot;
mod dialect;
mod http;
pub mod limits;
mod listener;
mod origin;
mod principal;
mod recording;

pub use connection::{
    EditorConnection, EditorHost, EditorService, FrameLog, InProcessConnection, InProcessHost, InProcessMessage,
};
pub use http::{
    AccessPolicy, Asset, Caching, Certificate, CertificateFileError, HostNames, HostServer, TlsListener,
    TransportSecurity, UnixSocket, WebPage, sdk, serve,
};
pub use listener::{AcceptedStream, Listener, PeerAddress, Stream};
pub use principal::Principal;
