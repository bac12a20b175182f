//! Answers to permission requests by rules and hooks, before a person is asked.
//!
//! Rules come from the settings, the repository and the session, and a denial or question of any of them goes before
//! what another allows:
//!
//! 1. A rule that denies: of a file, or of the session. A hook of a client that denies.
//! 2. A rule of a file that asks, or that may match what is not known. A hook that asks.
//! 3. What the session allows: everything, rules of clients, remembered answers. What a hook allows.
//! 4. A rule of a file that allows.
//!
//! Otherwise the request stays with the person. [`SessionTask::record_decision`] is the one place that every answer by
//! a rule passes.

use std::path::PathBuf;
use std::sync::Arc;

use grove_agents::call_subject;
use grove_core::*;
use grove_policy::suggest::offers;
use grove_policy::{Policy, Request, Rule, RuleSet, Verdict as PolicyVerdict};

use super::{Outbox, SessionTask};
use crate::audit::{AuditAction, AuditOutcome, AuditRecord};
use crate::client_hooks::{HookVerdict, ToolOutcome};
use crate::host::Host;
use crate::policy::{LoadedRules, resolve_links};
use crate::rule_offers::{RuleOfferError, RuleOffers};
use crate::sequencer::HostStopped;

/// The tool with which Grove asks about protected files. Only a person allows it.
pub(in crate::session) const PROTECTED_WRITE: &str = "write_text_file";
/// The member of an answer's extra data that gives a reason, as AHP has it.
const REASON: &str = "reasonMessage";

/// An answer by a rule, or by a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct RuleDecision {
    pub(in crate::session) decision: Decision,
    /// The rule and its place, or what the hook says, in words.
    pub(in crate::session) rule: String,
    /// The hook that decided.
    pub(in crate::session) hook: Option<Answerer>,
    /// True for a rule of the settings or of a repository.
    pub(in crate::session) is_from_file: bool,
    /// The option that the rule remembers.
    pub(in crate::session) option: Option<String>,
}

impl RuleDecision {
    /// The decision of hooks; `None` if they leave it to others.
    fn of_hooks(outcome: &ToolOutcome) -> Option<Self> {
        let hook = outcome.by.clone();
        let (decision, rule) = match outcome.verdict? {
            HookVerdict::Allow => (Decision::Approved, "a hook allows it".to_owned()),
            HookVerdict::Deny => (Decision::Denied, outcome.denial()),
            HookVerdict::Ask => return None,
        };
        Some(Self { decision, rule, hook, is_from_file: false, option: None })
    }

    fn answerer(&self) -> Answerer {
        self.hook.clone().unwrap_or_else(|| Answerer::rule(&self.rule))
    }

    /// The data of the answer: the rule, and the reason of a denial.
    fn extra(&self) -> Extra {
        let is_denied = self.decision == Decision::Denied;
        if self.hook.is_some() {
            let reason = is_denied.then(|| (REASON.to_owned(), self.rule.clone().into()));
            return reason.into_iter().collect();
        }
        let mut extra = Extra::from_iter([(POLICY_RULE.to_owned(), self.rule.clone().into())]);
        if is_denied && self.is_from_file {
            extra.insert(REASON.to_owned(), format!("denied by a rule: {}", self.rule).into());
        }
        extra
    }
}

