//! URIs as VS Code writes them: text, or an object of their parts.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use crate::normal::{FileLocation, TextPosition, TextRange};

/// The characters that VS Code escapes in a path.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The location of a URI in text. Other text is taken for a path.
pub fn location_of_uri(uri: &str) -> FileLocation {
    let Some((scheme, rest)) = uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return FileLocation::local(uri);
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    named(uri.to_owned(), scheme, &decoded(authority), decoded(path))
}

/// The location in a value: a URI in text or in parts, a place in a file, or an object with one of these.
pub fn location_from(value: &Value) -> Option<FileLocation> {
    match value {
        Value::String(uri) => Some(location_of_uri(uri)),
        Value::Object(members) => {
            if let Some(uri) = ["uri", "location", "resource"].iter().find_map(|key| members.get(*key)) {
                let mut place = location_from(uri)?;
                place.range = members.get("range").and_then(range_of).or(place.range);
                return Some(place);
            }
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let (scheme, path) = (text("scheme")?, text("path").unwrap_or_default());
            let authority = text("authority").unwrap_or_default();
            // A path in parts is not escaped, a whole URI is.
            let uri = text("external").map_or_else(|| spelled(scheme, authority, path), str::to_owned);
            Some(named(uri, scheme, authority, path.to_owned()))
        }
        _ => None,
    }
}

/// A range of a text, in the editor's form.
pub fn range_of(value: &Value) -> Option<TextRange> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let start = TextPosition { line: number("startLineNumber")?, column: number("startColumn").unwrap_or(1) };
    let end = TextPosition {
        line: number("endLineNumber").unwrap_or(start.line),
        column: number("endColumn").unwrap_or(start.column),
    };
    Some(TextRange { start, end })
}

/// The canonical spelling of a URI: unescaped, with a drive in lower case.
pub fn same_uri(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return uri.to_owned();
    };
    let rest = decoded(rest);
    match rest.as_bytes() {
        [b'/', b'/', b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => {
            format!("{scheme}:///{}{}", drive.to_ascii_lowercase() as char, &rest[4..])
        }
        _ => format!("{scheme}:{rest}"),
    }
}

fn named(uri: String, scheme: &str, authority: &str, path: String) -> FileLocation {
    let host = Some(authority.to_owned()).filter(|host| !host.is_empty());
    match scheme {
        "file" => {
            let path = match host {
                // A share of another machine is a path on this one.
                Some(host) => format!("\\\\{host}{}", path.replace('/', "\\")),
                None => windows_path(&path).unwrap_or(path),
            };
            FileLocation { uri, path: Some(path), ..FileLocation::default() }
        }
        "vscode-remote" | "vscode-vfs" | "github-remote-file" => {
            FileLocation { uri, path: Some(path), host, ..FileLocation::default() }
        }
        // Settings, untitled buffers, pages: they have no path that a person could open.
        _ => FileLocation { uri, ..FileLocation::default() },
    }
}

/// `/c:/Users` is a path on a drive.
fn windows_path(path: &str) -> Option<String> {
    match path.as_bytes() {
        [b'/', drive, b':', rest @ ..] if drive.is_ascii_alphabetic() && matches!(rest, [] | [b'/', ..]) => {
            Some(path[1..].replace('/', "\\"))
        }
        _ => None,
    }
}

fn spelled(scheme: &str, authority: &str, path: &str) -> String {
    let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
    format!("{scheme}://{}{}", escaped(authority), escaped(path))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// True for a URI scheme. A single letter is a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folder_uris_are_percent_decoded_with_drives_shares_and_hosts() {
        for (uri, path, host) in [
            ("file:///Users/u/code/my%20app", Some("/Users/u/code/my app"), None),
            ("file:///c%3A/Users/me/proj", Some("c:\\Users\\me\\proj"), None),
            ("file:///D:/", Some("D:\\"), None),
            ("file://server/share/x%20y", Some("\\\\server\\share\\x y"), None),
            ("file:///home/u/%C3%A9", Some("/home/u/é"), None),
            ("vscode-remote://ssh-remote%2Bdevbox/home/u/app", Some("/home/u/app"), Some("ssh-remote+devbox")),
            ("untitled:Untitled-1", None, None),
            ("/plain/path", Some("/plain/path"), None),
            ("c:\\plain", Some("c:\\plain"), None),
            ("", Some(""), None),
        ] {
            let place = location_of_uri(uri);
            assert_eq!((place.path.as_deref(), place.host.as_deref()), (path, host), "{uri}");
        }
    }

    #[test]
    fn a_uri_in_parts_names_the_same_place_as_in_text() {
        let parts = json!({"$mid": 1, "scheme": "file", "path": "/c:/a b/#x"});
        let place = location_from(&parts).unwrap();
        assert_eq!(place.uri, "file:///c%3A/a%20b/%23x");
        assert_eq!(location_of_uri(&place.uri), place);
        let location = json!({"uri": parts, "range": {"startLineNumber": 2, "startColumn": 3}});
        let at = TextPosition { line: 2, column: 3 };
        assert_eq!(location_from(&location).unwrap().range, Some(TextRange { start: at, end: at }));
    }

    #[test]
    fn two_spellings_of_one_uri_are_the_same() {
        assert_eq!(same_uri("file:///C%3A/a%20b"), same_uri("file:///c:/a b"));
        assert_ne!(same_uri("file:///a"), same_uri("file:///b"));
    }
}
