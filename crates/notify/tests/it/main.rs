//! Tests of notifications on a whole host in memory, and of requests over real sockets.

mod harness;
mod plan;
mod subscriptions;
mod transport;
