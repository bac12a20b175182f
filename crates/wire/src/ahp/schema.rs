//! The protocol's types as a JSON schema, and a check of the frames that a host sends.
//!
//! [`open`] is the schema of the types; declarations in other languages are generated from it. [`SchemaValidator`] uses
//! a closed version to find anything in a frame that the protocol does not have. Input from outside need not be checked
//! as strictly.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::command::*;
use super::{
    ActionEnvelope, AuthRequiredParams, ErrorObject, ProgressParams, SessionAddedParams, SessionRemovedParams,
    SessionSummaryChangedParams,
};

/// Maps the protocol's names to types. The struct exists only for its schema.
macro_rules! table {
    ($(#[$about:meta])* $name:ident { $($text:literal $field:ident: $kind:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct $name { $(#[serde(rename = $text)] $field: $kind),* }
    };
}

table! {
    /// The params of each request.
    Requests {
        "initialize" initialize: InitializeParams,
        "ping" ping: ChannelParams,
        "reconnect" reconnect: ReconnectParams,
        "subscribe" subscribe: SubscribeParams,
        "listSessions" list_sessions: ListSessionsParams,
        "createSession" create_session: CreateSessionParams,
        "disposeSession" dispose_session: ChannelParams,
        "createChat" create_chat: CreateChatParams,
        "disposeChat" dispose_chat: ChannelParams,
        "moveChat" move_chat: MoveChatParams,
        "fetchTurns" fetch_turns: FetchTurnsParams,
        "completions" completions: CompletionsParams,
        "resolveSessionConfig" resolve_session_config: ResolveSessionConfigParams,
        "sessionConfigCompletions" session_config_completions: SessionConfigCompletionsParams,
        "authenticate" authenticate: AuthenticateParams,
        "createTerminal" create_terminal: CreateTerminalParams,
        "disposeTerminal" dispose_terminal: ChannelParams,
        "resourceRead" resource_read: ResourceReadParams,
        "resourceWrite" resource_write: ResourceWriteParams,
        "resourceList" resource_list: ResourceListParams,
        "resourceResolve" resource_resolve: ResourceResolveParams,
        "resourceMkdir" resource_mkdir: ResourceMkdirParams,
        "resourceDelete" resource_delete: ResourceDeleteParams,
        "resourceCopy" resource_copy: ResourceCopyParams,
        "resourceMove" resource_move: ResourceMoveParams,
        "resourceRequest" resource_request: ResourceRequestParams,
        "createResourceWatch" create_resource_watch: CreateResourceWatchParams,
        "invokeChangesetOperation" invoke_changeset_operation: InvokeChangesetOperationParams,
    }
}

table! {
    /// The result of each request.
    Results {
        "initialize" initialize: InitializeResult,
        "ping" ping: (),
        "reconnect" reconnect: ReconnectAnswer,
        "subscribe" subscribe: SubscribeResult,
        "listSessions" list_sessions: ListSessionsResult,
        "createSession" create_session: (),
        "disposeSession" dispose_session: (),
        "createChat" create_chat: (),
        "disposeChat" dispose_chat: (),
        "moveChat" move_chat: MoveChatResult,
        "fetchTurns" fetch_turns: EmptyResult,
        "completions" completions: CompletionsResult,
        "resolveSessionConfig" resolve_session_config: ResolveSessionConfigResult,
        "sessionConfigCompletions" session_config_completions: SessionConfigCompletionsResult,
        "authenticate" authenticate: EmptyResult,
        "createTerminal" create_terminal: (),
        "disposeTerminal" dispose_terminal: (),
        "resourceRead" resource_read: ResourceReadResult,
        "resourceWrite" resource_write: EmptyResult,
        "resourceList" resource_list: ResourceListResult,
        "resourceResolve" resource_resolve: ResourceResolveResult,
        "resourceMkdir" resource_mkdir: EmptyResult,
        "resourceDelete" resource_delete: EmptyResult,
        "resourceCopy" resource_copy: EmptyResult,
        "resourceMove" resource_move: EmptyResult,
        "resourceRequest" resource_request: EmptyResult,
        "createResourceWatch" create_resource_watch: CreateResourceWatchResult,
        "invokeChangesetOperation" invoke_changeset_operation: InvokeChangesetOperationResult,
    }
}

table! {
    /// The params of each notification that a host sends.
    Notifications {
        "action" action: ActionEnvelope,
        "root/sessionAdded" session_added: SessionAddedParams,
        "root/sessionRemoved" session_removed: SessionRemovedParams,
        "root/sessionSummaryChanged" session_summary_changed: SessionSummaryChangedParams,
        "root/progress" progress: ProgressParams,
        "auth/required" auth_required: AuthRequiredParams,
    }
}

table! {
    /// The params of each notification that a client sends.
    ClientNotifications {
        "unsubscribe" unsubscribe: UnsubscribeParams,
        "dispatchAction" dispatch_action: DispatchActionParams,
    }
}

table! {
    /// All tables.
    Protocol {
        "requests" requests: Requests,
        "results" results: Results,
        "notifications" notifications: Notifications,
        "clientNotifications" client_notifications: ClientNotifications,
        "error" error: ErrorObject,
    }
}

/// The result of `reconnect`, in the form of the request.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[serde(untagged)]
enum ReconnectAnswer {
    Watermark(ReconnectResult),
    Cursors(ReconnectChannelsResult),
}

/// The schema of all types. A union's variant is a reference with its tag beside it.
pub fn open() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut document = generator.into_root_schema_for::<Protocol>().to_value();
    each_schema(&mut document, &mut |schema| {
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.iter_mut().filter(|(name, _)| !is_required(name)).for_each(|(_, schema)| forbid_null(schema));
        }
    });
    document
}

