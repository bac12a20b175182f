//! Answered requests in the audit log: those of sessions whose logs are gone, or not written yet.

use std::path::Path;

use grove_core::Timestamp;
use grove_host::audit::{AuditAction, AuditOutcome};
use grove_policy::replay::Answer;

use super::{FoundRequest, PastRequests, RequestRecord, SameBy};
use crate::audit::{self, AuditFilter, AuditReader};
use crate::connect::id_of;

/// The name of these records.
const SOURCE: &str = "audit";

/// Collects the approvals and denials that say what was asked for.
pub(super) fn collect(data_dir: &Path, since: Timestamp, past: &mut PastRequests<'_>) {
    let filter = AuditFilter { since: Some(since), outcome: Some(AuditOutcome::Done), ..AuditFilter::default() };
    for record in AuditReader::open(&audit::folder(data_dir), filter) {
        let answer = match record.action {
            AuditAction::Approve => Answer::Approved,
            AuditAction::Deny => Answer::Denied,
            _ => continue,
        };
        let (Some(session), Some(request)) = (&record.session, &record.request) else { continue };
        let found = FoundRequest {
            agent: request.agent.clone(),
            call: request.call.clone(),
            action: request.action(),
            directory: request.directory.clone(),
            answer,
            record: RequestRecord { source: SOURCE, session: id_of(session).to_owned(), at: record.time },
        };
        past.add(found, SameBy::Session);
    }
}
