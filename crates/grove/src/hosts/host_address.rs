//! The location of a moved session in terms of this machine, where the host may have another name.

use std::path::Path;

use grove_client::{HostAddress, SshAddress};
use grove_wire::x_grove::handover::RemoteSession;

use super::{HostsError, LOCAL, all_hosts};
use crate::show::style::sanitize;

/// The host that a session was moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A host with this name here.
    Known(String),
    /// A host without a name here: the name that it had where the session was moved, and its address.
    Unknown { host: String, address: String },
}

impl Destination {
    pub(crate) fn of(data_dir: &Path, at: &RemoteSession) -> Result<Self, HostsError> {
        let host = sanitize(&at.host);
        let Some(address) = &at.address else { return Ok(Self::Known(host)) };
        if *address == own_address(data_dir) {
            return Ok(Self::Known(LOCAL.to_owned()));
        }
        let mut known = all_hosts(data_dir)?.into_iter().filter(|known| known.address.to_string() == *address);
        Ok(match known.next() {
            Some(known) => Self::Known(known.name),
            None => Self::Unknown { host, address: sanitize(address) },
        })
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(name) => f.write_str(name),
            Self::Unknown { host, address } => {
                write!(f, "{host} at {address}, which has no name here (`grove hosts add NAME {address}` gives it one)")
            }
        }
    }
}

/// The address of a data folder's host for other machines: the machine and the folder.
pub(crate) fn own_address(data_dir: &Path) -> String {
    let folder = std::fs::canonicalize(data_dir).or_else(|_| std::path::absolute(data_dir));
    let folder = folder.unwrap_or_else(|_| data_dir.to_owned());
    HostAddress::Ssh(SshAddress {
        user: None,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        port: None,
        data_dir: Some(folder.to_string_lossy().into_owned()),
        grove: None,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use grove_client::Credentials;

    use super::*;
    use crate::hosts::{KnownHost, add};

    #[test]
    fn a_host_is_named_as_it_is_here_and_one_without_a_name_by_its_address() {
        let data = tempfile::tempdir().unwrap();
        let host = |name: &str, address: &str| KnownHost {
            name: name.to_owned(),
            address: address.parse().unwrap(),
            access: Credentials { token: Some("secret".to_owned()), ..Credentials::default() },
        };
        add(data.path(), &host("mine", "wss://lab:7443/")).unwrap();
        add(data.path(), &host("lab", "ssh://other")).unwrap();
        let went = |host: &str, address: Option<&str>| {
            let address = address.map(str::to_owned);
            let at = RemoteSession { host: host.to_owned(), address, session: "s".to_owned(), stamp: String::new() };
            Destination::of(data.path(), &at).unwrap()
        };
        let known = |name: &str| Destination::Known(name.to_owned());
        assert_eq!(went("lab", Some("wss://lab:7443/")), known("mine"), "not the name of another host here");
        assert_eq!(went("lab", None), known("lab"));
        assert_eq!(
            went("local", Some("ssh://laptop/home/me/grove")).to_string().split(',').next(),
            Some("local at ssh://laptop/home/me/grove")
        );
        assert_eq!(went("desk", Some(&own_address(data.path()))), known(LOCAL));
    }
}
