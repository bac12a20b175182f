//! Notifications: people's devices are told when an agent needs them.
//!
//! [`Notifier`] listens to a host ([`ListenScope::Attention`](grove_host::sequencer::ListenScope)) and never holds it up: the
//! sequencer drops a listener that is too slow, which then looks at the state again. What happens goes through these steps:
//!
//! 1. `happenings` says what an event means for a person: a request waits, a turn has ended, somebody has read it.
//! 2. [`planner`] decides who is told and when: after a moment, after quiet hours, not more than a rate, each notice once.
//!    It does no I/O and reads no clock.
//! 3. `delivery` makes attempts with pauses, until a message is delivered, useless, or replaced.
//! 4. [`http`] sends a request over TLS, with bounds, and to machines of the internet alone.
//!
//! A message to a device is encrypted for the device ([`push::encryption`], RFC 8291) and signed by the host
//! ([`push::vapid`], RFC 8292). It contains what [`Detail`] allows, and never a tool's input or output.
//!
//! A device belongs to the token that added it ([`push::devices`]), and is not told any more when that token ends or gets a
//! new secret.
//!
//! The crate knows no data folder and opens no file: its files go through [`NotifyStorage`], and the certificates that the
//! system trusts through [`RootSource`].

mod delivery;
mod happenings;
pub mod http;
pub mod limits;
mod notice;
mod notifier;
pub mod planner;
pub mod push;
mod quiet;
mod webhook;

use std::fmt;
use std::io;

pub use http::{HttpsTransport, Reach, RootSource, TargetUrl};
pub use notice::{Detail, KindSet, Notice, NoticeKind, TargetId, UnknownKind};
pub use notifier::{Notifier, NotifyConfig};
pub use push::devices::Devices;
pub use quiet::{QuietHours, QuietHoursError};
pub use webhook::{SIGNATURE_HEADER, Webhook};

/// The files of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyFile {
    /// The key pair of the host.
    Key,
    /// The devices, with their addresses and keys.
    Devices,
}

/// The storage of the service. Both files are private.
pub trait NotifyStorage: fmt::Debug + Send + Sync {
    /// Reads a file; `None` if it does not exist. It blocks.
    fn load(&self, file: NotifyFile) -> io::Result<Option<String>>;

    /// Replaces a file. It is on the disk when this returns.
    fn store(&self, file: NotifyFile, text: &str) -> io::Result<()>;
}
