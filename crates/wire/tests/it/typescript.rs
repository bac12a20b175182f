//! The page's types are generated from the schema that the host's frames are checked against, so that they match the
//! frames exactly. `make types` writes them.

use std::fmt::Write as _;
use std::path::Path;

use grove_wire::ahp::schema;
use serde_json::{Map, Value};

#[test]
fn the_types_of_the_page_are_those_of_the_host() {
    let mut document = schema::open();
    // Sorted by name, whichever map serde_json was built with.
    document.sort_all_objects();
    let generated = declarations(&document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/wire/types.ts");
    if std::env::var_os("GROVE_TYPES_WRITE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    // Not compared by assert_eq, which would print both files.
    assert!(std::fs::read_to_string(&path).unwrap() == generated, "{} is outdated: run `make types`", path.display());
}

/// One declaration for each definition.
fn declarations(document: &Value) -> String {
    let mut text = "// Generated from grove-wire by `make types`; do not edit\n".to_owned();
    for (name, schema) in document["$defs"].as_object().expect("a document has definitions") {
        text.push('\n');
        comment(schema, "", &mut text);
        match schema.get("properties").and_then(Value::as_object) {
            // A plain object becomes an interface, which editors show better than an alias.
            Some(_) => writeln!(text, "export interface {name} {}", object(schema, "")),
            None => writeln!(text, "export type {name} ={};", alias(schema)),
        }
        .expect("a string takes what is written");
    }
    text
}

fn comment(schema: &Value, indent: &str, text: &mut String) {
    let Some(description) = schema.get("description").and_then(Value::as_str) else { return };
    // Links of rustdoc mean nothing here.
    let plain = description.replace("[`", "`").replace("`]", "`");
    match plain.lines().collect::<Vec<_>>().as_slice() {
        [line] => writeln!(text, "{indent}/** {line} */").expect("a string takes what is written"),
        lines => {
            writeln!(text, "{indent}/**").expect("a string takes what is written");
            for line in lines {
                writeln!(text, "{}", format!("{indent} * {line}").trim_end()).expect("a string takes what is written");
            }
            writeln!(text, "{indent} */").expect("a string takes what is written");
        }
    }
}

/// The right side of the `=`: a union has a line for each member.
fn alias(schema: &Value) -> String {
    match members(schema) {
        Some(members) => members.iter().fold(String::new(), |text, member| text + "\n  | " + &one(member, "  ")),
        None => format!(" {}", one(schema, "")),
    }
}

fn members(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

/// A type inside another.
fn one(schema: &Value, indent: &str) -> String {
    let Value::Object(keys) = schema else { return "unknown".into() };
    let reference = keys.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix("#/$defs/"));
    if let Some(name) = reference {
        // A tag is beside the reference that it belongs to.
        return if keys.contains_key("properties") { format!("({} & {name})", tag(keys)) } else { name.into() };
    }
    if let Some(value) = keys.get("const") {
        return value.to_string();
    }
    if let Some(Value::Array(values)) = keys.get("enum") {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(members) = members(schema) {
        return members.iter().map(|member| one(member, indent)).collect::<Vec<_>>().join(" | ");
    }
    match keys.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().map(|kind| simple(kind, keys, indent)).collect::<Vec<_>>().join(" | ")
        }
        Some(kind) => simple(kind, keys, indent),
        None => "unknown".into(),
    }
}

/// A type that `type` names.
fn simple(kind: &Value, keys: &Map<String, Value>, indent: &str) -> String {
    match kind.as_str().unwrap_or_default() {
        "string" => "string".into(),
        "boolean" => "boolean".into(),
        "integer" | "number" => "number".into(),
        "null" => "null".into(),
        "array" => {
            let items = keys.get("items").map_or_else(|| "unknown".into(), |items| one(items, indent));
            if items.contains(' ') && !items.starts_with('(') { format!("({items})[]") } else { format!("{items}[]") }
        }
        "object" if keys.contains_key("properties") => object(&Value::Object(keys.clone()), indent),
        "object" => match keys.get("additionalProperties") {
            Some(values) => format!("Record<string, {}>", one(values, indent)),
            // An empty object, extended only by a tag.
            None => "Record<never, never>".into(),
        },
        _ => "unknown".into(),
    }
}

fn tag(keys: &Map<String, Value>) -> String {
    let tags = keys["properties"].as_object().into_iter().flatten();
    let tags: Vec<String> = tags.map(|(name, schema)| format!("{}: {}", key(name), one(schema, ""))).collect();
    format!("{{ {} }}", tags.join("; "))
}

/// The body of an object, required members before optional ones.
fn object(schema: &Value, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = || schema["properties"].as_object().into_iter().flatten();
    let mut text = "{\n".to_owned();
    for wanted in [true, false] {
        for (name, schema) in properties().filter(|(name, _)| is_required(name) == wanted) {
            comment(schema, &inner, &mut text);
            let mark = if wanted { "" } else { "?" };
            writeln!(text, "{inner}{}{mark}: {};", key(name), one(schema, &inner))
                .expect("a string takes what is written");
        }
    }
    text + indent + "}"
}

/// A name as a key: quoted if it is not a plain word.
fn key(name: &str) -> String {
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if plain { name.into() } else { format!("{name:?}") }
}
