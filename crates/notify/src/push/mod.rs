//! Web Push: devices, their keys, and messages to them.

pub mod devices;
pub mod encryption;
pub(crate) mod message;
pub mod vapid;
