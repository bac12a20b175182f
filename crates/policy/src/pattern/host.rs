//! Hosts of URLs.

use super::{PatternError, require_bounds};

/// A pattern of a host: an exact name, `*.example.com` for all names below it, or `*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    text: String,
}

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        require_bounds(text)?;
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_name = text == "*" || name.starts_with('[') && is_host(name) || !name.is_empty() && is_host(name);
        match is_name {
            true => Ok(Self { text: text.to_ascii_lowercase() }),
            false => Err(PatternError::Host(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Says whether the pattern covers a host in lower case.
    pub fn matches(&self, host: &str) -> bool {
        match self.text.strip_prefix("*.") {
            Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => self.text == "*" || self.text == host,
        }
    }
}

fn is_host(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        return !address.is_empty() && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
    }
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    name.split('.').all(is_label)
}

/// The host of an `http` or `https` URL in lower case; `None` if programs could read the URL differently.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_doubtful = |c: char| !c.is_ascii_graphic() || c == '\\';
    if authority.contains('@') || url.chars().any(is_doubtful) {
        return None;
    }
    let host = match authority.rfind(']') {
        Some(end) => {
            let (host, port) = authority.split_at(end + 1);
            (port.is_empty() || is_port(port)).then_some(host)?
        }
        None => match authority.split_once(':') {
            Some((host, port)) => port.chars().all(|c| c.is_ascii_digit()).then_some(host)?,
            None => authority,
        },
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    is_host(&host).then_some(host)
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_only_without_doubt() {
        for (url, host) in [
            ("https://Docs.RS/a?b#c", Some("docs.rs")),
            ("http://example.com:8080", Some("example.com")),
            ("https://example.com.", Some("example.com")),
            ("https://[::1]:80/x", Some("[::1]")),
            ("https://example.com@evil.net/", None),
            ("https://example.com\\@evil.net/", None),
            ("https://exa%6dple.com/", None),
            ("https://exämple.com/", None),
            ("file:///etc/passwd", None),
            ("example.com", None),
            ("https:///x", None),
            ("https://a b/", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn a_wildcard_covers_names_below_and_not_the_name_itself() {
        let below = HostPattern::parse("*.Example.com").unwrap();
        assert!(below.matches("docs.example.com") && below.matches("a.b.example.com"));
        assert!(!below.matches("example.com") && !below.matches("evilexample.com") && !below.matches(".example.com"));
        let exact = HostPattern::parse("example.com").unwrap();
        assert!(exact.matches("example.com") && !exact.matches("docs.example.com"));
        for wrong in ["", "https://example.com", "a..b", "*a.com", "*."] {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
