//! A policy against past requests.

use crate::judge::Decision;
use crate::request::Request;
use crate::rule::{Policy, Verdict};

/// A person's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Approved,
    Denied,
}

/// A past request, with its answer if a person gave one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PastRequest {
    pub request: Request,
    pub answer: Option<Answer>,
}

/// A past request whose answer a policy contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The index of the request.
    pub index: usize,
    pub answer: Answer,
    pub decision: Decision,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    pub requests: usize,
    pub allowed: usize,
    pub denied: usize,
    pub asked: usize,
    /// Requests that a rule would have answered as the person did.
    pub agreed: usize,
    pub differences: Vec<Difference>,
}

/// Judges past requests by one policy.
pub fn replay(policy: &Policy, past: &[PastRequest]) -> ReplayReport {
    replay_with(|_| policy, past)
}

/// Judges past requests, each by the policy that counts for it.
pub fn replay_with<'p>(policy_for: impl Fn(&Request) -> &'p Policy, past: &[PastRequest]) -> ReplayReport {
    let mut report = ReplayReport { requests: past.len(), ..ReplayReport::default() };
    for (index, PastRequest { request, answer }) in past.iter().enumerate() {
        let decision = policy_for(request).judge(request);
        let by_rule = match decision.verdict {
            Verdict::Allow => {
                report.allowed += 1;
                Answer::Approved
            }
            Verdict::Deny => {
                report.denied += 1;
                Answer::Denied
            }
            Verdict::Ask => {
                report.asked += 1;
                continue;
            }
        };
        match answer {
            Some(answer) if *answer == by_rule => report.agreed += 1,
            Some(answer) => report.differences.push(Difference { index, answer: *answer, decision }),
            None => {}
        }
    }
    report
}
