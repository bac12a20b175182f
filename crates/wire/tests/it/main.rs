//! Tests of `grove-wire` from outside: version 1's shapes and reducers, the law that ties it to `grove-core`, the
//! shapes as they were released, the protocol's document, and readers that meet nonsense.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on may stop")]

mod compat;
mod decode;
mod document;
mod json;
mod law;
#[path = "../../../core/tests/it/random.rs"]
#[allow(dead_code, reason = "shared with core's tests, which use more of it")]
mod random;
mod reducers;
mod shapes;
