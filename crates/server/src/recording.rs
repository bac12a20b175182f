//! The records of requests in the audit log: begun where a request is checked, finished with its answer.

use std::borrow::Cow;
use std::fmt;

use grove_core::{ClientId, Scope, ScopeSet};
use grove_host::Host;
use grove_host::audit::{AuditAction, AuditOutcome, AuditRecord, PendingRecord};
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::ahp;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
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

/// Returns true for an operation that only reads. Its record and its params concern nobody. A device that is told of
/// sessions changes nothing of them, but from then on something leaves the host.
pub(crate) fn only_reads(needed: ScopeSet, operation: &str) -> bool {
    needed.without(Scope::Read) == ScopeSet::NONE && !logs_in(operation) && !changes_devices(operation)
}

fn changes_devices(operation: &str) -> bool {
    matches!(operation, "x-grove/notify/subscribe" | "x-grove/notify/unsubscribe")
}

fn logs_in(operation: &str) -> bool {
    ["initialize", "reconnect", "connect"].iter().any(|name| operation.eq_ignore_ascii_case(name))
}

/// The kind of an operation; `None` if it only reads.
///
/// A session refines it, since it knows what is approved and what is denied.
fn action(needed: ScopeSet, operation: &str) -> Option<AuditAction> {
    if only_reads(needed, operation) {
        return None;
    }
    if logs_in(operation) {
        return Some(AuditAction::LogIn);
    }
    let name = operation.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| name.contains(word));
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
    if record.is_none() {
        return reply;
    }
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
    if record.is_none() {
        return;
    }
    match refusal(answer) {
        Some(message) => record.finish(AuditOutcome::Refused, Some(&message)),
        None => record.finish(AuditOutcome::Done, None),
    }
}

/// The message of an answer that is an error. A result is not read: it may be large.
fn refusal(answer: &str) -> Option<String> {
    struct AnswerVisitor;

    impl<'de> Visitor<'de> for AnswerVisitor {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an answer of JSON-RPC")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut answer: A) -> Result<Self::Value, A::Error> {
            #[derive(Deserialize)]
            struct AnswerError {
                #[serde(default)]
                message: String,
            }
            let mut message = None;
            while let Some(name) = answer.next_key::<Cow<'de, str>>()? {
                match &*name {
                    "error" => message = Some(answer.next_value::<AnswerError>()?.message),
                    "result" => return Err(de::Error::custom("it is a result")),
                    _ => drop(answer.next_value::<IgnoredAny>()?),
                }
            }
            Ok(message)
        }
    }

    serde_json::Deserializer::from_str(answer).deserialize_map(AnswerVisitor).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_recorded_by_their_kind_and_reading_is_not() {
        let of = |scope: Scope, operation: &str| action(ScopeSet::NONE.with(scope), operation);
        assert_eq!(of(Scope::Read, "listSessions"), None);
        assert_eq!(of(Scope::Read, "reconnect"), Some(AuditAction::LogIn));
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
    fn an_answer_is_read_up_to_its_result_or_error() {
        let refused = r#"{"jsonrpc":"2.0","id":"result","error":{"code":-32600,"message":"no \"","data":{"a":[1]}}}"#;
        assert_eq!(refusal(refused).as_deref(), Some("no \""));
        assert_eq!(refusal(r#"{"id":{"error":1},"error":{"code":1},"more":[]}"#).as_deref(), Some(""));
        // What comes after `result` is never read, whatever it is.
        for answer in
            [r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"message":"x"}}}"#, r#"{"id":1,"result":["#, "{}", "["]
        {
            assert_eq!(refusal(answer), None, "{answer}");
        }
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
