//! Locations in VS Code's form: URIs in parts, and ranges of a file.

use serde_json::{Value, json};

use crate::normal::{FileLocation, TextRange};
use crate::uri::location_of_uri;

/// A location's URI in parts. A path becomes a file URI.
pub(super) fn uri_of(place: &FileLocation) -> Value {
    if place.uri.is_empty() {
        return file(place.path.as_deref().unwrap_or_default());
    }
    let Some((scheme, rest)) = place.uri.split_once(':').filter(|_| location_of_uri(&place.uri).uri == place.uri)
    else {
        return file(&place.uri);
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let path = path.split(['?', '#']).next().unwrap_or(path);
    json!({
        "$mid": 1, "scheme": scheme, "authority": decoded(authority), "path": decoded(path), "external": place.uri,
    })
}

/// A location with its range, if it has one.
pub(super) fn location_of(place: &FileLocation) -> Value {
    match &place.range {
        Some(range) => json!({"uri": uri_of(place), "range": range_of(range)}),
        None => uri_of(place),
    }
}

pub(super) fn range_of(range: &TextRange) -> Value {
    json!({
        "startLineNumber": range.start.line,
        "startColumn": range.start.column,
        "endLineNumber": range.end.line,
        "endColumn": range.end.column,
    })
}

/// A path of any system.
fn file(path: &str) -> Value {
    let slashes = path.replace('\\', "/");
    let (authority, path) = match slashes.strip_prefix("//") {
        Some(share) => share.split_at(share.find('/').unwrap_or(share.len())),
        None => ("", slashes.as_str()),
    };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    json!({"$mid": 1, "scheme": "file", "authority": authority, "path": path})
}
