//! Tests of `grove-wire` from outside: version 1's types and reducers, the law that ties it to `grove-core`, the
//! released types, the protocol's document, readers of invalid input, the types and reducers of the Agent Host
//! Protocol, and the events of the Copilot SDK.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on may stop")]

mod ahp_agents;
mod ahp_echo;
mod ahp_fixtures;
mod ahp_properties;
mod ahp_reduce;
mod ahp_reduce_fixtures;
mod ahp_reduce_oracle;
mod ahp_reduce_random;
mod ahp_reduce_support;
mod ahp_reduce_vectors;
mod ahp_rows;
mod ahp_samples;
mod ahp_schema;
mod ahp_types;
mod ahp_version;
mod compat;
mod copilot_decode;
mod copilot_fixtures;
mod copilot_golden;
mod copilot_hooks;
mod copilot_properties;
mod copilot_surface;
mod decode;
mod document;
mod json;
#[path = "../../../core/tests/it/random/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with core's tests, which use more of it")]
mod random;
mod reducers;
mod scopes;
mod shapes;
mod typescript;
mod v1_properties;
