//! A thin, symmetric JSON-RPC 2.0 peer.
//!
//! [`parse`] reads a frame, the functions beside it write one, and [`CallTable`] keeps the calls that this side has made
//! and that the other has not answered yet. How frames travel is somebody else's business.

mod calls;
mod frame;

pub use calls::*;
pub use frame::*;

/// The largest message that a host takes from a client. A larger one closes the connection, so who makes one looks first.
pub const MESSAGE_BYTES: usize = 4 << 20;
