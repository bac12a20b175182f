//! The agents: which are installed, installing them, and logging in.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use grove_agents::acp::{AcpAgent, LoginMethod};
use grove_core::AgentInfo;
use grove_host::WeakHost;
use grove_host::administration::AdministrationRefusal;
use grove_wire::x_grove::administration::agents::*;
use tokio::sync::Semaphore;

use super::SettingsLoader;
use super::installation::InstallationSlot;
use super::refusal::{failed, invalid, joined, of_command, of_installation, wrong_state};
use crate::agents::backends::Backends;
use crate::agents::install::obstacle;
use crate::agents::install::prepared::PreparedInstallation;
use crate::agents::one_shot::OneShotPool;
use crate::agents::versions::{VersionQuestion, ask_all, is_older};
use crate::agents::{AgentSource, AgentState, InstalledBy, Offer, install_advice, offers_of};
use crate::commands::agents::{installed_program, list::installer};
use crate::settings::{Settings, environment};

/// The agents that are started for a moment at a time, to be asked or to log in. Further ones wait.
pub(crate) const STARTS: usize = 2;
/// The longest id of an agent or of a method that is accepted, in bytes.
pub(crate) const MAX_ID: usize = 200;

/// The version of a program's file.
type ProgramStamp = Option<(SystemTime, u64)>;

/// A version that a program has told, and the file and the question that it is for.
type KnownVersion = (VersionQuestion, ProgramStamp, Option<String>);

pub(super) struct AgentAdministration {
    host: WeakHost,
    backends: Arc<Backends>,
    load: SettingsLoader,
    /// The versions that programs have told, by program. One entry for each agent.
    versions: Mutex<HashMap<String, KnownVersion>>,
    /// The ways to log in that agents have told, by agent.
    logins: Mutex<BTreeMap<String, Vec<LoginMethod>>>,
    installation: InstallationSlot,
    starts: Semaphore,
}

impl AgentAdministration {
    pub(super) fn new(host: WeakHost, backends: Arc<Backends>, load: SettingsLoader) -> Self {
        Self {
            host,
            backends,
            load,
            versions: Mutex::default(),
            logins: Mutex::default(),
            installation: InstallationSlot::default(),
            starts: Semaphore::new(STARTS),
        }
    }

    pub(super) async fn list(&self, settings: &Arc<Settings>) -> Result<AgentsResult, AdministrationRefusal> {
        let looked = settings.clone();
        let offers = move || offers_of(&looked, &search_path(), &environment());
        let offers = tokio::task::spawn_blocking(offers).await.map_err(joined)?;
        let versions = self.versions(&offers).await;
        let at_host = self.at_host();
        let logins = lock(&self.logins).clone();
        let row = |(offer, version): (Offer, Option<String>)| {
            let known = at_host.iter().find(|agent| agent.id.as_str() == offer.id);
            let methods = logins.get(&offer.id).map(Vec::as_slice);
            row(&offer, version, known, methods, settings)
        };
        let agents = offers.into_iter().zip(versions).map(row).collect();
        Ok(AgentsResult { agents, catalog_date: settings.catalog.catalog.date.clone() })
    }

    /// Looks for programs again, has the host use them, and asks one agent for its ways to log in.
    pub(super) async fn check(
        &self,
        settings: &Arc<Settings>,
        params: CheckAgentsParams,
    ) -> Result<AgentsResult, AdministrationRefusal> {
        lock(&self.versions).clear();
        self.reread(settings).await;
        if let Some(id) = params.id {
            check_length(&id)?;
            let program = installed_program(settings, &id).map_err(|failure| of_command(&failure))?;
            let probed = {
                let _start = self.starts.acquire().await;
                let pool = OneShotPool::new(settings).map_err(|error| failed(format!("{error:#}")))?;
                AcpAgent::new(program, pool.pool()).probe().await
            };
            let probe = probed.map_err(|error| failed(format!("{id} does not answer: {error}")))?;
            lock(&self.logins).insert(id, probe.login_methods);
        }
        self.list(settings).await
    }

    pub(super) async fn plan_install(
        &self,
        settings: &Settings,
        params: &AgentParams,
    ) -> Result<InstallPlanResult, AdministrationRefusal> {
        let prepared = PreparedInstallation::new(settings, &params.id, true).await;
        let prepared = prepared.map_err(|error| of_installation(&error))?;
        Ok(InstallPlanResult {
            id: prepared.plan.agent.clone(),
            name: prepared.entry.display_name.clone(),
            version: prepared.plan.version.clone(),
            commands: prepared.plan.commands(),
        })
    }