/// The closed schema: it accepts the frames that a host may send, and nothing else. Only the objects that the protocol
/// leaves open may have unnamed members. [`SchemaValidator`] checks by it.
pub fn closed_schema() -> Value {
    let mut document = open();
    let definitions = document.get("$defs").cloned().unwrap_or_default();
    each_schema(&mut document, &mut |schema| close(schema, &definitions));
    let frames = frames(&definitions);
    if let Value::Object(document) = &mut document {
        // The top-level type was needed only to reach the others.
        document.retain(|key, _| key == "$schema" || key == "$defs");
        document.insert("title".into(), "A frame of an AHP host".into());
        document.insert("anyOf".into(), frames);
        if let Some(Value::Object(definitions)) = document.get_mut("$defs") {
            let used = used(definitions);
            definitions.retain(|name, _| used.contains(name));
        }
    }
    document
}

/// The definitions that the tables refer to. Those that were copied into their unions are dropped.
fn used(definitions: &Map<String, Value>) -> BTreeSet<String> {
    let tables = ["Requests", "Results", "Notifications", "ClientNotifications", "ErrorObject"];
    let mut used = BTreeSet::new();
    let mut next: Vec<String> = tables.map(str::to_owned).into();
    while let Some(name) = next.pop() {
        let mut schema = definitions.get(&name).cloned().unwrap_or_default();
        if used.insert(name) {
            each_schema(&mut schema, &mut |schema| {
                let target = schema.get("$ref").and_then(Value::as_str);
                next.extend(target.and_then(|target| target.strip_prefix("#/$defs/")).map(str::to_owned));
            });
        }
    }
    used
}

/// Forbids `null` for optional keys: absent values are not written.
fn forbid_null(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            schema.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(members)) = schema.get_mut("anyOf") {
        members.retain(|member| member.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(member)] = members.as_slice() {
            let member = member.clone();
            schema.remove("anyOf");
            schema.extend(member);
        }
    }
}

/// Forbids unnamed members of an object. A reference with a tag beside it is replaced by a copy, because the two would
/// forbid each other's keys.
fn close(schema: &mut Map<String, Value>, definitions: &Value) {
    if schema.contains_key("properties")
        && let Some(Value::Object(target)) = referred(schema, definitions)
    {
        schema.remove("$ref");
        for key in ["properties", "required"] {
            match (schema.get_mut(key), target.get(key)) {
                (Some(Value::Object(own)), Some(Value::Object(more))) => own.extend(more.clone()),
                (Some(Value::Array(own)), Some(Value::Array(more))) => own.extend(more.iter().cloned()),
                _ => {}
            }
        }
    }
    if schema.get("type").is_some_and(|kind| kind == "object") && !schema.contains_key("additionalProperties") {
        schema.insert("additionalProperties".into(), Value::Bool(false));
    }
}

fn referred<'a>(schema: &Map<String, Value>, definitions: &'a Value) -> Option<&'a Value> {
    definitions.get(schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?)
}

/// Every frame that a host sends: responses, and notifications by their method.
fn frames(definitions: &Value) -> Value {
    let frame = |required: &[&str], properties: Value| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": required,
            "properties": properties,
        })
    };
    let table = |name: &str| {
        let properties = definitions.get(name).and_then(|table| table.get("properties"));
        properties.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let version = json!({ "const": "2.0" });
    let id = json!({ "type": ["string", "integer", "null"] });
    let mut all: Vec<Value> = table("Notifications")
        .into_iter()
        .map(|(method, params)| {
            frame(
                &["jsonrpc", "method", "params"],
                json!({ "jsonrpc": version, "method": { "const": method }, "params": params }),
            )
        })
        .collect();
    let results: Vec<Value> = table("Results").into_iter().map(|(_, result)| result).collect();
    all.push(frame(
        &["jsonrpc", "id", "result"],
        json!({ "jsonrpc": version, "id": id, "result": { "anyOf": results } }),
    ));
    all.push(frame(
        &["jsonrpc", "id", "error"],
        json!({ "jsonrpc": version, "id": id, "error": { "$ref": "#/$defs/ErrorObject" } }),
    ));
    Value::Array(all)
}

/// Calls `change` for a schema and all nested ones, inner ones first.
fn each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    for key in ["$defs", "properties"] {
        if let Some(Value::Object(named)) = schema.get_mut(key) {
            named.values_mut().for_each(|schema| each_schema(schema, change));
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = schema.get_mut(key) {
            members.iter_mut().for_each(|schema| each_schema(schema, change));
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            each_schema(inner, change);
        }
    }
    change(schema);
}

