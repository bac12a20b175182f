//! "Always allow": the rules that a pending permission request offers, and storing one of them.
//!
//! A session offers the narrowest rules that would answer the request. A client names the rule that the person has seen;
//! the host compares it with the offers, stores it, and lets the sessions that it applies to judge their pending requests again. The agent gets its
//! option for this time only, so that it asks again and the host keeps judging.

use std::path::PathBuf;

use grove_core::{ClientCommand, PermissionsChange, SessionUri};
use grove_policy::Rule;
use grove_wire::x_grove::policy::{
    OfferedRule, OfferedTarget, PolicyAllowParams, PolicyAllowResult, PolicyOffersResult, RuleTarget,
};
use tokio::sync::oneshot;

use crate::branch::SessionRequestError;
use crate::host::Host;
use crate::session::{ChatAddress, ToSession, TreeError};

/// The table of a rule in a repository's file and in a session.
const TABLE: &str = "rules";

/// The rules that would answer a pending permission request.
#[derive(Debug)]
pub(crate) struct RuleOffers {
    /// Alternatives, the narrowest first, each with all rules that it needs.
    pub(crate) alternatives: Vec<Vec<Rule>>,
    /// The folder of the session.
    pub(crate) folder: Option<PathBuf>,
}

/// The reason why a rule is not offered or not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleOfferError {
    #[error("no permission request {0:?} is pending: it was answered, or its turn has ended")]
    NoRequest(String),
    #[error("the rule is not offered for this request: ask for the offers again")]
    NotOffered,
    #[error("this session has no file for the rule: allow it in the session")]
    NoFile,
    #[error("the rule is not stored: {0}")]
    NotStored(String),
}

impl RuleOffers {
    fn rows(&self) -> Vec<OfferedRule> {
        self.alternatives.iter().map(|rules| OfferedRule { text: in_one_line(rules), toml: in_toml(rules) }).collect()
    }
}

fn in_one_line(rules: &[Rule]) -> String {
    rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn in_toml(rules: &[Rule]) -> String {
    rules.iter().map(|rule| rule.to_toml(TABLE)).collect::<Vec<_>>().join("\n")
}

impl Host {
    /// The rules that would answer a pending permission request, and the files that could store them.
    pub async fn offer_rules(
        &self,
        place: &ChatAddress,
        request: &str,
    ) -> Result<PolicyOffersResult, SessionRequestError> {
        let offers = self.ask_for_offers(place, request).await?;
        let rules = offers.rows();
        let targets = RuleTarget::ALL.into_iter().filter_map(|target| {
            let file = match target {
                RuleTarget::Session => None,
                RuleTarget::Repository | RuleTarget::Everywhere => {
                    let file = self.permission_rules()?.file_of(target, offers.folder.as_deref())?;
                    Some(file.to_string_lossy().into_owned())
                }
            };
            Some(OfferedTarget { target, file })
        });
        Ok(PolicyOffersResult { rules, targets: targets.collect() })
    }

    /// Stores an offered rule, and lets it answer the pending permission requests of the session.
    pub async fn allow_always(
        &self,
        place: &ChatAddress,
        params: PolicyAllowParams,
    ) -> Result<PolicyAllowResult, SessionRequestError> {
        let PolicyAllowParams { request, target, rule } = params;
        let RuleOffers { alternatives, folder } = self.ask_for_offers(place, &request).await?;
        let chosen = alternatives.into_iter().find(|rules| in_toml(rules) == rule);
        let rules = chosen.ok_or(RuleOfferError::NotOffered)?;
        let text = in_one_line(&rules);
        let (session, gone) = (&place.0, || SessionRequestError::NoSession(place.0.clone()));
        if target == RuleTarget::Session {
            let change = PermissionsChange::AddPolicyRules(rules.iter().map(|rule| rule.to_toml(TABLE)).collect());
            let (done, reply) = oneshot::channel();
            let change = ClientCommand::ChangePermissions(change);
            self.tell_session(session, ToSession::Do(change.into(), done)).await?;
            reply.await.map_err(|_| gone())?.map_err(TreeError::Refused)?;
            return Ok(PolicyAllowResult { text, file: None });
        }
        let service = self.permission_rules().ok_or(RuleOfferError::NoFile)?.clone();
        let store = move || service.add_rules(target, folder.as_deref(), &rules);
        let stored = self.0.env.spawn.run_blocking(store).await;
        let stored = stored.map_err(|error| RuleOfferError::NotStored(error.to_string()))?;
        let file = stored.map_err(RuleOfferError::NotStored)?;
        let (done, reply) = oneshot::channel();
        self.tell_session(session, ToSession::JudgePending(done)).await?;
        reply.await.map_err(|_| gone())?;
        self.judge_pending_of_others(session);
        Ok(PolicyAllowResult { text, file: Some(file.to_string_lossy().into_owned()) })
    }

    /// Lets the other open sessions judge their pending permission requests by the rules of the files.
    ///
    /// Nobody waits for it: a session that is busy does so later.
    fn judge_pending_of_others(&self, session: &SessionUri) {
        let others: Vec<_> = self.sessions().open.values().filter(|other| other.uri != *session).cloned().collect();
        self.0.env.spawn.spawn(Box::pin(async move {
            for other in others {
                let (done, _) = oneshot::channel();
                // A session that has ended has no pending requests.
                other.inbox.send(ToSession::JudgePending(done)).await.ok();
            }
        }));
    }

    async fn ask_for_offers(&self, place: &ChatAddress, request: &str) -> Result<RuleOffers, SessionRequestError> {
        let (done, reply) = oneshot::channel();
        self.tell_session(&place.0, ToSession::OfferRules(place.1.clone(), request.to_owned(), done)).await?;
        Ok(reply.await.map_err(|_| SessionRequestError::NoSession(place.0.clone()))??)
    }

    async fn tell_session(&self, uri: &SessionUri, message: ToSession) -> Result<(), SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        session.inbox.send(message).await.map_err(|_| gone())
    }
}
