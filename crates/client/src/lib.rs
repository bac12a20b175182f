//! A client of a host of coding-agent sessions.
//!
//! # What this crate owns
//!
//! - [`Client`]: one connection at a time, restored when it is lost, with a replay or with snapshots.
//! - [`Subscription`]: a resource's state as the host has confirmed it, with the pending actions of this client on top
//!   ([`reconcile`]). It can be read, waited for and followed.
//! - [`HostAddress`] and [`Endpoint`]: the address of a host (TCP, TLS with a pinned certificate, a socket of this
//!   machine, another machine through SSH), and the credentials for it; or a host in this process
//!   ([`ConnectInProcess`]).
//! - [`SessionListHandle`]: the session list, fetched once and updated by notifications.
//!
//! All of it is generic over the trait [`Dialect`]: a protocol defines its states and actions, how an action changes a
//! state, and its messages. [`Ahp`] is the Agent Host Protocol 1.0, [`V1`] is version 1.
//!
//! # Order
//!
//! An action is numbered, shown and queued under one lock: its effect is visible at once, and actions are sent in the
//! order of their numbers. The optimistic state is built when somebody reads it while an action is pending, so a stream
//! of other clients' actions costs no copy. `reconnect` brings states up to date; the client uses `initialize` if the
//! host does not know it, or if the host sent something unreadable.
//!
//! # What it never does
//!
//! It opens no file, knows nothing of a host's internals, and never decides the order of actions: the host does.
//! Pending actions of a lost connection are not sent again; their callers learn that they are lost.
//!
//! **Law.** After every reconnect, the confirmed state equals a snapshot of the host at the same number.
//!
//! # Example
//!
//! ```no_run
//! use grove_client::{Client, Endpoint, Options, DispatchOutcome, V1};
//! use grove_wire::v1::{CreateSessionParams, SessionChange, UserMessage};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::tcp("ws://127.0.0.1:7000/ws", Some("0123456789abcdef0123456789abcdef"))?;
//! let client = Client::connect(endpoint, V1::default(), Options::default()).await?;
//!
//! let uri = "scripted:/my-session";
//! let create =
//!     CreateSessionParams { session: uri.to_owned(), provider: None, model: None, working_directory: None };
//! client.request(create).await?;
//! let mut session = client.subscribe(uri).await?;
//!
//! let user_message = UserMessage { text: "Hello".to_owned(), attachments: None };
//! let start = session.dispatch(SessionChange::TurnStarted { turn_id: "turn-1".to_owned(), user_message })?;
//! assert!(session.read(|state| state.session().unwrap().active_turn.is_some()), "its effect is seen at once");
//! if let DispatchOutcome::Rejected(reason) = start.await {
//!     return Err(reason.into());
//! }
//! let text = session.until(|state| state.session()?.turns.last().cloned()).await?;
//! # Ok(())
//! # }
//! ```

mod client;
mod client_state;
mod connection;
pub mod dialect;
mod driver;
mod error;
mod options;
pub mod reconcile;
mod resource;
mod sessions;
mod status;
mod transport;

pub use client::{Client, DispatchHandle, SessionListHandle, Subscription};
pub use client_state::{DispatchOutcome, HostNotification};
pub use dialect::ahp::{Ahp, DisposeChat};
pub use dialect::v1::V1;
pub use dialect::{Dialect, DispatchOrigin, Model, RequestParams, Unsupported};
pub use error::{ConnectError, DispatchError, NotConnected, RequestError};
pub use options::{Backoff, ClientLimits, FrameDirection, FrameLog, HostRequest, Options, RequestHandler};
pub use resource::{AppliedAction, ResourceChange, ResourceChanges};
pub use sessions::SessionList;
pub use status::{ClientClosed, ConnectionStatus};
pub use transport::{
    AddressError, ByteStream, CertificateError, ConnectInProcess, Credentials, Dial, Endpoint, EndpointError,
    Fingerprint, FingerprintError, HostAddress, HostMessage, MessageChannel, SshAddress, SshError, TransportError,
};