/// A place where a value violates the schema, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", if place.is_empty() { "the value" } else { place.as_str() })]
pub struct Violation {
    /// A JSON pointer to the value.
    pub place: String,
    pub reason: String,
}

/// Checks a host's frames against the [closed schema](closed_schema). It supports the part of JSON Schema that this
/// document uses.
#[derive(Clone, Debug)]
pub struct SchemaValidator {
    document: Value,
}

impl Default for SchemaValidator {
    fn default() -> Self {
        Self::new()
    }
}

impl SchemaValidator {
    pub fn new() -> Self {
        Self { document: closed_schema() }
    }

    /// Checks a complete frame. A response does not name its request, so its result may be that of any.
    pub fn frame(&self, frame: &Value) -> Result<(), Violation> {
        self.check(&self.document, frame, "")
    }

    /// Checks the result of a request.
    pub fn result(&self, method: Method, result: &Value) -> Result<(), Violation> {
        self.entry("Results", method.as_str(), result)
    }

    /// Checks the params of a notification, `action` included.
    pub fn notification(&self, method: &str, params: &Value) -> Result<(), Violation> {
        self.entry("Notifications", method, params)
    }

    /// Checks a value against one of the protocol's types, by its Rust name.
    pub fn named(&self, name: &str, value: &Value) -> Result<(), Violation> {
        match self.document.get("$defs").and_then(|definitions| definitions.get(name)) {
            Some(schema) => self.check(schema, value, ""),
            None => Err(Violation { place: String::new(), reason: format!("there is no type {name}") }),
        }
    }

    /// True if a value matches one part of the document.
    pub fn matches(&self, part: &Value, value: &Value) -> bool {
        self.check(part, value, "").is_ok()
    }

    fn entry(&self, table: &str, name: &str, value: &Value) -> Result<(), Violation> {
        let definitions = self.document.get("$defs").and_then(|definitions| definitions.get(table));
        match definitions.and_then(|table| table.get("properties")).and_then(|entries| entries.get(name)) {
            Some(schema) => self.check(schema, value, ""),
            None => Err(Violation { place: String::new(), reason: format!("{table} has no {name}") }),
        }
    }

    fn check(&self, schema: &Value, value: &Value, place: &str) -> Result<(), Violation> {
        let violation = |reason: String| Err(Violation { place: place.to_owned(), reason });
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return violation("nothing may be here".into()),
            _ => return Ok(()),
        };
        if let Some(target) = self.target(schema) {
            self.check(target, value, place)?;
        }
        if let Some(wanted) = schema.get("const")
            && wanted != value
        {
            return violation(format!("is {value}, not {wanted}"));
        }
        if let Some(Value::Array(wanted)) = schema.get("enum")
            && !wanted.contains(value)
        {
            return violation(format!("is {value}, none of {}", Value::Array(wanted.clone())));
        }
        if let Some(kind) = schema.get("type")
            && !is_of(kind, value)
        {
            return violation(format!("is {value}, no {kind}"));
        }
        if let Some(Value::Array(members)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            let mut checked = members.iter().map(|member| (member, self.check(member, value, place)));
            if !checked.clone().any(|(_, result)| result.is_ok()) {
                // The variant that the tag names is the one to report.
                let variant = checked.find(|(member, _)| self.fits(member, value));
                return variant.map_or_else(|| violation("is none of what may be here".into()), |(_, result)| result);
            }
        }
        if let (Some(items), Value::Array(values)) = (schema.get("items"), value) {
            for (index, value) in values.iter().enumerate() {
                self.check(items, value, &format!("{place}/{index}"))?;
            }
        }
        if let Value::Object(values) = value {
            self.check_keys(schema, values, place)?;
        }
        Ok(())
    }

    fn check_keys(
        &self,
        schema: &Map<String, Value>,
        values: &Map<String, Value>,
        place: &str,
    ) -> Result<(), Violation> {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !values.contains_key(name) {
                return Err(Violation { place: place.to_owned(), reason: format!("`{name}` is missing") });
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in values {
            let known = properties.and_then(|properties| properties.get(name));
            if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
                self.check(schema, value, &format!("{place}/{name}"))?;
            }
        }
        Ok(())
    }

    fn target(&self, schema: &Map<String, Value>) -> Option<&Value> {
        referred(schema, self.document.get("$defs")?)
    }

    /// True if a value has the tags that a schema requires, whatever else it has.
    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let Value::Object(schema) = schema else { return true };
        if let Some(target) = self.target(schema) {
            return self.fits(target, value);
        }
        if let Some(Value::Array(members)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            return members.iter().any(|member| self.fits(member, value));
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .all(|(name, schema)| schema.get("const").is_none_or(|wanted| value.get(name) == Some(wanted)))
    }
}

/// True if a value has the type, or one of several.
fn is_of(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
        Value::String(kind) => match kind.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            _ => false,
        },
        _ => false,
    }
}
