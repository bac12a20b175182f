//! The schema of a host's frames: it accepts every sample, it accepts nothing that the protocol does not have, and
//! samples cover every part of it.

use std::collections::BTreeSet;

use grove_wire::ahp::schema::{SchemaValidator, closed_schema, open};
use grove_wire::ahp::{Method, notify};
use serde_json::{Map, Value, json};

use crate::ahp_samples as samples;

#[test]
fn everything_that_a_host_may_send_is_taken() {
    let closed = SchemaValidator::new();
    let response = |result: &Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let notification = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    for (method, result) in samples::results() {
        closed.result(Method::named(method).unwrap(), &result).unwrap();
        closed.frame(&response(&result)).unwrap();
    }
    closed.result(Method::Reconnect, &samples::cursors().1).unwrap();
    for action in samples::actions() {
        let envelope = json!({ "channel": "c", "action": action, "serverSeq": 1 });
        closed.notification(notify::ACTION, &envelope).unwrap();
        closed.frame(&notification(notify::ACTION, &envelope)).unwrap();
    }
    for (method, params) in samples::notifications() {
        closed.notification(method, &params).unwrap();
        closed.frame(&notification(method, &params)).unwrap();
    }
    for error in samples::errors() {
        closed.named("ErrorObject", &error).unwrap();
        closed.frame(&json!({ "jsonrpc": "2.0", "id": null, "error": error })).unwrap();
    }
}

#[test]
fn nothing_else_is_taken() {
    let closed = SchemaValidator::new();
    let action = |action: Value| json!({ "channel": "c", "action": action, "serverSeq": 1 });
    let refused = [
        (json!({ "type": "session/titleChanged", "title": "t", "colour": "red" }), "/action/colour"),
        (json!({ "type": "session/titleChanged", "title": null }), "/action/title"),
        (json!({ "type": "session/titleChanged" }), "`title` is missing"),
        (json!({ "type": "session/activityChanged", "activity": null }), "/action/activity"),
        (json!({ "type": "session/ready", "title": "t" }), "/action/title"),
        (json!({ "type": "future/newAction" }), "/action"),
        (
            json!({
                "type": "chat/responsePart", "turnId": "t", "part": { "kind": "markdown", "id": "p", "content": 1 },
            }),
            "/action/part/content",
        ),
        (json!({ "type": "chat/responsePart", "turnId": "t", "part": { "kind": "hologram" } }), "/action/part"),
        (
            json!({ "type": "chat/draftChanged", "draft": { "text": "", "origin": { "kind": "oracle" } } }),
            "origin/kind",
        ),
    ];
    for (body, place) in refused {
        let refusal = closed.notification(notify::ACTION, &action(body.clone())).unwrap_err().to_string();
        assert!(refusal.contains(place), "{body}: {refusal}");
    }
    closed.result(Method::Ping, &json!({})).unwrap_err();
    closed.result(Method::FetchTurns, &Value::Null).unwrap_err();
    closed.result(Method::RunAutomation, &json!({})).unwrap_err();
    closed.notification("root/nothing", &json!({})).unwrap_err();
    closed.frame(&json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "more": 1 })).unwrap_err();
    closed.frame(&json!({ "jsonrpc": "2.0", "method": "root/nothing", "params": {} })).unwrap_err();
}

#[test]
fn every_object_is_closed_but_those_that_the_protocol_leaves_open() {
    fn walk(schema: &Value, place: &str, open: &mut BTreeSet<String>) {
        let Value::Object(keys) = schema else { return };
        if keys.get("type").is_some_and(|kind| kind == "object") {
            match &keys["additionalProperties"] {
                Value::Bool(false) => {}
                Value::Bool(true) => drop(open.insert(place.rsplit('/').next().unwrap().to_owned())),
                values => walk(values, place, open),
            }
        }
        for (name, schema) in keys.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(schema, &format!("{place}/{name}"), open);
        }
        for member in keys.get("anyOf").or(keys.get("oneOf")).and_then(Value::as_array).into_iter().flatten() {
            walk(member, place, open);
        }
        if let Some(items) = keys.get("items") {
            walk(items, place, open);
        }
    }
    let document = closed_schema();
    let mut left_open = BTreeSet::new();
    walk(&document, "", &mut left_open);
    for (name, schema) in document["$defs"].as_object().unwrap() {
        walk(schema, name, &mut left_open);
    }
    let wanted: BTreeSet<String> = [
        "_meta",
        "automations",
        "config",
        "inputSchema",
        "logging",
        "mcpApps",
        "outputSchema",
        "review",
        "sampling",
        "serverResources",
        "serverTools",
        "structuredContent",
        "values",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(left_open, wanted);
}