impl SessionTask {
    /// Answers a permission request by a rule, or by what the hooks have said, if one decides.
    pub(in crate::session) fn judge_permission(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        (call, request): (&ToolCallId, &PermissionRequest),
        hooked: Option<&ToolOutcome>,
        out: &mut Outbox,
    ) {
        let active = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn));
        let Some(asking) = active.and_then(|active| active.tool_call(call)).cloned() else { return };
        let Some(decision) = self.decide(&asking, request, hooked) else { return };
        self.record_decision(chat, call, request, &decision);
        let mut verdict = Verdict::by_rule(decision.decision, request);
        if decision.option.is_some() {
            verdict.option.clone_from(&decision.option);
        }
        verdict.extra = Some(decision.extra());
        let resolve = ClientCommand::ResolvePermission {
            chat: chat.clone(),
            turn: turn.clone(),
            question: PermissionTarget::Request(request.id.clone()),
            verdict,
            answered_by: Some(Box::new(decision.answerer())),
        };
        let is_answered = self.accept(resolve, out).is_ok();
        if is_answered && decision.decision == Decision::Approved && decision.is_from_file {
            self.name_rule(chat, turn, call, &decision.rule, out);
        }
    }

    /// Answers the pending permission requests that changed permissions decide, in every chat.
    pub(in crate::session) async fn judge_pending(&mut self) -> Result<(), HostStopped> {
        let pending = |chat: &Chat| {
            let turn = chat.active.as_deref()?;
            let calls = turn.parts().iter().filter_map(|part| match part {
                Part::ToolCall(call) => match &call.status {
                    ToolCallStatus::PendingConfirmation(request) => Some((call.id.clone(), request.clone())),
                    _ => None,
                },
                _ => None,
            });
            Some((chat.id.clone(), turn.id.clone(), calls.collect::<Vec<_>>()))
        };
        let pending: Vec<_> = self.tip.chats.iter().filter_map(pending).collect();
        let mut out = Outbox::default();
        for (chat, turn, calls) in pending {
            for (call, request) in calls {
                self.judge_permission(&chat, &turn, (&call, &request), None, &mut out);
            }
        }
        self.send(out).await
    }

    /// Says in the call which rule allowed it.
    fn name_rule(&mut self, chat: &ChatId, turn: &TurnId, call: &ToolCallId, rule: &str, out: &mut Outbox) {
        let active = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn));
        let Some(call) = active.and_then(|active| active.tool_call(call)) else { return };
        let mut extra = call.extra.clone().unwrap_or_default();
        extra.insert(POLICY_RULE.to_owned(), rule.into());
        let restated = InvocationUpdate {
            call: NewToolCall { extra: Some(extra), ..call.names() },
            invocation_message: call.invocation_message.clone(),
            input: None,
            confirmed: ConfirmationReason::Setting,
        };
        let event = ChatEvent::ToolCallRestated { turn: turn.clone(), restated: Box::new(restated) };
        self.accept(EventReport::Chat { chat: chat.clone(), event }, out).ok();
    }

    /// Records an answer by a rule. Every such answer passes here.
    fn record_decision(&self, chat: &ChatId, call: &ToolCallId, request: &PermissionRequest, decision: &RuleDecision) {
        tracing::info!(
            session = %self.tip.id, %chat, %call, request = %request.id, decision = ?decision.decision,
            rule = %decision.rule, "a rule answered a permission request"
        );
        let Some(host) = self.session_context.host.upgrade().map(Host) else { return };
        let operation = match decision.decision {
            Decision::Approved => "approve",
            Decision::Denied => "deny",
        };
        let now = self.session_context.env.clock.now();
        let token = match &decision.hook {
            Some(Answerer::Hook { token, .. }) => token.as_str(),
            Some(Answerer::Rule { .. } | Answerer::Client { .. }) | None => "",
        };
        let record = AuditRecord::new(now, token, String::new(), AuditAction::Policy, operation);
        let record = record.with_session(Some(self.tip.id.as_str())).with_detail(Some(&decision.rule));
        host.audit(record.with_outcome(AuditOutcome::Done, None));
    }

    fn decide(
        &self,
        call: &ToolCall,
        request: &PermissionRequest,
        hooked: Option<&ToolOutcome>,
    ) -> Option<RuleDecision> {
        let by_file = self.judge_by_files(call, request);
        let from_file = |decision, rule: &str| {
            Some(RuleDecision { decision, rule: rule.to_owned(), hook: None, is_from_file: true, option: None })
        };
        if let Some((PolicyVerdict::Deny, rule)) = &by_file {
            return from_file(Decision::Denied, rule);
        }
        let by_hook = hooked.and_then(RuleDecision::of_hooks);
        if by_hook.as_ref().is_some_and(|decision| decision.decision == Decision::Denied) {
            return by_hook;
        }
        // What a session allows does not cover protected files.
        let is_protected = call.name == PROTECTED_WRITE;
        let by_session =
            self.judge_by_session(request).filter(|decision| !is_protected || decision.decision == Decision::Denied);
        if by_session.as_ref().is_some_and(|decision| decision.decision == Decision::Denied) {
            return by_session;
        }
        if hooked.is_some_and(|outcome| outcome.verdict == Some(HookVerdict::Ask)) {
            return None;
        }
        let by_session = by_session.or(by_hook.filter(|_| !is_protected));
        match by_file {
            Some((PolicyVerdict::Ask, _)) => None,
            by_file => by_session.or_else(|| match by_file {
                Some((PolicyVerdict::Allow, rule)) if !is_protected => from_file(Decision::Approved, &rule),
                _ => None,
            }),
        }
    }

    /// The verdict of the rules in files and of the person's own for this session, and the rule; `None` if none applies.
    fn judge_by_files(&self, call: &ToolCall, request: &PermissionRequest) -> Option<(PolicyVerdict, String)> {
        let (policy, request) = self.policy_for(call, request);
        if policy.is_empty() {
            return None;
        }
        let decision = policy.judge(&request);
        match decision.verdict {
            PolicyVerdict::Ask if decision.rule.is_none() => None,
            verdict => Some((verdict, decision.to_string())),
        }
    }

    /// The policy for this session, and the request of a call as rules see it.
    fn policy_for(&self, call: &ToolCall, request: &PermissionRequest) -> (Arc<Policy>, Request) {
        let service = self.session_context.host.upgrade().map(Host).and_then(|host| host.permission_rules().cloned());
        let folder = self.folder();
        let loaded = service.as_ref().map(|service| service.rules_for(folder.as_deref()));
        let LoadedRules { policy, home, .. } = loaded.unwrap_or_default();
        let directory = folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let mut action = call_subject(self.tip.agent.as_str(), call, Some(request), directory.as_deref());
        if let Some(service) = &service {
            resolve_links(service.as_ref(), folder.as_deref(), &mut action);
        }
        let own = self.session_rules();
        let policy = if own.rules.is_empty() { policy } else { Arc::new(policy.as_ref().clone().with(own)) };
        (policy, Request { agent: self.tip.agent.to_string(), action, directory, home })
    }

    /// The rules that a person added to this session.
    fn session_rules(&self) -> RuleSet {
        let texts = self.tip.details.permissions.iter().flat_map(|permissions| &permissions.policy_rules);
        let sets = texts.filter_map(|text| RuleSet::parse_repository(text, "session").ok());
        RuleSet::of_session(sets.flat_map(|set| set.rules).map(|rule| rule.rule))
    }

    /// Returns whether rules of files or of a person may decide about calls of this session.
    pub(in crate::session) fn has_rules(&self) -> bool {
        let service = self.session_context.host.upgrade().map(Host).and_then(|host| host.permission_rules().cloned());
        let loaded = service.map(|service| service.rules_for(self.folder().as_deref()));
        !self.session_rules().rules.is_empty() || loaded.is_some_and(|loaded| !loaded.policy.is_empty())
    }

    fn folder(&self) -> Option<PathBuf> {
        self.tip.working_directories.first().and_then(|folder| grove_work::local_path(folder).ok())
    }

    /// The rules that would answer a pending permission request, named by its id or by its call's.
    pub(in crate::session) fn offer_rules(&self, chat: &ChatId, named: &str) -> Result<RuleOffers, RuleOfferError> {
        let active = |chat: &Chat| chat.active.as_deref().and_then(|turn| pending_call(turn, named));
        let in_chat = self.tip.chat(chat).and_then(active);
        let found = in_chat.or_else(|| self.tip.chats.iter().find_map(active));
        let (call, request) = found.ok_or_else(|| RuleOfferError::NoRequest(named.to_owned()))?;
        let (policy, asked) = self.policy_for(&call, &request);
        // A rule that asks or denies goes before any that allows, and protected files are always asked.
        let helps = |rules: &Vec<Rule>| {
            let with = policy.as_ref().clone().with(RuleSet::of_session(rules.clone()));
            call.name != PROTECTED_WRITE && with.judge(&asked).verdict == PolicyVerdict::Allow
        };
        let alternatives = offers(&asked).into_iter().filter(helps).collect();
        Ok(RuleOffers { alternatives, folder: self.folder() })
    }

    /// The decision of what clients and people have set for this session.
    fn judge_by_session(&self, request: &PermissionRequest) -> Option<RuleDecision> {
        let session =
            |decision, rule: String, option| RuleDecision { decision, rule, hook: None, is_from_file: false, option };
        let details = &self.tip.details;
        if let Some(decision) = details.permissions.as_ref().and_then(|policy| policy.answer(request)) {
            let rule = if details.allows_all() { "this session allows everything" } else { "a rule of this session" };
            return Some(session(decision, rule.to_owned(), None));
        }
        let remembered = details.remembered.iter().find(|known| known.answers(request))?;
        let allows = remembered.option.allows;
        let fitting = |wanted: &dyn Fn(&PermissionOption) -> bool| {
            request.options.iter().find(|option| option.allows == allows && wanted(option)).map(|o| o.id.clone())
        };
        let option = fitting(&|option| option.id == remembered.option.id)
            .or_else(|| fitting(&|option| option.lasting))
            .or_else(|| fitting(&|_| true));
        let decision = if allows { Decision::Approved } else { Decision::Denied };
        Some(session(decision, format!("an earlier answer in this session about {:?}", remembered.about), option))
    }

    /// The warning about rules that do not count for this session, if there is one.
    pub(in crate::session) fn policy_warning(&self) -> Option<String> {
        let host = self.session_context.host.upgrade().map(Host)?;
        host.permission_rules()?.rules_for(self.folder().as_deref()).warning.map(|words| warning::policy(&words))
    }
}

/// The pending permission request of this id, or of the call of this id.
fn pending_call(turn: &ActiveTurn, named: &str) -> Option<(ToolCall, PermissionRequest)> {
    turn.parts().iter().find_map(|part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request)
                if request.id.as_str() == named || call.id.as_str() == named =>
            {
                Some(((**call).clone(), request.clone()))
            }
            _ => None,
        },
        _ => None,
    })
}
