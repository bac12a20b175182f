//! Minimal values that fit a JSON schema.

use serde_json::{Map, Value, json};

/// The deepest value: schemas may refer to themselves.
const DEPTH: usize = 12;

/// A small value that fits. Its strings are `words`.
pub(super) fn fit(schema: &Value, words: &str) -> Value {
    value(schema, schema, words, DEPTH)
}

/// The schema's type in lower case, without `null`. Gemini writes types in upper case.
pub(super) fn type_of(schema: &Value) -> Option<String> {
    let name = match &schema["type"] {
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).find(|name| !name.eq_ignore_ascii_case("null"))?
        }
        name => name.as_str()?,
    };
    Some(name.to_ascii_lowercase())
}

fn value(schema: &Value, root: &Value, words: &str, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|name| root.pointer(name.strip_prefix('#')?)) {
        return value(target, root, words, depth - 1);
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    for union in ["anyOf", "oneOf", "allOf"] {
        let some = schema[union].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"));
        if let Some(some) = some {
            return value(some, root, words, depth - 1);
        }
    }
    match type_of(schema).as_deref() {
        Some("object") | None => object(schema, root, words, depth),
        Some("array") => {
            let many = schema["minItems"].as_u64().unwrap_or(0).min(16);
            (0..many).map(|_| value(&schema["items"], root, words, depth - 1)).collect()
        }
        Some("boolean") => json!(false),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("null") => Value::Null,
        Some(_) => json!(words),
    }
}

fn object(schema: &Value, root: &Value, words: &str, depth: usize) -> Value {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields = required.iter().filter_map(Value::as_str);
    let fields = fields.map(|name| (name.to_owned(), value(&schema["properties"][name], root, words, depth - 1)));
    Value::Object(fields.collect::<Map<_, _>>())
}
