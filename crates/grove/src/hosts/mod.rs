//! Other hosts that are known by name: their addresses and credentials.
//!
//! [`all_hosts`] returns them; each has an endpoint for `client`. They are stored in `hosts.toml` in the data folder
//! ([`mod@file`]), which contains tokens and is therefore private to its owner. [`probe()`] determines the state of
//! one. [`directory`] gives them to the session hub, with the cached sessions of each ([`session_cache`]); [`lists()`]
//! asks all of them through it. [`host_address`] names the host that a session was moved to.

mod directory;
pub(crate) mod file;
mod host_address;
mod probe;
pub(crate) mod session_cache;

use std::path::{Path, PathBuf};

use grove_client::{AddressError, Credentials, Endpoint, EndpointError, FingerprintError, HostAddress};
use grove_session_hub::RemoteHost;

pub(crate) use directory::{HostsFile, lists};
pub(crate) use file::{add, remove};
pub(crate) use host_address::{Destination, own_address};
pub(crate) use probe::{HostProbe, probe, shown_certificate};

/// The variable that names the program to run as `ssh`.
const SSH: &str = "GROVE_SSH";
/// The name of the data folder's host. It is reserved.
pub(crate) const LOCAL: &str = "local";
/// The maximum length of a name.
pub(crate) const NAME: usize = 40;

/// A host with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownHost {
    pub(crate) name: String,
    pub(crate) address: HostAddress,
    pub(crate) access: Credentials,
}

impl KnownHost {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::new(&self.address, &self.access())
    }

    /// The host as the session hub knows it.
    pub(crate) fn remote(&self) -> RemoteHost {
        RemoteHost { name: self.name.clone(), address: self.address.clone(), access: self.access() }
    }

    /// The credentials for a client, with the program that runs as `ssh`.
    fn access(&self) -> Credentials {
        let ssh = self.access.ssh.clone().or_else(|| std::env::var_os(SSH).filter(|ssh| !ssh.is_empty()));
        Credentials { ssh, ..self.access.clone() }
    }
}

/// All hosts of the file.
#[derive(Debug, Default)]
pub(crate) struct KnownHosts {
    /// The usable hosts, by name.
    pub(crate) hosts: Vec<KnownHost>,
    /// The unusable hosts. They do not affect the others.
    pub(crate) unusable: Vec<UnusableHost>,
}

/// An unusable host of the file.
#[derive(Debug)]
pub(crate) struct UnusableHost {
    pub(crate) name: String,
    /// The reason, and what to do.
    pub(crate) error: HostsError,
}

/// An error of the list of hosts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error("{} cannot be {}: {error}", .path.display(), .what)]
    File { path: PathBuf, what: &'static str, error: std::io::Error },
    #[error("{} is larger than {most} bytes: it is not a list of hosts", .path.display())]
    TooLarge { path: PathBuf, most: u64 },
    #[error("{} is damaged: {error}", .path.display())]
    Damaged { path: PathBuf, error: toml::de::Error },
    #[error("{}: {name:?} cannot be used ({why}): correct or delete it there", .path.display())]
    Table { path: PathBuf, name: String, why: String },
    #[error("{}: the address of {name:?} is invalid: {error}", .path.display())]
    Address { path: PathBuf, name: String, error: AddressError },
    #[error("{}: the pin of {name:?} is invalid: {error}", .path.display())]
    Pin { path: PathBuf, name: String, error: FingerprintError },
    #[error(
        "{0:?} is no name for a host: it has 1 to {NAME} small letters, digits, `.`, `_` or `-`, begins with a letter or digit, \
         and is not {LOCAL:?}, which is the one of this data folder"
    )]
    Name(String),
    #[error("{0:?} exists already: `grove hosts rm {0}` removes it")]
    Known(String),
    #[error("there can be at most {0} hosts: `grove hosts rm NAME` removes one")]
    TooMany(usize),
    #[error("cannot encode the list: {0}")]
    Encode(#[from] toml::ser::Error),
}

/// Every known host except that of the data folder, with the unusable ones.
pub(crate) fn known_hosts(data_dir: &Path) -> Result<KnownHosts, HostsError> {
    file::read(data_dir)
}

/// Every usable host except that of the data folder, by name.
pub(crate) fn all_hosts(data_dir: &Path) -> Result<Vec<KnownHost>, HostsError> {
    Ok(known_hosts(data_dir)?.hosts)
}

/// The host of this name. An unusable one is an error.
pub(crate) fn named(data_dir: &Path, name: &str) -> Result<Option<KnownHost>, HostsError> {
    let directory = known_hosts(data_dir)?;
    match directory.unusable.into_iter().find(|host| host.name == name) {
        Some(unusable) => Err(unusable.error),
        None => Ok(directory.hosts.into_iter().find(|host| host.name == name)),
    }
}

fn check_name(name: &str) -> Result<(), HostsError> {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let begins = name.starts_with(fits) && name.len() <= NAME && name != LOCAL;
    match begins && name.chars().all(|letter| fits(letter) || ".-_".contains(letter)) {
        true => Ok(()),
        false => Err(HostsError::Name(name.chars().take(2 * NAME).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_that_nobody_takes_for_something_else() {
        for name in ["dev-box", "a", "9.lab_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "local", "-x", "Dev", "a b", "a/b", "é", &"a".repeat(41)] {
            assert!(matches!(check_name(name), Err(HostsError::Name(_))), "{name}");
        }
    }
}