#[test]
fn every_method_has_its_params_and_its_result() {
    let document = open();
    let spoken: BTreeSet<&str> =
        Method::ALL.iter().map(|method| method.as_str()).filter(|method| !method.contains("Automation")).collect();
    for table in ["Requests", "Results"] {
        let listed: BTreeSet<&str> =
            document["$defs"][table]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(listed, spoken, "{table}");
    }
}

/// The parts of a schema that samples cover: keys of definitions, members of unions, words.
struct TouchedSchema<'a> {
    closed: &'a SchemaValidator,
    definitions: &'a Map<String, Value>,
    what: BTreeSet<String>,
}

impl TouchedSchema<'_> {
    fn touch(&mut self, schema: &Value, place: &str, value: &Value) {
        let Value::Object(keys) = schema else { return };
        if let Some(name) = keys.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/")) {
            let target = self.definitions[name].clone();
            self.touch(&target, name, value);
        }
        if let Some(Value::Array(words)) = keys.get("enum")
            && words.contains(value)
        {
            self.what.insert(format!("{place}={value}"));
        }
        for key in ["anyOf", "oneOf"] {
            for (number, member) in keys.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
                if self.takes(member, value) {
                    self.what.insert(format!("{place}|{number}"));
                    self.touch(member, &format!("{place}|{number}"), value);
                }
            }
        }
        if let (Some(items), Value::Array(values)) = (keys.get("items"), value) {
            values.iter().for_each(|value| self.touch(items, place, value));
        }
        if let Value::Object(values) = value {
            let properties = keys.get("properties").and_then(Value::as_object);
            for (name, value) in values {
                if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                    self.what.insert(format!("{place}.{name}"));
                    self.touch(schema, &format!("{place}.{name}"), value);
                } else if let Some(schema) = keys.get("additionalProperties") {
                    self.touch(schema, place, value);
                }
            }
        }
    }

    /// True if a value is this member of a union.
    fn takes(&self, member: &Value, value: &Value) -> bool {
        self.closed.matches(member, value)
    }

    /// Everything that samples have to cover.
    fn all(&self) -> BTreeSet<String> {
        fn walk(schema: &Value, place: &str, all: &mut BTreeSet<String>) {
            let Value::Object(keys) = schema else { return };
            for word in keys.get("enum").and_then(Value::as_array).into_iter().flatten() {
                all.insert(format!("{place}={word}"));
            }
            for key in ["anyOf", "oneOf"] {
                for (number, member) in keys.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
                    all.insert(format!("{place}|{number}"));
                    walk(member, &format!("{place}|{number}"), all);
                }
            }
            for (name, schema) in keys.get("properties").and_then(Value::as_object).into_iter().flatten() {
                all.insert(format!("{place}.{name}"));
                walk(schema, &format!("{place}.{name}"), all);
            }
            for key in ["items", "additionalProperties"] {
                if let Some(schema) = keys.get(key) {
                    walk(schema, place, all);
                }
            }
        }
        let mut all = BTreeSet::new();
        self.definitions.iter().for_each(|(name, schema)| walk(schema, name, &mut all));
        all
    }
}

#[test]
fn no_part_of_the_schema_goes_without_a_sample() {
    let document = closed_schema();
    let closed = SchemaValidator::new();
    let definitions = document["$defs"].as_object().unwrap();
    let mut touched = TouchedSchema { closed: &closed, definitions, what: BTreeSet::new() };
    let mut touch = |name: &str, value: &Value| touched.touch(&definitions[name], name, value);
    let table =
        |entries: Vec<(&str, Value)>| Value::Object(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    for (method, params) in samples::requests() {
        touch("Requests", &table(vec![(method, params)]));
    }
    for (method, result) in samples::results() {
        touch("Results", &table(vec![(method, result)]));
    }
    let (params, result) = samples::cursors();
    touch("Requests", &table(vec![("reconnect", params)]));
    touch("Results", &table(vec![("reconnect", result)]));
    for action in samples::actions() {
        touch("Notifications", &json!({ "action": { "channel": "c", "action": action, "serverSeq": 1 } }));
    }
    touch("Notifications", &json!({ "action": samples::envelope() }));
    touch("Notifications", &table(samples::notifications()));
    touch("ClientNotifications", &json!({ "unsubscribe": { "channel": "c" } }));
    let dispatched = json!({ "channel": "c", "clientSeq": 1, "action": samples::actions()[0] });
    touch("ClientNotifications", &json!({ "dispatchAction": dispatched }));
    for error in samples::errors() {
        touch("ErrorObject", &error);
    }
    for (name, words) in samples::words() {
        words.into_iter().for_each(|word| touch(name, &json!(word)));
    }
    let missed: Vec<String> = touched.all().difference(&touched.what).cloned().collect();
    assert!(missed.is_empty(), "no sample has {missed:#?}");
}
