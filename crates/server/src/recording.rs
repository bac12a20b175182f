//! The records of requests in the audit log: begun where a request is checked, finished with its answer.

use grove_core::{ClientId, Scope, ScopeSet};
use grove_host::Host;
use grove_host::audit::{AuditAction, AuditOutcome, AuditRecord, PendingRecord};
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::ahp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::listener::PeerAddress;
use crate::principal::Principal;

/// The record of a request or an action, by the scopes that it needs.
///
/// Reading is not recorded. Connections inside the host's process are not either: the request that they are for is.
pub(crate) fn begin(
    host: &Host,
    principal: &Principal,
    client: Option<&ClientId>,
    needed: ScopeSet,
    operation: &str,
    session: Option<&str>,
) -> PendingRecord {
    match action(needed, operation) {
        Some(action) if principal.address() != PeerAddress::InProcess => {
            host.begin_audit(record(host, principal, client, action, operation).with_session(session))
        }
        Some(_) | None => PendingRecord::NONE,
    }
}

/// A record of a principal's operation.
pub(crate) fn record(
    host: &Host,
    principal: &Principal,
    client: Option<&ClientId>,
    action: AuditAction,
    operation: &str,
) -> AuditRecord {
    let (time, address) = (host.env().clock.now(), principal.address().to_string());
    AuditRecord::new(time, principal.name(), address, action, operation).with_client(client.map(ClientId::as_str))
}

/// The kind of an operation; `None` if it only reads.
///
/// A session refines it, since it knows what is approved and what is denied.
fn action(needed: ScopeSet, operation: &str) -> Option<AuditAction> {
    let name = operation.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if matches!(name.as_str(), "initialize" | "reconnect" | "connect") {
        return Some(AuditAction::LogIn);
    }
    if needed.without(Scope::Read) == ScopeSet::NONE {
        return None;
    }
    Some(if names(&["turnstarted", "turn/started", "session.send"]) {
        AuditAction::Prompt
    } else if names(&["dispose", "delete", "erase"]) {
        AuditAction::Delete
    } else if names(&["create", "fork", "import", "branch"]) {
        AuditAction::Create
    } else if names(&["token"]) {
        AuditAction::Token
    } else if names(&["policy/allow"]) {
        AuditAction::Approve
    } else if needed.contains(Scope::Admin) {
        AuditAction::Manage
    } else if names(&["handlependingpermission", "permissionresolved"]) {
        AuditAction::Approve
    } else if names(&["userinput", "inputcompleted"]) {
        AuditAction::Answer
    } else {
        AuditAction::Change
    })
}

/// The session that the params of a request name, in any dialect.
pub(crate) fn named_session(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Names {
        #[serde(default)]
        channel: Value,
        #[serde(default)]
        session: Value,
        #[serde(default)]
        session_id: Value,
        #[serde(default)]
        resource: Value,
    }
    let names: Names = serde_json::from_str(params?.get()).ok()?;
    let names = [names.session_id, names.session, names.channel, names.resource];
    names.into_iter().find_map(|name| Some(name.as_str()?.to_owned()))
}

/// The token that the params of a request are about.
pub(crate) fn named_token(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct TokenName {
        name: String,
    }
    serde_json::from_str::<TokenName>(params?.get()).ok().map(|token| token.name)
}

/// The files that a request of the Agent Host Protocol changes.
pub(crate) fn named_files(method: &str, params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct FileNames {
        uri: Option<String>,
        source: Option<String>,
        destination: Option<String>,
    }
    use ahp::Method;
    match Method::named(method)? {
        Method::ResourceWrite
        | Method::ResourceMkdir
        | Method::ResourceDelete
        | Method::ResourceCopy
        | Method::ResourceMove
        | Method::ResourceRequest => {}
        _ => return None,
    }
    let names: FileNames = serde_json::from_str(params?.get()).ok()?;
    let moved = names.source.zip(names.destination).map(|(source, destination)| format!("{source} → {destination}"));
    moved.or(names.uri)
}

/// The outcome of a request by its result: some methods say in it that they changed nothing.
pub(crate) fn outcome(result: &RawValue) -> AuditOutcome {
    #[derive(Deserialize)]
    struct SuccessProbe {
        #[serde(default)]
        success: Option<bool>,
    }
    match serde_json::from_str::<SuccessProbe>(result.get()) {
        Ok(SuccessProbe { success: Some(false) }) => AuditOutcome::Unchanged,
        Ok(_) | Err(_) => AuditOutcome::Done,
    }
}

/// A reply that finishes the record of its request.
pub(crate) fn recorded(reply: ReplySink, record: PendingRecord) -> ReplySink {
    Box::new(move |answer| match answer {
        Encode::Text(text) => {
            finish(record, &text);
            reply(Encode::Text(text));
        }
        Encode::Later(encode) => reply(Encode::later(move || {
            let text = encode();
            finish(record, &text);
            text
        })),
    })
}

/// Finishes the record of an action that is carried out at once.
pub(crate) fn finish_action(record: PendingRecord, refusal: Option<&str>) {
    let outcome = if refusal.is_some() { AuditOutcome::Refused } else { AuditOutcome::Done };
    record.finish(outcome, refusal);
}

/// Finishes a record by the JSON-RPC answer to its request.
pub(crate) fn finish(record: PendingRecord, answer: &str) {
    #[derive(Deserialize)]
    struct AnswerProbe {
        #[serde(default)]
        error: Option<AnswerError>,
    }
    #[derive(Deserialize)]
    struct AnswerError {
        #[serde(default)]
        message: String,
    }
    match serde_json::from_str::<AnswerProbe>(answer).ok().and_then(|answer| answer.error) {
        Some(error) => record.finish(AuditOutcome::Refused, Some(&error.message)),
        None => record.finish(AuditOutcome::Done, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_recorded_by_their_kind_and_reading_is_not() {
        let of = |scope: Scope, operation: &str| action(ScopeSet::NONE.with(scope), operation);
        assert_eq!(of(Scope::Read, "listSessions"), None);
        assert_eq!(action(ScopeSet::NONE, "ping"), None);
        assert_eq!(action(ScopeSet::NONE, "initialize"), Some(AuditAction::LogIn));
        assert_eq!(of(Scope::Prompt, "createSession"), Some(AuditAction::Create));
        assert_eq!(of(Scope::Prompt, "session.delete"), Some(AuditAction::Delete));
        assert_eq!(of(Scope::Prompt, "session.send"), Some(AuditAction::Prompt));
        assert_eq!(of(Scope::Prompt, "x-grove/rename"), Some(AuditAction::Change));
        assert_eq!(of(Scope::Admin, "x-grove/migrate"), Some(AuditAction::Manage));
        let answered = "session.permissions.handlePendingPermissionRequest";
        assert_eq!(of(Scope::Approve, answered), Some(AuditAction::Approve));
        assert_eq!(of(Scope::Admin, "x-grove/policy/allow"), Some(AuditAction::Approve));
    }

    #[test]
    fn the_session_of_a_request_is_found_in_every_dialect() {
        let named = |json: &str| named_session(Some(&RawValue::from_string(json.to_owned()).unwrap()));
        assert_eq!(named(r#"{"channel":"ahp-session:/a"}"#).as_deref(), Some("ahp-session:/a"));
        assert_eq!(named(r#"{"session":"scripted:/a","other":1}"#).as_deref(), Some("scripted:/a"));
        assert_eq!(named(r#"{"sessionId":"a"}"#).as_deref(), Some("a"));
        assert_eq!(named(r#"{"session":{"title":1}}"#), None);
        assert_eq!(named("[]"), None);
    }
}
