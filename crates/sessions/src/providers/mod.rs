//! The providers that Grove includes: sessions on hosts, and sessions of other tools on this machine. Other crates
//! implement their own through the same trait.

pub mod history;
pub mod hosts;