    /// Begins an installation. It goes on when the client has gone.
    pub(super) async fn install(
        &self,
        settings: Arc<Settings>,
        params: &InstallParams,
    ) -> Result<InstallStatusResult, AdministrationRefusal> {
        let prepared = PreparedInstallation::new(&settings, &params.id, true).await;
        let prepared = prepared.map_err(|error| of_installation(&error))?;
        let known = &prepared.plan.version;
        if *known != params.version {
            return Err(wrong_state(format!(
                "the catalog has version {known} of {} by now: look at its commands again",
                params.id
            )));
        }
        let begun = self.installation.begin(&params.id, known);
        let number =
            begun.map_err(|running| wrong_state(format!("{running} is being installed: wait for it, or cancel it")))?;
        let (slot, backends, host, load) =
            (self.installation.clone(), self.backends.clone(), self.host.clone(), self.load.clone());
        let task = tokio::spawn(async move {
            let progress = |line: &str| slot.push(number, line);
            let installed = prepared.carry_out(&settings, progress).await;
            if let (Ok(_), Some(host), Ok(settings)) = (&installed, host.upgrade(), load()) {
                // A host that stops needs no agents.
                backends.reread(&settings, &host).await.unwrap_or_default();
            }
            slot.end(number, installed.map(drop).map_err(|error| format!("{error:#}")));
        });
        self.installation.started(number, task.abort_handle());
        lock(&self.versions).clear();
        Ok(self.install_status(&InstallStatusParams::default()))
    }

    pub(super) fn install_status(&self, params: &InstallStatusParams) -> InstallStatusResult {
        InstallStatusResult { installation: self.installation.status(params.after) }
    }

    pub(super) fn cancel_install(&self) -> CancelInstallResult {
        CancelInstallResult { cancelled: self.installation.cancel() }
    }

    pub(super) async fn log_in(&self, settings: &Settings, params: &LogInParams) -> Result<(), AdministrationRefusal> {
        let LogInParams { id, method } = params;
        check_length(id)?;
        check_length(method)?;
        let program = installed_program(settings, id).map_err(|failure| of_command(&failure))?;
        let known = lock(&self.logins).get(id).and_then(|all| all.iter().find(|one| one.id == *method).cloned());
        if known.is_some_and(|known| !known.is_of_agent()) {
            return Err(wrong_state(format!("this login needs a terminal: run `{}`", login_command(id, method))));
        }
        {
            let _start = self.starts.acquire().await;
            let pool = OneShotPool::new(settings).map_err(|error| failed(format!("{error:#}")))?;
            let logged_in = AcpAgent::new(program, pool.pool()).log_in(method).await;
            logged_in.map_err(|error| failed(format!("the login failed: {error}")))?;
        }
        // An agent that waits for a login is asked again with its next turn.
        self.reread(settings).await;
        Ok(())
    }

    /// Has the host use the agents that are there now.
    async fn reread(&self, settings: &Settings) {
        if let Some(host) = self.host.upgrade() {
            // A host that stops needs no agents.
            self.backends.reread(settings, &host).await.unwrap_or_default();
        }
    }

    fn at_host(&self) -> Vec<AgentInfo> {
        let host = self.host.upgrade();
        host.map(|host| host.sequencer().read(|published| published.state.root.agents.clone())).unwrap_or_default()
    }

    /// The versions in the order of the offers. Programs whose files have not changed are not asked again.
    async fn versions(&self, offers: &[Offer]) -> Vec<Option<String>> {
        let questions: Vec<VersionQuestion> = offers.iter().map(VersionQuestion::of).collect();
        let stamps: Vec<ProgramStamp> = questions.iter().map(stamp).collect();
        let is_known = |offer: &Offer, question: &VersionQuestion, stamp: &ProgramStamp| {
            let known = lock(&self.versions);
            known.get(&offer.id).filter(|(q, s, _)| q == question && s == stamp).map(|(.., version)| version.clone())
        };
        let known: Vec<Option<Option<String>>> =
            offers.iter().zip(&questions).zip(&stamps).map(|((offer, q), s)| is_known(offer, q, s)).collect();
        let asked = questions.iter().zip(&known);
        let asked = asked.map(|(question, known)| match known {
            Some(_) => VersionQuestion::None,
            None => question.clone(),
        });
        let answers = ask_all(asked.collect()).await;
        let versions: Vec<Option<String>> =
            known.into_iter().zip(answers).map(|(known, answer)| known.unwrap_or(answer)).collect();
        let rows = offers.iter().zip(questions).zip(stamps).zip(&versions);
        *lock(&self.versions) = rows
            .map(|(((offer, question), stamp), version)| (offer.id.clone(), (question, stamp, version.clone())))
            .collect();
        versions
    }
}

