//! Answers to permission requests by rules, before a person is asked.
//!
//! Rules come from the settings, the repository and the session, and a denial or question of any of them goes before
//! what another allows:
//!
//! 1. A rule that denies: of a file, or of the session.
//! 2. A rule of a file that asks, or that may match what is not known.
//! 3. What the session allows: everything, rules of clients, remembered answers.
//! 4. A rule of a file that allows.
//!
//! Otherwise the request stays with the person. [`SessionTask::record_decision`] is the one place that every answer by
//! a rule passes.

use std::path::Path;

use grove_agents::call_subject;
use grove_core::*;
use grove_policy::{Request, RequestAction, Verdict as PolicyVerdict};

use super::{Outbox, SessionTask};
use crate::audit::{AuditAction, AuditOutcome, AuditRecord};
use crate::host::Host;
use crate::policy::LoadedRules;
use crate::sequencer::HostStopped;

/// The tool with which Grove asks about protected files. Only a person allows it.
const PROTECTED_WRITE: &str = "write_text_file";
/// The member of an answer's extra data that gives a reason, as AHP has it.
const REASON: &str = "reasonMessage";

/// An answer by a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct RuleDecision {
    pub(in crate::session) decision: Decision,
    /// The rule and its place, in words.
    pub(in crate::session) rule: String,
    /// True for a rule of the settings or of a repository.
    pub(in crate::session) is_from_file: bool,
    /// The option that the rule remembers.
    pub(in crate::session) option: Option<String>,
}

impl SessionTask {
    /// Answers a permission request by a rule, if one decides.
    pub(in crate::session) fn judge_permission(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        call: &ToolCallId,
        request: &PermissionRequest,
        out: &mut Outbox,
    ) {
        let active = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn));
        let Some(asking) = active.and_then(|active| active.tool_call(call)).cloned() else { return };
        let Some(decision) = self.decide(&asking, request) else { return };
        self.record_decision(chat, call, request, &decision);
        let mut verdict = Verdict::by_rule(decision.decision, request);
        if decision.option.is_some() {
            verdict.option.clone_from(&decision.option);
        }
        if decision.decision == Decision::Denied && decision.is_from_file {
            let reason = format!("denied by a rule: {}", decision.rule);
            verdict.extra = Some([(REASON.to_owned(), reason.into())].into_iter().collect());
        }
        let resolve = ClientCommand::ResolvePermission {
            chat: chat.clone(),
            turn: turn.clone(),
            question: PermissionTarget::Request(request.id.clone()),
            verdict,
            answered_by: Some(Box::new(Answerer::rule(&decision.rule))),
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
                self.judge_permission(&chat, &turn, &call, &request, &mut out);
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
        let record = AuditRecord::new(now, "", String::new(), AuditAction::Policy, operation);
        let record = record.with_session(Some(self.tip.id.as_str())).with_detail(Some(&decision.rule));
        host.audit(record.with_outcome(AuditOutcome::Done, None));
    }

    fn decide(&self, call: &ToolCall, request: &PermissionRequest) -> Option<RuleDecision> {
        let by_file = self.judge_by_files(call, request);
        let from_file = |decision, rule: &str| {
            Some(RuleDecision { decision, rule: rule.to_owned(), is_from_file: true, option: None })
        };
        if let Some((PolicyVerdict::Deny, rule)) = &by_file {
            return from_file(Decision::Denied, rule);
        }
        // What a session allows does not cover protected files.
        let is_protected = call.name == PROTECTED_WRITE;
        let by_session =
            self.judge_by_session(request).filter(|decision| !is_protected || decision.decision == Decision::Denied);
        if by_session.as_ref().is_some_and(|decision| decision.decision == Decision::Denied) {
            return by_session;
        }
        match by_file {
            Some((PolicyVerdict::Ask, _)) => None,
            by_file => by_session.or_else(|| match by_file {
                Some((PolicyVerdict::Allow, rule)) if !is_protected => from_file(Decision::Approved, &rule),
                _ => None,
            }),
        }
    }

    /// The verdict of the rules in files, and the rule; `None` if no rule applies.
    fn judge_by_files(&self, call: &ToolCall, request: &PermissionRequest) -> Option<(PolicyVerdict, String)> {
        let host = self.session_context.host.upgrade().map(Host)?;
        let service = host.permission_rules()?.clone();
        let folder = self.tip.working_directories.first().and_then(|folder| grove_work::local_path(folder).ok());
        let LoadedRules { policy, home, .. } = service.rules_for(folder.as_deref());
        if policy.is_empty() {
            return None;
        }
        let directory = folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let mut action = call_subject(self.tip.agent.as_str(), call, Some(request), directory.as_deref());
        if let RequestAction::Read { paths } | RequestAction::Edit { paths } = &mut action {
            let real = |path: &String| {
                let path = folder.as_deref().unwrap_or(Path::new("/")).join(path);
                // An empty path stands for one that nobody knows: a link may lead anywhere once its target exists.
                let Some(real) = service.real_path(&path) else { return Some(String::new()) };
                if real == path {
                    return None;
                }
                // A link in the path of the folder itself changes nothing.
                let inside = folder.as_deref().and_then(|folder| {
                    let inside = real.strip_prefix(service.real_path(folder)?).ok()?;
                    Some(folder.join(inside))
                });
                Some(inside.unwrap_or(real).to_string_lossy().into_owned())
            };
            let linked: Vec<String> = paths.iter().filter_map(real).collect();
            paths.extend(linked);
        }
        let request = Request { agent: self.tip.agent.to_string(), action, directory, home };
        let decision = policy.judge(&request);
        match decision.verdict {
            PolicyVerdict::Ask if decision.rule.is_none() => None,
            verdict => Some((verdict, decision.to_string())),
        }
    }

    /// The decision of what clients and people have set for this session.
    fn judge_by_session(&self, request: &PermissionRequest) -> Option<RuleDecision> {
        let session = |decision, rule: String, option| RuleDecision { decision, rule, is_from_file: false, option };
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
        let folder = self.tip.working_directories.first().and_then(|folder| grove_work::local_path(folder).ok());
        host.permission_rules()?.rules_for(folder.as_deref()).warning.map(|words| warning::policy(&words))
    }
}
