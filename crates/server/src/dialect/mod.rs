//! The dialects in which connections are served: one module each, chosen here.

mod administration;
pub(crate) mod ahp;
pub(crate) mod answer;
mod call_cost;
mod handover;
pub(crate) mod history;
mod history_import;
mod import;
mod notify;
mod peer;
mod presence;
mod removal;
pub(crate) mod sessions;
pub(crate) mod tokens;
pub(crate) mod turns;
mod unnumbered;
pub(crate) mod v1;
pub(crate) mod workspace;
pub(crate) mod x_grove;

pub(crate) use self::answer::{count_refusal, limit_reached};
pub(crate) use self::peer::ConnectionPeer;