fn check_length(id: &str) -> Result<(), AdministrationRefusal> {
    match id.len() <= MAX_ID {
        true => Ok(()),
        false => Err(invalid(format!("an id has at most {MAX_ID} bytes"))),
    }
}

fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic leaves it half changed.
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

fn stamp(question: &VersionQuestion) -> ProgramStamp {
    let of = |program: &PathBuf| -> ProgramStamp {
        let metadata = Path::new(program).metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    match question {
        VersionQuestion::Ask { program, .. } => of(program),
        VersionQuestion::Known(_) | VersionQuestion::None => None,
    }
}

/// The command that logs in, in a terminal.
fn login_command(id: &str, method: &str) -> String {
    format!("grove agents login {id} {method}")
}

fn row(
    offer: &Offer,
    version: Option<String>,
    at_host: Option<&AgentInfo>,
    methods: Option<&[LoginMethod]>,
    settings: &Settings,
) -> AgentRow {
    let entry = offer.entry.as_deref();
    let latest = entry.and_then(|entry| entry.package.version()).map(ToOwned::to_owned);
    let outdated = version.as_deref().zip(latest.as_deref()).is_some_and(|(now, latest)| is_older(now, latest));
    let (availability, installed_by, looked_for, advice) = match &offer.state {
        AgentState::BuiltIn => (AgentAvailability::BuiltIn, None, Vec::new(), None),
        AgentState::Installed { by, .. } => (AgentAvailability::Installed, Some(by), Vec::new(), None),
        AgentState::Missing { looked_for, advice } => {
            (AgentAvailability::Missing, None, looked_for.clone(), Some(advice.clone()))
        }
        AgentState::Disabled => (AgentAvailability::Disabled, None, Vec::new(), None),
    };
    let command = offer.program().map(|program| {
        std::iter::once(program.program.display().to_string()).chain(program.args.iter().cloned()).collect()
    });
    let hint = entry.map(|entry| entry.log_in.clone()).filter(|hint| !hint.is_empty());
    let login = (hint.is_some() || methods.is_some()).then(|| AgentLogin {
        hint,
        methods: methods.map(|methods| methods.iter().map(|one| method(offer, one)).collect()),
    });
    AgentRow {
        id: offer.id.clone(),
        name: offer.display_name.clone(),
        description: Some(offer.description.clone()).filter(|text| !text.is_empty()),
        availability,
        installed: matches!(availability, AgentAvailability::BuiltIn | AgentAvailability::Installed),
        install: installation(offer, outdated, advice),
        version,
        latest,
        outdated,
        command: command.unwrap_or_default(),
        installed_by: installed_by.map(|by: &InstalledBy| installer(by).to_owned()),
        login,
        models: at_host
            .map(|agent| agent.models.iter().map(|model| model.id.to_string()).collect())
            .unwrap_or_default(),
        is_default: offer.id == settings.default_agent.value,
        source: match offer.known_from {
            AgentSource::Grove => AgentOrigin::BuiltIn,
            AgentSource::Catalog => AgentOrigin::Catalog,
            AgentSource::File => AgentOrigin::Settings,
        },
        looked_for,
        notes: entry.map(|entry| entry.notes.clone()).unwrap_or_default(),
        website: entry.and_then(|entry| entry.website.clone()),
    }
}

/// How to install an agent that is missing, or whose newer version is known.
fn installation(offer: &Offer, outdated: bool, advice: Option<String>) -> Option<AgentInstallation> {
    if advice.is_none() && !outdated {
        return None;
    }
    let Some(entry) = offer.entry.as_deref() else {
        // A command of `grove.toml` that does not exist: nobody but its author can install it.
        let words = advice.unwrap_or_default();
        return Some(AgentInstallation { command: words, kind: "manual".to_owned(), possible: false, reason: None });
    };
    let obstacle = obstacle(entry, &search_path());
    Some(AgentInstallation {
        command: install_advice(entry),
        kind: entry.package.kind().to_owned(),
        possible: obstacle.is_none(),
        reason: obstacle.map(|obstacle| obstacle.to_string()),
    })
}

fn method(offer: &Offer, method: &LoginMethod) -> AgentLoginMethod {
    AgentLoginMethod {
        id: method.id.clone(),
        name: method.name.clone(),
        description: method.description.clone(),
        command: (!method.is_of_agent()).then(|| login_command(&offer.id, &method.id)),
    }
}
