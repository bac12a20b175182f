//! Tests of `grove-core` from outside: events of commands, effects of events, and laws over random runs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on may stop")]

mod commands;
mod effects;
mod event_classes;
mod mirror;
mod old_formats;
mod properties;
mod queue;
mod random;
mod rejections;
mod remembered_permissions;
mod scene;
mod titles;
