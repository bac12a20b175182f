//! Services that the program passes to the host.

use std::sync::{Arc, PoisonError};

use grove_work::{WatchError, WatchLimits, Watcher};

use super::Host;
use crate::administration::HostAdministration;
use crate::agent_processes::{AgentProcesses, AgentRoot};
use crate::client_hooks::ClientHookRegistry;
use crate::history::History;
use crate::hooks::Hook;
use crate::notifications::NotificationService;
use crate::policy::PermissionRules;
use crate::session_hub::SessionHubService;
use crate::tokens::TokenRegistry;
use crate::trust::FolderTrust;

impl Host {
    /// Adds a hook that is called for changes of sessions' trees.
    pub fn add_hook(&self, hook: Arc<dyn Hook>) {
        self.0.hooks.add(hook);
    }

    /// The clients that have hooks for sessions.
    pub fn client_hooks(&self) -> &Arc<ClientHookRegistry> {
        &self.0.client_hooks
    }

    /// Sets the history of other tools' sessions for clients that ask for it. Only the first call has an effect.
    pub fn set_history(&self, history: Arc<dyn History>) {
        if self.0.history.set(history).is_err() {
            tracing::warn!("a host has one history: the second one is not used");
        }
    }

    /// The sessions of other tools, if the host has a history.
    pub fn history(&self) -> Option<&Arc<dyn History>> {
        self.0.history.get()
    }

    /// Sets the hub that lists the sessions of all sources. Only the first call has an effect.
    pub fn set_session_hub(&self, hub: Arc<dyn SessionHubService>) {
        if self.0.session_hub.set(hub).is_err() {
            tracing::warn!("a host has one session hub: the second one is not used");
        }
    }

    /// The hub that lists the sessions of all sources, if the host has one.
    pub fn session_hub(&self) -> Option<&Arc<dyn SessionHubService>> {
        self.0.session_hub.get()
    }

    /// Lets clients administer the host. Only the first call has an effect.
    pub fn set_administration(&self, administration: Arc<dyn HostAdministration>) {
        if self.0.administration.set(administration).is_err() {
            tracing::warn!("a host has one administration: the second one is not used");
        }
    }

    /// The administration of the host, if clients may use one.
    pub fn administration(&self) -> Option<&Arc<dyn HostAdministration>> {
        self.0.administration.get()
    }

    /// Sets the registry of named tokens. Only the first call has an effect.
    pub fn set_tokens(&self, tokens: TokenRegistry) {
        if self.0.tokens.set(tokens).is_err() {
            tracing::warn!("a host has one registry of tokens: the second one is not used");
        }
    }

    /// The registry of named tokens, if the host has one.
    pub fn tokens(&self) -> Option<&TokenRegistry> {
        self.0.tokens.get()
    }

    /// Lets clients read and change which folders are trusted.
    pub fn set_trust(&self, trust: Arc<dyn FolderTrust>) {
        if self.0.trust.set(trust).is_err() {
            tracing::warn!("a host has one list of trusted folders: the second one is not used");
        }
    }

    /// The trusted folders, if the host manages them.
    pub fn trust(&self) -> Option<&Arc<dyn FolderTrust>> {
        self.0.trust.get()
    }

    /// Lets the host recognize the processes of agents. Only the first call has an effect.
    pub fn set_agent_processes(&self, processes: Arc<dyn AgentProcesses>) {
        if self.0.agent_processes.set(processes).is_err() {
            tracing::warn!("a host knows agents' processes from one place: the second one is not used");
        }
    }

    /// The processes below which everything belongs to an agent.
    pub fn agent_roots(&self) -> Vec<AgentRoot> {
        self.0.agent_processes.get().map(|processes| processes.roots()).unwrap_or_default()
    }

    /// Sets the rules that answer permission requests. Only the first call has an effect.
    pub fn set_permission_rules(&self, rules: Arc<dyn PermissionRules>) {
        if self.0.permission_rules.set(rules).is_err() {
            tracing::warn!("a host has one source of permission rules: the second one is not used");
        }
    }

    /// The rules that answer permission requests, if the host has any.
    pub fn permission_rules(&self) -> Option<&Arc<dyn PermissionRules>> {
        self.0.permission_rules.get()
    }

    /// Sets the service that tells people's devices when an agent needs them. Only the first call has an effect.
    pub fn set_notifications(&self, notifications: Arc<dyn NotificationService>) {
        if self.0.notifications.set(notifications).is_err() {
            tracing::warn!("a host has one notification service: the second one is not used");
        }
    }

    /// The service that tells people's devices, if the host has one.
    pub fn notifications(&self) -> Option<&Arc<dyn NotificationService>> {
        self.0.notifications.get()
    }

    /// The file watcher, started when it is first needed.
    pub fn watcher(&self) -> Result<Watcher, WatchError> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        let mut watcher = self.0.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = &*watcher {
            return Ok(watcher.clone());
        }
        let (started, reader) = Watcher::start(WatchLimits::default())?;
        self.0.env.spawn.spawn(Box::pin(reader.run()));
        Ok(watcher.insert(started).clone())
    }
}
