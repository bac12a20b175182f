//! The tests of the policy.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod corpus;
mod evasions;
mod imports;
mod judging;
mod replays;
mod spellings;

use grove_policy::{Policy, Request, RequestAction, RuleSet};

pub(crate) fn policy(text: &str) -> Policy {
    Policy::from_iter([RuleSet::parse_repository(text, "policy.toml").unwrap()])
}

pub(crate) fn request(action: RequestAction) -> Request {
    Request::new("claude", action).in_directory("/w/app").with_home("/home/dev")
}

pub(crate) fn shell(command: &str) -> Request {
    request(RequestAction::Shell { command: command.to_owned() })
}
