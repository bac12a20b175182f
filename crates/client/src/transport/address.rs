//! Addresses of hosts in text form.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use grove_checks::Check;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use tokio_tungstenite::tungstenite::http::Uri;

/// The maximum length of an address.
const MAX_BYTES: usize = 2_048;
/// Characters that must be escaped in the path of an address.
const IN_PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'%').add(b'&');

/// The address of a host. `Display` writes the same form that is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// `ws://HOST[:PORT][/PATH]`: on this machine, or on a trusted network.
    Plain(Uri),
    /// `wss://HOST[:PORT][/PATH]`: the same through TLS.
    Tls(Uri),
    /// `unix:PATH`: a socket of this machine.
    Unix(PathBuf),
    /// `ssh://[USER@]HOST[:PORT][/DATA-FOLDER][?grove=PROGRAM]`: the host of that folder on another machine.
    Ssh(SshAddress),
}

/// A host behind SSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshAddress {
    pub user: Option<String>,
    /// A host name, an address, or an alias of SSH's configuration.
    pub host: String,
    pub port: Option<u16>,
    /// The data folder on that machine; `None`: the default one.
    pub data_dir: Option<String>,
    /// The program on that machine; `None`: `grove` in its `PATH`.
    pub grove: Option<String>,
}

/// An invalid address of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("{0:?} is not an address of a host: use ws://…, wss://…, unix:/path or ssh://[user@]machine")]
    Form(String),
    #[error("an address must not contain a token: leave out everything after the `?`, and give the token separately")]
    Query,
    #[error("{0:?} is not the path of a socket: it must begin with a slash")]
    SocketPath(String),
    #[error("an address is at most {MAX_BYTES} bytes long")]
    TooLong,
}

impl FromStr for HostAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(AddressError::TooLong);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return match Path::new(path).is_absolute() && !path.contains('\0') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err(AddressError::SocketPath(path.to_owned())),
            };
        }
        if let Some(rest) = text.strip_prefix("ssh://") {
            return parse_ssh(rest).map(Self::Ssh).ok_or_else(|| AddressError::Form(text.to_owned()));
        }
        let url = parse_url(text).ok_or_else(|| AddressError::Form(text.to_owned()))?;
        if url.query().is_some() {
            return Err(AddressError::Query);
        }
        Ok(if url.scheme_str() == Some("wss") { Self::Tls(url) } else { Self::Plain(url) })
    }
}

/// Parses the URL of a WebSocket.
pub(super) fn parse_url(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    let is_web = matches!(url.scheme_str(), Some("ws" | "wss"));
    // Text before an `@` would be a secret, which is not supported.
    let plain = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    (is_web && plain && url.host().is_some_and(|host| !host.is_empty())).then_some(url)
}

fn parse_ssh(rest: &str) -> Option<SshAddress> {
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, data_dir) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    let (user, machine) = authority.rsplit_once('@').map_or((None, authority), |(user, rest)| (Some(user), rest));
    let (host, port) = match machine.strip_prefix('[') {
        Some(inside) => {
            let (host, behind) = inside.split_once(']')?;
            (host, (!behind.is_empty()).then(|| behind.strip_prefix(':')))
        }
        None => machine.split_once(':').map_or((machine, None), |(host, port)| (host, Some(Some(port)))),
    };
    let port: Option<u16> = match port {
        None => None,
        Some(port) => Some(port?.parse().ok().filter(|port| *port > 0)?),
    };
    let text = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        (!text.chars().any(char::is_control)).then_some(text)
    };
    let data_dir = match data_dir.filter(|path| *path != "/") {
        Some(path) => Some(text(path)?),
        None => None,
    };
    let grove = match query {
        // It would be parsed as an option, or be empty.
        Some(query) => Some(text(query.strip_prefix("grove=")?).filter(|grove| is_word(grove))?),
        None => None,
    };
    let (user, host) = (user.map(str::to_owned), host.to_owned());
    // A word that begins with a dash would be an option of ssh.
    let fits = is_name(&host) && user.as_deref().is_none_or(is_name);
    fits.then_some(SshAddress { user, host, port, data_dir, grove })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && (!Check::SshOptions.is_enforced() || !text.starts_with('-'))
}

