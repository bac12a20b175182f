//! Compares the tables of `docs/protocol.md` with the registry, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use grove_wire::jsonrpc::{MAX_BATCH, MAX_DEPTH, code};
use grove_wire::registry::{action_introduced_in, notification_introduced_in};
use grove_wire::v1::{ActionType, Method, NotificationType, close_code, error_code, notify};
use grove_wire::x_grove;
use serde_json::Value;

use crate::compat;

const DOCUMENT: &str = include_str!("../../../../docs/protocol.md");

/// The rows of the table under `heading` whose first column is called `first`, by the names of their columns.
fn table(heading: &str, first: &str) -> Vec<BTreeMap<&'static str, &'static str>> {
    let start = DOCUMENT.lines().position(|line| line == format!("## {heading}")).expect(heading);
    let section: Vec<&str> = DOCUMENT.lines().skip(start + 1).take_while(|line| !line.starts_with("## ")).collect();
    let head = section.iter().position(|line| line.starts_with(&format!("| {first} |"))).expect(first);
    let cells = |line: &'static str| -> Vec<&'static str> {
        line.trim_start_matches('|').trim_end_matches('|').split('|').map(str::trim).collect()
    };
    let names = cells(section[head]);
    let rows = section[head + 2..].iter().take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let cells = cells(line);
        assert_eq!(cells.len(), names.len(), "a row of {heading} has as many cells as its head: {line}");
        names.iter().copied().zip(cells).collect()
    })
    .collect()
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn name(cell: &str) -> String {
    let mut quoted = quoted(cell);
    assert_eq!(quoted.len(), 1, "{cell}");
    quoted.remove(0)
}

/// Codes in a cell, or numbers.
fn numbers(cell: &str) -> Vec<i64> {
    cell.split(", ").filter(|number| !number.is_empty()).map(|number| number.parse().expect(cell)).collect()
}

/// The fields of an object's schema as the document writes them: optional ones end with `?`.
fn fields(schema: &Value, apart: &[&str]) -> BTreeSet<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let mark = |field: &String| match required.is_some_and(|names| names.iter().any(|name| name == field)) {
        true => field.clone(),
        false => format!("{field}?"),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten().map(|(field, _)| field);
    named.filter(|field| !apart.contains(&field.as_str())).map(mark).collect()
}

/// The payloads of a tagged union, by tag.
fn payloads(union: &str) -> BTreeMap<String, BTreeSet<String>> {
    let living = compat::living();
    let variants = living[union]["oneOf"].as_array().unwrap();
    let tag = |variant: &Value| variant["properties"]["type"]["const"].as_str().unwrap().to_owned();
    variants.iter().map(|variant| (tag(variant), fields(variant, &["type"]))).collect()
}

fn documented_payloads(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = table(heading, "type");
    rows.iter().map(|row| (name(row["type"]), quoted(row["payload"]).into_iter().collect())).collect()
}

#[test]
fn the_actions_are_those_of_the_registry() {
    let documented: Vec<(String, bool, i64)> = table("Actions", "type")
        .iter()
        .map(|row| {
            let may = match row["client may dispatch"] {
                "yes" => true,
                "no" => false,
                other => panic!("{other}"),
            };
            (name(row["type"]), may, row["since"].parse().unwrap())
        })
        .collect();
    let known: Vec<(String, bool, i64)> = ActionType::ALL
        .iter()
        .map(|kind| (kind.as_str().to_owned(), kind.client_may_dispatch(), action_introduced_in(*kind).into()))
        .collect();
    assert_eq!(documented, known);
}

#[test]
fn the_payloads_of_actions_are_those_of_their_shapes() {
    let mut known = payloads("RootAction");
    known.extend(payloads("SessionAction"));
    assert_eq!(documented_payloads("Actions"), known);
}

#[test]
fn the_list_notifications_are_those_of_the_registry() {
    let documented: Vec<(String, i64)> = table("List notifications", "type")
        .iter()
        .map(|row| (name(row["type"]), row["since"].parse().unwrap()))
        .collect();
    let known: Vec<(String, i64)> = NotificationType::ALL
        .iter()
        .map(|kind| (kind.as_str().to_owned(), notification_introduced_in(*kind).into()))
        .collect();
    assert_eq!(documented, known);
    assert_eq!(documented_payloads("List notifications"), payloads("Notification"));
}

#[test]
fn the_requests_and_their_errors_are_those_of_the_code() {
    let documented: Vec<(String, Vec<i64>)> =
        table("Requests", "method").iter().map(|row| (name(row["method"]), numbers(row["errors"]))).collect();
    let known: Vec<(String, Vec<i64>)> =
        Method::ALL.iter().map(|method| (method.as_str().to_owned(), method.errors().to_vec())).collect();
    assert_eq!(documented, known);
}

