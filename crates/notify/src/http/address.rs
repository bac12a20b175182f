//! Addresses that the host sends to. The address of a push service comes from a client, so it could lead the host into
//! the private network that it is in: only addresses of the internet are used, unless the host's owner allows others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use grove_checks::Check;
use http::Uri;
use http::uri::Scheme;

/// The longest address, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;
/// The port of push services.
const HTTPS_PORT: u16 = 443;

/// The machines that an address may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Machines of the internet, over TLS and at the usual port.
    Public,
    /// Every machine over TLS, and this one also without.
    Private,
}

/// An address that was checked for its form. Its machine is checked when it is resolved.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetUrl {
    uri: Uri,
    text: String,
    host: String,
    port: u16,
    reach: Reach,
}

/// An address is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("the address must begin with https:// and name a machine, in at most {MAX_URL_BYTES} bytes")]
    Form,
    #[error(
        "the address must be one of the internet, at port 443: the host's setting `allow-private-push` allows others"
    )]
    Private,
}

impl TargetUrl {
    /// Reads an address.
    pub fn read(text: &str, reach: Reach) -> Result<Self, UrlError> {
        let is_plain = text.len() <= MAX_URL_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || text.contains('#') {
            return Err(UrlError::Form);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Form)?;
        let authority = uri.authority().ok_or(UrlError::Form)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(UrlError::Form);
        }
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let is_local_http = uri.scheme() == Some(&Scheme::HTTP) && is_loopback(&host) && reach == Reach::Private;
        if !is_https && !is_local_http {
            return Err(UrlError::Form);
        }
        // No name, no port: `https://a:`, `https://a:99999`.
        let port = match authority.as_str().rsplit_once(':') {
            Some((_, port)) if !port.contains(']') => port.parse().map_err(|_| UrlError::Form)?,
            _ if is_https => HTTPS_PORT,
            _ => 80,
        };
        let url = Self { uri, text: text.to_owned(), host, port, reach };
        let literal = url.host.parse::<IpAddr>().ok();
        let is_refused = port != HTTPS_PORT || literal.is_some_and(|address| !is_public(address));
        match reach == Reach::Public && is_refused && Check::PushAddress.is_enforced() {
            true => Err(UrlError::Private),
            false => Ok(url),
        }
    }

    /// Says whether the address may lead to this machine.
    pub fn allows(&self, address: IpAddr) -> bool {
        match self.reach {
            Reach::Public => is_public(address) || !Check::PushAddress.is_enforced(),
            Reach::Private if self.is_https() => true,
            Reach::Private => address.is_loopback(),
        }
    }

    pub fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// The name or the number of the machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, machine and port, as in the signature of a message.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// The header `Host`.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", http::uri::Authority::as_str)
    }

    /// The path with its query.
    pub fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

// The path of a push service is a secret of the device.
impl fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetUrl({}/…)", self.origin())
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Says whether an address is one of the internet: none of this machine, of a private network or of a special use.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match (first, second, third) {
        // This network, loopback, and everything from multicast on.
        (0 | 127 | 224.., _, _) => true,
        // Networks behind a carrier's or a VPN's translation (RFC 6598).
        (100, 64..=127, _) => true,
        // Protocol assignments, examples, relays to IPv6, and benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    !(is_special || address.is_private() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // An address of IPv4 in one of its forms: mapped, or translated by NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        // 6to4 has it behind its prefix.
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Teredo, benchmarks, overlays and examples.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // The only range that is given to the internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.1.0.1"]
            .into_iter()
            .chain(["2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"])
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in
            ["127.0.0.1", "127.255.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"]
                .into_iter()
                .chain([
                    "100.64.0.1",
                    "100.127.255.255",
                    "192.0.0.8",
                    "192.0.2.1",
                    "198.18.0.1",
                    "224.0.0.1",
                    "255.255.255.255",
                ])
                .chain([
                    "::",
                    "::1",
                    "fe80::1",
                    "fc00::1",
                    "fd12::1",
                    "fec0::1",
                    "ff02::1",
                    "::ffff:127.0.0.1",
                    "::127.0.0.1",
                ])
                .chain([
                    "64:ff9b::7f00:1",
                    "64:ff9b:1::1",
                    "2002:7f00:1::1",
                    "2002:c0a8:101::1",
                    "2001::1",
                    "2001:db8::1",
                ])
        {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn a_device_cannot_make_the_host_reach_into_its_own_network() {
        for refused in [
            "https://127.0.0.1/x",
            "https://[::1]/x",
            "https://10.0.0.1/x",
            "https://[::ffff:192.168.0.1]/x",
            "https://push.example:22/x",
            "https://push.example:8443/x",
        ] {
            assert_eq!(TargetUrl::read(refused, Reach::Public), Err(UrlError::Private), "{refused}");
            TargetUrl::read(refused, Reach::Private).unwrap();
        }
        // A name says nothing: its addresses count, once they are known.
        let named = TargetUrl::read("https://localhost/x", Reach::Public).unwrap();
        assert!(!named.allows([127, 0, 0, 1].into()) && !named.allows([169, 254, 169, 254].into()));
        assert!(named.allows([8, 8, 8, 8].into()));
    }

    #[test]
    fn an_address_of_another_form_is_refused() {
        let long = format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES));
        for refused in [
            "",
            "http://push.example/x",
            "ftp://push.example/x",
            "push.example",
            "/x",
            "https://",
            "https:///x",
            "https://user@push.example/x",
            "https://user:pw@push.example/x",
            "https://push.example:/x",
            "https://push.example:99999/x",
            "https://push.example/x#y",
            "https://push.example/ x",
            "https://push.example/\r\nx: y",
            "http://127.0.0.1/x",
            &long,
        ] {
            assert_eq!(TargetUrl::read(refused, Reach::Public), Err(UrlError::Form), "{refused}");
        }
        TargetUrl::read("http://10.0.0.1/x", Reach::Private).unwrap_err();
        let local = TargetUrl::read("http://127.0.0.1:8080/x?y", Reach::Private).unwrap();
        assert_eq!((local.host(), local.port(), local.path()), ("127.0.0.1", 8080, "/x?y"));
        assert!(!local.allows([10, 0, 0, 1].into()));
        let public = TargetUrl::read("https://push.example/x", Reach::Public).unwrap();
        assert_eq!((public.origin().as_str(), public.port()), ("https://push.example", 443));
        assert!(!format!("{public:?}").contains("/x"));
    }
}