fn is_name(text: &str) -> bool {
    is_word(text) && text.chars().all(|letter| letter.is_alphanumeric() || "-._~:%".contains(letter))
}

impl HostAddress {
    /// Says whether others can read the traffic on its way: it is not encrypted, and leaves this machine.
    pub fn is_readable_by_others(&self) -> bool {
        let HostAddress::Plain(url) = self else { return false };
        let host = url.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        Check::PlainAddress.is_enforced()
            && !host.eq_ignore_ascii_case("localhost")
            && !address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostAddress::Plain(url) | HostAddress::Tls(url) => url.fmt(f),
            HostAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            HostAddress::Ssh(ssh) => ssh.fmt(f),
        }
    }
}

impl fmt::Display for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(data_dir) = &self.data_dir {
            write!(f, "{}", utf8_percent_encode(data_dir, IN_PATH))?;
        }
        if let Some(grove) = &self.grove {
            write!(f, "?grove={}", utf8_percent_encode(grove, IN_PATH))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<HostAddress, AddressError> {
        text.parse()
    }

    #[test]
    fn what_is_neither_encrypted_nor_stays_on_this_machine_can_be_read_by_others() {
        let is_readable = |text: &str| parse(text).unwrap().is_readable_by_others();
        for address in ["ws://203.0.113.7:7777/", "ws://lab.example/", "ws://10.0.0.1/", "ws://[2001:db8::1]:1/"] {
            assert!(is_readable(address), "{address}");
        }
        for address in [
            "ws://127.0.0.1:1/",
            "ws://127.9.9.9/",
            "ws://LocalHost:1/",
            "ws://[::1]:1/",
            "wss://lab.example/",
            "ssh://lab",
        ] {
            assert!(!is_readable(address), "{address}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in [
            "ws://127.0.0.1:7000/ws",
            "wss://lab.example:7443/",
            "wss://[::1]:7443/ws",
            "unix:/run/grove/host.sock",
            "ssh://dev-box",
            "ssh://me@dev-box:2222/srv/my%20grove",
            "ssh://me@[fe80::1]:22",
            "ssh://dev-box?grove=/opt/grove/bin/grove",
            "ssh://dev-box/data?grove=/opt/a%20b",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        let HostAddress::Ssh(ssh) = parse("ssh://me@dev-box:2222/srv/my%20grove").unwrap() else { panic!("no ssh") };
        assert_eq!(
            (ssh.user.as_deref(), ssh.host.as_str(), ssh.port, ssh.data_dir.as_deref()),
            (Some("me"), "dev-box", Some(2222), Some("/srv/my grove"))
        );
        assert_eq!(parse("ssh://dev-box/").unwrap(), parse("ssh://dev-box").unwrap());
    }

    #[test]
    fn what_is_no_address_is_refused_and_what_would_be_an_option_as_well() {
        for text in [
            "",
            "dev-box",
            "http://127.0.0.1:7000",
            "ws://",
            "wss://user:secret@lab",
            "ssh://",
            "ssh://-oProxyCommand=evil",
            "ssh://-l@host",
            "ssh://host name",
            "ssh://host:0",
            "ssh://host:99999",
            "ssh://host:",
            "ssh://[::1]22",
            "ssh://host/a%0ab",
            "ssh://host?grove=-x",
            "ssh://host?other=1",
            "ssh://a;b",
        ] {
            assert!(matches!(parse(text), Err(AddressError::Form(_))), "{text}: {:?}", parse(text));
        }
        assert_eq!(parse("ws://h/ws?tkn=secret"), Err(AddressError::Query));
        assert_eq!(parse("unix:host.sock"), Err(AddressError::SocketPath("host.sock".to_owned())));
        assert_eq!(parse(&format!("ws://{}", "a".repeat(3_000))), Err(AddressError::TooLong));
    }
}
