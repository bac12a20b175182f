//! A thin, symmetric JSON-RPC 2.0 peer.
//!
//! [`parse`] reads a frame, the functions beside it write one, and [`CallTable`] keeps the open calls of this side. The
//! transport of frames is up to the caller.

mod calls;
mod frame;

pub use calls::*;
pub use frame::*;

/// The largest message that a host accepts from a client. A larger one closes the connection, so clients check the size
/// first.
pub const MESSAGE_BYTES: usize = 4 << 20;
