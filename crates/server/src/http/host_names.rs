//! The names under which other machines may reach a host.
//!
//! A page of an attacker can have its own name resolve to the address of a host in the reader's network (DNS rebinding).
//! The browser then takes the host for the page's own server, and only the `Host` header gives it away.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::tls::Certificate;

/// The names under which a listener for other machines accepts requests.
///
/// Addresses are accepted always: no answer of a name server makes a browser send one. With a list, only the listed names
/// are accepted; without a list, those of the certificate.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    listed: Vec<String>,
    certificate: Option<Certificate>,
}

impl HostNames {
    /// These names, if there are any.
    pub fn listed(names: impl IntoIterator<Item = String>) -> Self {
        Self { listed: names.into_iter().collect(), certificate: None }
    }

    /// Accepts the names of a certificate if no names are listed.
    pub fn or_of(self, certificate: &Certificate) -> Self {
        Self { certificate: Some(certificate.clone()), ..self }
    }

    /// The name to show to people of other machines: the first listed one, or the machine's own if it is accepted.
    pub fn shown(&self, machine: &str) -> Option<String> {
        let listed = self.listed.first().cloned();
        listed.or_else(|| Some(machine.to_owned()).filter(|machine| self.accepts(machine)))
    }

    /// Says whether a `Host` header names this host. The port is free: it may be forwarded.
    pub(super) fn accepts(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        if is_address(name) || name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        match self.listed.is_empty() {
            true => self.certificate.as_ref().is_some_and(|certificate| certificate.is_for(name)),
            false => self.listed.iter().any(|listed| listed.eq_ignore_ascii_case(name)),
        }
    }
}

/// The name or address of a `Host` header; `None` if its port is none.
fn without_port(host: &str) -> Option<&str> {
    let end = host.find(']').map_or(0, |bracket| bracket + 1);
    let (name, port) = match host[end..].rfind(':') {
        Some(colon) => (&host[..end + colon], Some(&host[end + colon + 1..])),
        None => (host, None),
    };
    port.is_none_or(|port| port.parse::<u16>().is_ok()).then_some(name)
}

fn is_address(name: &str) -> bool {
    let v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.parse::<Ipv4Addr>().is_ok() || v6.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_names_and_addresses_are_accepted_with_any_port_and_nothing_else() {
        let names = HostNames::listed(["lab.example".to_owned()]);
        for host in ["lab.example", "LAB.example:7443", "10.0.0.7:1", "[fe80::1]", "[::1]:80", "localhost:7443"] {
            assert!(names.accepts(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "lab.example.evil.example",
            "evil.lab.example",
            "lab.example:port",
            "lab.example:1:2",
            "lab.example@evil.example",
            "10.0.0.7.evil.example",
            "[lab.example]",
            "fe80::1",
        ] {
            assert!(!names.accepts(host), "{host}");
        }
    }

    #[test]
    fn without_a_list_and_a_certificate_only_addresses_are_accepted() {
        let names = HostNames::default();
        assert!(names.accepts("192.168.1.4:4747") && !names.accepts("lab.example:4747"));
    }
}
