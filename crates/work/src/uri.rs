//! Paths as `file:` URIs and back.

use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::FileError;

/// The longest accepted path: the system opens no longer one, and lists carry paths.
pub const MAX_PATH_BYTES: usize = 4_096;

/// The path of an absolute path or a `file:` URI of this machine.
pub fn local_path(uri: &str) -> Result<PathBuf, FileError> {
    let refused = || FileError::NotAFileUri(uri.chars().take(200).collect());
    let path = match uri.strip_prefix("file:") {
        None => PathBuf::from(uri),
        Some(rest) => {
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            };
            PathBuf::from(percent_decode_str(path).decode_utf8().map_err(|_| refused())?.as_ref())
        }
    };
    // A path with a NUL is invalid; the system's error would be less clear.
    if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(refused());
    }
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(FileError::LongPath { beginning: uri.chars().take(200).collect(), limit: MAX_PATH_BYTES });
    }
    Ok(path)
}

/// The `file:` URI of an absolute path. [`local_path`] gives the path back if it is UTF-8.
pub fn file_uri(path: &Path) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let bytes = path.as_os_str().as_encoded_bytes();
    // Two leading slashes are one to this system, and would name a server in a URI.
    let slashes = bytes.iter().take_while(|byte| **byte == b'/').count();
    format!("file://{}", percent_encode(&bytes[slashes.saturating_sub(1)..], ENCODED))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    #[test]
    fn file_uris_and_absolute_paths_name_local_files() {
        let path = |uri: &str| local_path(uri).ok().map(|path| path.display().to_string());
        assert_eq!(path("/a/b"), Some("/a/b".into()));
        assert_eq!(path("file:///a/b%20c"), Some("/a/b c".into()));
        assert_eq!(path("file://localhost/a"), Some("/a".into()));
        assert_eq!(path("file:/a"), Some("/a".into()));
        for bad in ["a/b", "file://other/a", "http://x/a", "file:///a%00b", "file:///%ff", "", "~"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_path_comes_back_from_its_uri() {
        for path in ["/", "/a b/c", "/50%/x%20y", "/grün/#1?.txt", "/a\nb", "/~me/.x-y_z"] {
            let uri = file_uri(Path::new(path));
            assert!(uri.is_ascii() && !uri.contains([' ', '#', '?']), "{uri}");
            assert_eq!(local_path(&uri).unwrap(), Path::new(path), "{uri}");
        }
        assert_eq!(file_uri(Path::new("/a b")), "file:///a%20b");
    }

    #[test]
    fn two_slashes_in_front_of_a_path_name_no_server() {
        assert_eq!(file_uri(Path::new("//server/share")), "file:///server/share");
        assert_eq!(local_path(&file_uri(Path::new("///a"))).unwrap(), Path::new("/a"));
        assert_eq!(local_path("file://server/share").ok(), None, "a share is on another machine");
    }
}
