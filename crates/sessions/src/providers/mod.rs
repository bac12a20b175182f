//! The providers that Grove comes with: sessions on hosts, and what other tools left on this machine. Others plug theirs in
//! from outside, through the same trait.

pub mod history;
pub mod hosts;
