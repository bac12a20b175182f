//! Hosts of URLs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::glob::Certainty;
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
            true => Ok(Self { text: canonical(&text.to_ascii_lowercase()) }),
            false => Err(PatternError::Host(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if a host that a word only may be can be meant: `*` does not mean every word.
    pub(crate) fn may_match(&self, host: &str) -> bool {
        self.matches(host) && (self.text != "*" || host.contains(['.', ':', '[']))
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
    is_host(&host).then(|| canonical(&host))
}

/// The host in one form: an address as four decimal numbers, or as the shortest IPv6 address.
fn canonical(host: &str) -> String {
    let six = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).and_then(|host| host.parse().ok());
    let address = six.map(|six: Ipv6Addr| match six.to_ipv4_mapped() {
        Some(four) => four.to_string(),
        None => format!("[{six}]"),
    });
    address.or_else(|| numeric_address(host).map(|four| four.to_string())).unwrap_or_else(|| host.to_owned())
}

/// The address that programs read from one to four numbers: decimal, octal or hexadecimal.
pub(crate) fn numeric_address(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse().ok())?,
    };
    let mut numbers = host.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let last = numbers.pop()?;
    let is_byte = |number: &u32| *number < 256;
    if numbers.len() > 3 || !numbers.iter().all(is_byte) {
        return None;
    }
    let room = 32 - 8 * u32::try_from(numbers.len()).ok()?;
    let high = numbers.iter().zip([24, 16, 8]).fold(0, |sum, (number, shift)| sum | number << shift);
    (u64::from(last) < 1 << room).then(|| Ipv4Addr::from(high | last))
}

/// The hosts that a text of a command names, and how certainly. `None` is a host that cannot be read.
pub(crate) fn hosts_in(text: &str) -> Vec<(Option<String>, Certainty)> {
    let text = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = match authority.split_once('@') {
            Some((_, host)) => host_of(&format!("http://{host}")),
            None => host_of(&format!("http://{authority}")),
        };
        let certainty = if host.is_some() { Certainty::Yes } else { Certainty::Maybe };
        // "file:///x" names no host.
        if !authority.is_empty() {
            found.push((host, certainty));
        }
    }
    for device in ["/dev/tcp/", "/dev/udp/"] {
        for (at, _) in text.match_indices(device) {
            let name = text[at + device.len()..].split('/').next().unwrap_or_default();
            found.push((host_of(&format!("http://{name}")), Certainty::Maybe));
        }
    }
    if found.is_empty() {
        found.extend(bare_host(&text));
    }
    found
}

/// The host of a text without a scheme, which a program may take for a URL.
fn bare_host(text: &str) -> Vec<(Option<String>, Certainty)> {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match authority.rfind(']') {
        Some(end) => authority.split_at(end + 1),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    // A small number is hardly an address.
    let is_small = !name.contains('.') && numeric_address(name).is_some_and(|four| four.octets()[0] == 0);
    let Some(host) = host_of(&format!("http://{name}")).filter(|_| !is_small) else { return Vec::new() };
    // With its port, a name without a dot is one for "*" too.
    let with_port = is_port(port).then(|| (Some(format!("{host}{port}")), Certainty::Maybe));
    [(Some(host), Certainty::Maybe)].into_iter().chain(with_port).collect()
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
            ("http://2852039166/", Some("169.254.169.254")),
            ("http://0xa9fea9fe/", Some("169.254.169.254")),
            ("http://0251.0376.0251.0376/", Some("169.254.169.254")),
            ("http://127.1/", Some("127.0.0.1")),
            ("http://[::ffff:169.254.169.254]/", Some("169.254.169.254")),
            ("http://[0:0:0:0:0:0:0:1]/", Some("[::1]")),
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
