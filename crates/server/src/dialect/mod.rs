//! The dialects in which connections are served: one module each, chosen here.

pub(crate) mod ahp;
mod answer;
mod handover;
mod history;
mod import;
mod peer;
mod removal;
mod sessions;
mod tokens;
pub(crate) mod turns;
mod unnumbered;
pub(crate) mod v1;
mod workspace;
pub(crate) mod x_grove;

pub(crate) use self::peer::ConnectionPeer;