#[test]
fn the_params_and_results_of_requests_are_those_of_their_shapes() {
    let living = compat::living();
    for row in table("Requests", "method") {
        let (params, result) = match Method::named(&name(row["method"])).unwrap() {
            Method::Initialize => (Some("InitializeParams"), Some("InitializeResult")),
            Method::Reconnect => (Some("ReconnectParams"), Some("ReconnectResult")),
            Method::Ping => (None, None),
            Method::Subscribe => (Some("SubscribeParams"), Some("Snapshot")),
            Method::CreateSession => (Some("CreateSessionParams"), None),
            Method::DisposeSession => (Some("DisposeSessionParams"), None),
            Method::ListSessions => (Some("ListSessionsParams"), Some("ListSessionsResult")),
            Method::FetchTurns => (Some("FetchTurnsParams"), Some("FetchTurnsResult")),
            Method::FetchContent => (Some("FetchContentParams"), Some("FetchContentResult")),
            Method::BrowseDirectory => (Some("BrowseDirectoryParams"), Some("BrowseDirectoryResult")),
        };
        let documented: BTreeSet<String> = quoted(row["params"]).into_iter().collect();
        assert_eq!(documented, params.map_or_else(BTreeSet::new, |name| fields(&living[name], &[])), "{row:?}");
        let documented: BTreeSet<String> = quoted(row["result"]).into_iter().collect();
        let known = match result {
            None => BTreeSet::from(["null".to_owned()]),
            Some("ReconnectResult") => payloads("ReconnectResult")
                .into_iter()
                .map(|(tag, fields)| {
                    let fields: Vec<String> = fields.into_iter().collect();
                    format!("{{type: \"{tag}\", {}}}", fields.join(", "))
                })
                .collect(),
            Some(name) => fields(&living[name], &[]),
        };
        assert_eq!(documented, known, "{row:?}");
    }
}

#[test]
fn the_methods_that_grove_adds_are_those_of_the_code() {
    let documented: Vec<String> = table("What Grove adds", "method").iter().map(|row| name(row["method"])).collect();
    let known = x_grove::Method::ALL.map(x_grove::Method::as_str);
    assert_eq!(documented, known);
}

#[test]
fn the_messages_without_an_answer_are_those_of_the_code() {
    let documented: Vec<(String, &str, Vec<String>)> = table("Messages without an answer", "method")
        .iter()
        .map(|row| (name(row["method"]), row["sender"], quoted(row["params"])))
        .collect();
    let living = compat::living();
    let params = |name: &str| fields(&living[name], &[]);
    let known = [
        (notify::UNSUBSCRIBE, "client", params("SubscribeParams")),
        (notify::DISPATCH_ACTION, "client", params("DispatchActionParams")),
        (notify::ACTION, "host", params("ActionParams")),
        (notify::NOTIFICATION, "host", params("NotificationParams")),
    ];
    assert_eq!(documented.len(), known.len());
    for ((method, sender, fields), known) in documented.into_iter().zip(known) {
        assert_eq!((method.as_str(), sender, fields.into_iter().collect()), known);
    }
}

#[test]
fn the_state_tables_are_the_shapes() {
    let living = compat::living();
    let objects: BTreeSet<String> = table("State", "type").iter().map(|row| name(row["type"])).collect();
    for row in table("State", "type") {
        let documented: BTreeSet<String> = quoted(row["fields"]).into_iter().collect();
        assert_eq!(documented, fields(&living[&name(row["type"])], &[]), "{row:?}");
    }
    let words: BTreeMap<String, Vec<String>> =
        table("State", "words").iter().map(|row| (name(row["words"]), quoted(row["values"]))).collect();
    let known: BTreeMap<String, Vec<String>> = living
        .iter()
        .filter_map(|(name, schema)| {
            let words = schema.get("enum")?.as_array()?;
            Some((name.clone(), words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()))
        })
        .collect();
    assert_eq!(words, known);

    // Every object in a state has its row.
    let mut reached = BTreeSet::from(["RootState".to_owned(), "SessionState".to_owned(), "ToolCallResult".to_owned()]);
    let mut open: Vec<String> = reached.iter().cloned().collect();
    while let Some(name) = open.pop() {
        for (other, schema) in &living {
            let named = living[&name].to_string().contains(&format!("\"#/$defs/{other}\""));
            if named && schema.get("properties").is_some() && reached.insert(other.clone()) {
                open.push(other.clone());
            }
        }
    }
    assert_eq!(objects, reached);
}

#[test]
fn the_error_codes_are_those_of_the_code() {
    let documented: BTreeSet<i64> =
        table("Error codes", "code").iter().map(|row| row["code"].parse().unwrap()).collect();
    let known = BTreeSet::from([
        code::PARSE,
        code::INVALID_REQUEST,
        code::METHOD_NOT_FOUND,
        code::INVALID_PARAMS,
        code::INTERNAL,
        error_code::SESSION_NOT_FOUND,
        error_code::PROVIDER_NOT_FOUND,
        error_code::SESSION_EXISTS,
        error_code::TURN_IN_PROGRESS,
        error_code::UNSUPPORTED_VERSION,
        error_code::CONTENT_NOT_FOUND,
    ]);
    assert_eq!(documented, known);
    for method in Method::ALL {
        assert!(method.errors().iter().all(|error| known.contains(error)), "{method:?}");
    }
}

#[test]
fn the_close_codes_are_those_of_the_code() {
    let documented: BTreeSet<u16> =
        table("Close codes", "code").iter().map(|row| row["code"].parse().unwrap()).collect();
    let known = [
        close_code::GOING_AWAY,
        close_code::TOO_BIG,
        close_code::TOO_FAR_BEHIND,
        close_code::RESYNCHRONIZE,
        close_code::TAKEN_OVER,
        close_code::TOKEN_ENDED,
    ];
    assert_eq!(documented, BTreeSet::from(known));
}

#[test]
fn the_limits_are_those_of_the_code() {
    let documented: Vec<(&str, String)> =
        table("Limits", "what").iter().map(|row| (row["what"], row["limit"].to_owned())).collect();
    let known =
        [("nesting of a message", format!("{MAX_DEPTH} levels")), ("messages in a batch", MAX_BATCH.to_string())];
    // The limits of messages come first; the rest are the host's.
    assert_eq!(documented[..known.len()], known);
}
