//! The administration of a running host by its clients: agents, other hosts, permission rules, settings.
//!
//! It does what `grove agents`, `grove hosts`, `grove policy` and `grove config` do, with the same code.

pub(crate) mod agents;
pub(crate) mod hosts;
pub(crate) mod installation;
mod refusal;
pub(crate) mod rules;
mod settings;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use grove_host::Host;
use grove_host::administration::{AdministrationRefusal, HostAdministration};
use grove_wire::x_grove::administration::{AdministrationCall, AdministrationOutcome};

use self::agents::AgentAdministration;
use self::hosts::HostListAdministration;
use self::refusal::{failed, joined};
use self::rules::RuleAdministration;
use crate::agents::backends::Backends;
use crate::policy_files::PolicyFiles;
use crate::settings::Settings;

/// Reads the current settings of the host.
pub(crate) type SettingsLoader = Arc<dyn Fn() -> Result<Settings> + Send + Sync>;

/// The administration of the host of this process.
pub(crate) struct ProgramAdministration {
    load: SettingsLoader,
    agents: AgentAdministration,
    hosts: HostListAdministration,
    rules: RuleAdministration,
}

impl ProgramAdministration {
    pub(crate) fn new(host: &Host, backends: Arc<Backends>, rules: Arc<PolicyFiles>, load: SettingsLoader) -> Self {
        Self {
            agents: AgentAdministration::new(host.downgrade(), backends, load.clone()),
            hosts: HostListAdministration::new(host.downgrade()),
            rules: RuleAdministration::new(rules),
            load,
        }
    }

    /// The current settings, read on a thread that may wait for the disk.
    async fn settings(&self) -> Result<Arc<Settings>, AdministrationRefusal> {
        let load = self.load.clone();
        let loaded = tokio::task::spawn_blocking(move || load()).await.map_err(joined)?;
        loaded.map(Arc::new).map_err(|error| failed(format!("{error:#}")))
    }
}

impl fmt::Debug for ProgramAdministration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramAdministration")
    }
}

#[async_trait]
impl HostAdministration for ProgramAdministration {
    async fn call(&self, call: AdministrationCall) -> Result<AdministrationOutcome, AdministrationRefusal> {
        use AdministrationCall as Call;
        use AdministrationOutcome as Outcome;
        // These need no settings.
        let call = match call {
            Call::InstallStatus(params) => return Ok(Outcome::InstallStatus(self.agents.install_status(&params))),
            Call::CancelInstall => return Ok(Outcome::InstallCancelled(self.agents.cancel_install())),
            call => call,
        };
        let settings = self.settings().await?;
        let data_dir = &settings.data_dir.value;
        Ok(match call {
            Call::InstallStatus(_) | Call::CancelInstall => Outcome::Done {},
            Call::ListAgents => Outcome::Agents(self.agents.list(&settings).await?),
            Call::CheckAgents(params) => Outcome::Agents(self.agents.check(&settings, params).await?),
            Call::PlanInstall(params) => Outcome::InstallPlan(self.agents.plan_install(&settings, &params).await?),
            Call::Install(params) => Outcome::InstallStatus(self.agents.install(settings, &params).await?),
            Call::LogIn(params) => {
                self.agents.log_in(&settings, &params).await?;
                Outcome::Done {}
            }
            Call::ListHosts => Outcome::Hosts(self.hosts.list(data_dir).await?),
            Call::CheckHosts(params) => Outcome::Hosts(self.hosts.check(data_dir, params).await?),
            Call::AddHost(params) => Outcome::HostAdded(self.hosts.add(data_dir, params).await?),
            Call::RemoveHost(params) => Outcome::HostRemoved(self.hosts.remove(data_dir, params).await?),
            Call::Rules(params) => Outcome::Rules(self.rules.list(&settings, params).await?),
            Call::CheckRules(params) => Outcome::Verdict(self.rules.check(params).await?),
            Call::TestRules(params) => Outcome::Test(self.rules.test(settings, params).await?),
            Call::SuggestRules(params) => Outcome::Suggestions(self.rules.suggest(settings, params).await?),
            Call::AddRules(params) => Outcome::RulesChanged(self.rules.add(&settings, params).await?),
            Call::RemoveRule(params) => Outcome::RulesChanged(self.rules.remove(&settings, params).await?),
            Call::ListSettings => Outcome::Settings(settings::list(&settings)?),
        })
    }
}
