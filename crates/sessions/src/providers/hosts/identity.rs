//! The identity of a provider's host, which makes the names of its sessions differ from those of other hosts.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::ids::{BadId, Icon, ProviderId, SessionId, Uri};
use crate::metadata::Metadata;
use crate::provider::ProviderEnvironment;

/// The id of this host's provider.
pub const THIS_HOST: &str = "local-agent-host";

/// The identity of a provider's host.
///
/// Two hosts may have sessions under the same URI, and one list must distinguish them. So a session and its chats have
/// the host's URI here with a prefix for the host: `agent-host-claude:/1` on this host, `remote-<authority>-claude:/1`
/// on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostIdentity {
    pub(super) id: ProviderId,
    pub(super) label: Arc<str>,
    /// The name of another host in labels. This one has none.
    pub(super) name: Option<Arc<str>>,
    prefix: String,
}

impl HostIdentity {
    /// This host.
    pub fn this_host(label: impl Into<Arc<str>>) -> Result<Self, BadId> {
        Ok(Self { id: ProviderId::new(THIS_HOST)?, label: label.into(), name: None, prefix: "agent-host-".to_owned() })
    }

    /// Another host, by its address and its name for people.
    pub fn other_host(address: &str, name: impl Into<Arc<str>>) -> Result<Self, BadId> {
        let authority = authority(address);
        let name = name.into();
        Ok(Self {
            id: ProviderId::new(format!("agenthost-{authority}"))?,
            label: name.clone(),
            name: Some(name),
            prefix: format!("remote-{authority}-"),
        })
    }

    /// The id of its provider.
    pub fn id(&self) -> &ProviderId {
        &self.id
    }

    /// The host's own URI of a session or chat.
    pub fn host_uri<'a>(&self, uri: &'a Uri) -> Option<&'a str> {
        uri.as_str().strip_prefix(&self.prefix)
    }

    /// The URI here for a URI of the host.
    pub fn here(&self, host_uri: &str) -> Uri {
        Uri::from(format!("{}{host_uri}", self.prefix))
    }

    pub(super) fn session(&self, host_uri: &str) -> Result<SessionId, BadId> {
        self.id.session(self.here(host_uri).as_str())
    }

    /// The host's own URI of a session with an id.
    pub(super) fn session_on_host<'a>(&self, id: &'a SessionId) -> Option<&'a str> {
        if id.provider() != self.id.as_str() {
            return None;
        }
        id.local().strip_prefix(&self.prefix)
    }

    pub(super) fn environment(&self) -> ProviderEnvironment {
        match &self.name {
            None => ProviderEnvironment::ThisHost,
            Some(name) => ProviderEnvironment::OtherHost(name.clone()),
        }
    }

    pub(super) fn icon(&self) -> Icon {
        Icon::from(if self.name.is_none() { "vm" } else { "remote" })
    }

    /// This host comes before everything else.
    pub(super) fn order(&self) -> i32 {
        if self.name.is_none() { -1 } else { 0 }
    }

    /// The label of an agent: with its host, if that is another one.
    pub(super) fn agent_label(&self, agent: &str) -> Arc<str> {
        match &self.name {
            None => agent.into(),
            Some(name) => format!("{agent} [{name}]").into(),
        }
    }

    /// The metadata of a session in a folder of the host.
    pub(super) fn metadata(&self, folder: Option<&str>) -> Metadata {
        let metadata = folder.map(Metadata::local).unwrap_or_default();
        match &self.name {
            None => metadata,
            Some(name) => metadata.with(crate::metadata::REMOTE_AGENT_HOST, name.as_ref()),
        }
    }
}

/// An address as a part of names: plain ones stay as they are, ports are separated by `__`, others are encoded.
fn authority(address: &str) -> String {
    let made_of = |more: &[u8]| {
        !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    if made_of(b"") {
        address.to_owned()
    } else if made_of(b".:-") {
        address.replace(':', "__")
    } else {
        format!("b64-{}", BASE64_URL_SAFE_NO_PAD.encode(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_the_id_of_its_provider() {
        let cases = [
            ("devbox", "agenthost-devbox"),
            ("dev-box.example.org:8080", "agenthost-dev-box.example.org__8080"),
            ("ws://a/ws", "agenthost-b64-d3M6Ly9hL3dz"),
            ("", "agenthost-b64-"),
        ];
        for (address, id) in cases {
            assert_eq!(HostIdentity::other_host(address, "x").unwrap().id().as_str(), id, "{address}");
        }
        assert_eq!(HostIdentity::this_host("Grove").unwrap().id().as_str(), THIS_HOST);
    }

    #[test]
    fn the_same_session_of_two_hosts_has_two_names_and_each_leads_back() {
        let (a, b) = (HostIdentity::this_host("Grove").unwrap(), HostIdentity::other_host("box:1", "box").unwrap());
        assert_eq!(a.here("claude:/1").as_str(), "agent-host-claude:/1");
        assert_eq!(b.here("claude:/1").as_str(), "remote-box__1-claude:/1");
        for host in [&a, &b] {
            let session = host.session("claude:/1").unwrap();
            assert_eq!(host.session_on_host(&session), Some("claude:/1"));
            assert_eq!(host.host_uri(&host.here("claude:/1")), Some("claude:/1"));
        }
        assert_eq!(b.session_on_host(&a.session("claude:/1").unwrap()), None);
    }
}
