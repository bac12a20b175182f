//! The administration of a host: its agents, the other hosts that it knows, its permission rules and its settings.
//!
//! No method names a `channel`. A host without this service announces none of them.

pub mod agents;
pub mod hosts;
pub mod rules;
pub mod settings;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use self::agents::*;
use self::hosts::*;
use self::rules::*;
use self::settings::*;

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdministrationMethod {
    ListAgents,
    CheckAgents,
    PlanInstall,
    Install,
    InstallStatus,
    CancelInstall,
    LogIn,
    ListHosts,
    CheckHosts,
    AddHost,
    RemoveHost,
    Rules,
    CheckRules,
    TestRules,
    SuggestRules,
    AddRules,
    RemoveRule,
    ListSettings,
}

impl AdministrationMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ListAgents => "x-grove/agents/list",
            Self::CheckAgents => "x-grove/agents/check",
            Self::PlanInstall => "x-grove/agents/planInstall",
            Self::Install => "x-grove/agents/install",
            Self::InstallStatus => "x-grove/agents/installStatus",
            Self::CancelInstall => "x-grove/agents/cancelInstall",
            Self::LogIn => "x-grove/agents/login",
            Self::ListHosts => "x-grove/hosts/list",
            Self::CheckHosts => "x-grove/hosts/check",
            Self::AddHost => "x-grove/hosts/add",
            Self::RemoveHost => "x-grove/hosts/remove",
            Self::Rules => "x-grove/policy/rules",
            Self::CheckRules => "x-grove/policy/check",
            Self::TestRules => "x-grove/policy/test",
            Self::SuggestRules => "x-grove/policy/suggest",
            Self::AddRules => "x-grove/policy/add",
            Self::RemoveRule => "x-grove/policy/remove",
            Self::ListSettings => "x-grove/settings/list",
        }
    }
}

/// A parsed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdministrationCall {
    ListAgents,
    CheckAgents(CheckAgentsParams),
    PlanInstall(AgentParams),
    Install(InstallParams),
    InstallStatus(InstallStatusParams),
    CancelInstall,
    LogIn(LogInParams),
    ListHosts,
    CheckHosts(CheckHostsParams),
    AddHost(AddHostParams),
    RemoveHost(RemoveHostParams),
    Rules(RulesParams),
    CheckRules(CheckRulesParams),
    TestRules(TestRulesParams),
    SuggestRules(SuggestRulesParams),
    AddRules(AddRulesParams),
    RemoveRule(RemoveRuleParams),
    ListSettings,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AdministrationOutcome {
    Agents(AgentsResult),
    InstallPlan(InstallPlanResult),
    InstallStatus(InstallStatusResult),
    InstallCancelled(CancelInstallResult),
    Hosts(HostsResult),
    HostAdded(AddHostResult),
    HostRemoved(RemoveHostResult),
    Rules(RulesResult),
    Verdict(CheckRulesResult),
    Test(TestRulesResult),
    Suggestions(SuggestRulesResult),
    RulesChanged(RulesChangedResult),
    Settings(SettingsResult),
    /// Done, without further data.
    Done {},
}

/// Invalid params of a method.
#[derive(Debug, thiserror::Error)]
#[error("params of {method}: {error}")]
pub struct AdministrationCallError {
    method: &'static str,
    error: serde_json::Error,
}

impl AdministrationCall {
    /// Reads the params of a method. They may be missing if the method needs none.
    pub fn read(method: AdministrationMethod, params: Option<&RawValue>) -> Result<Self, AdministrationCallError> {
        fn of<P: DeserializeOwned>(params: Option<&RawValue>) -> serde_json::Result<P> {
            serde_json::from_str(params.map_or("{}", RawValue::get))
        }
        let read = match method {
            AdministrationMethod::ListAgents => Ok(Self::ListAgents),
            AdministrationMethod::CheckAgents => of(params).map(Self::CheckAgents),
            AdministrationMethod::PlanInstall => of(params).map(Self::PlanInstall),
            AdministrationMethod::Install => of(params).map(Self::Install),
            AdministrationMethod::InstallStatus => of(params).map(Self::InstallStatus),
            AdministrationMethod::CancelInstall => Ok(Self::CancelInstall),
            AdministrationMethod::LogIn => of(params).map(Self::LogIn),
            AdministrationMethod::ListHosts => Ok(Self::ListHosts),
            AdministrationMethod::CheckHosts => of(params).map(Self::CheckHosts),
            AdministrationMethod::AddHost => of(params).map(Self::AddHost),
            AdministrationMethod::RemoveHost => of(params).map(Self::RemoveHost),
            AdministrationMethod::Rules => of(params).map(Self::Rules),
            AdministrationMethod::CheckRules => of(params).map(Self::CheckRules),
            AdministrationMethod::TestRules => of(params).map(Self::TestRules),
            AdministrationMethod::SuggestRules => of(params).map(Self::SuggestRules),
            AdministrationMethod::AddRules => of(params).map(Self::AddRules),
            AdministrationMethod::RemoveRule => of(params).map(Self::RemoveRule),
            AdministrationMethod::ListSettings => Ok(Self::ListSettings),
        };
        read.map_err(|error| AdministrationCallError { method: method.as_str(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: AdministrationMethod, text: &str) -> Result<AdministrationCall, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        AdministrationCall::read(method, Some(&raw)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_call_is_read_by_its_method_and_a_wrong_one_names_the_member() {
        let install = read(AdministrationMethod::Install, r#"{"id":"codex","version":"1.2"}"#);
        let expected = InstallParams { id: "codex".into(), version: "1.2".into() };
        assert_eq!(install, Ok(AdministrationCall::Install(expected)));
        assert_eq!(
            AdministrationCall::read(AdministrationMethod::CheckAgents, None).unwrap(),
            AdministrationCall::CheckAgents(CheckAgentsParams::default())
        );
        let wrong = read(AdministrationMethod::Install, r#"{"id":"codex"}"#).unwrap_err();
        assert!(wrong.starts_with("params of x-grove/agents/install: missing field `version`"), "{wrong}");
        let check = read(AdministrationMethod::CheckRules, r#"{"kind":"shell","command":"ls"}"#).unwrap();
        let AdministrationCall::CheckRules(CheckRulesParams { subject: RuleSubject::Shell { command }, .. }) = check
        else {
            panic!("{check:?}");
        };
        assert_eq!(command, "ls");
        assert!(read(AdministrationMethod::CheckRules, r#"{"kind":"other"}"#).is_err());
    }

    #[test]
    fn the_token_of_a_host_is_in_no_debug_output() {
        let call = read(AdministrationMethod::AddHost, r#"{"name":"a","address":"ws://x/","token":"se-cret"}"#);
        assert!(!format!("{call:?}").contains("se-cret"));
    }
}
