//! Paths as `file:` URIs and back, of any system: sessions of other machines are shown, too.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URI of an absolute path: `/a/b`, `C:\a`, or a share (`\\server\share\a`). `None` for anything else.
pub fn of_path(path: &str) -> Option<String> {
    let encoded = |path: &str| utf8_percent_encode(&path.replace('\\', "/"), KEPT).to_string();
    if let Some(share) = path.strip_prefix(r"\\") {
        return Some(format!("file://{}", encoded(share)));
    }
    match path.as_bytes() {
        [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic() => {
            Some(format!("file:///{}:{}", &path[..1], encoded(&path[2..])))
        }
        // Two slashes would name a server.
        [b'/', ..] => Some(format!("file:///{}", utf8_percent_encode(path.trim_start_matches('/'), KEPT))),
        _ => None,
    }
}

/// The path that a `file:` URI names. `None` for any other URI.
pub fn to_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file:")?;
    let (server, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (server, path) = (decoded(server), decoded(path));
    if !server.is_empty() && server != "localhost" {
        return Some(format!(r"\\{server}{}", path.replace('/', r"\")));
    }
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => Some(path[1..].replace('/', r"\")),
        _ => Some(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_server_and_not_two_slashes() {
        for (path, uri) in [
            ("/a b/c", "file:///a%20b/c"),
            ("/", "file:///"),
            (r"\\server\share\x y", "file://server/share/x%20y"),
            (r"C:\Users\me", "file:///C:/Users/me"),
        ] {
            assert_eq!(of_path(path).as_deref(), Some(uri));
            assert_eq!(to_path(uri).as_deref(), Some(path));
        }
        assert_eq!(of_path("//server/share").as_deref(), Some("file:///server/share"), "a path of this system");
        assert_eq!(to_path("file://localhost/a").as_deref(), Some("/a"));
        for other in ["a/b", "", "https://x/y", "C:", "C:a"] {
            assert_eq!(of_path(other), None, "{other}");
        }
        assert_eq!(to_path("https://x/y"), None);
    }
}
