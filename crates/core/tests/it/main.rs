//! Tests of `grove-core` from outside: what commands make happen, what events change, and laws over random runs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on may stop")]

mod accepted;
mod effects;
mod mirrored;
mod older;
mod properties;
mod queue;
mod random;
mod refused;
mod remembered;
mod scene;
mod titles;
