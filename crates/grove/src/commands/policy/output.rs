//! The output of `grove policy`: tables for people, and one form of JSON for rules, requests and decisions.

use grove_core::Timestamp;
use grove_policy::replay::{Answer, ReplayReport};
use grove_policy::suggest::Suggestion;
use grove_policy::{Decision, NamePattern, Request, RequestAction, Rule, SourcedRule};
use grove_wire::ahp::time;
use serde_json::{Value, json};

use super::super::{Failure, print_line};
use crate::past_requests::PastRequests;
use crate::show::style::{sanitize, sanitize_line};
use crate::show::table;

/// The differing requests that are listed for people.
const MAX_LISTED: usize = 1_000;
/// The columns of a rule and of a command in a table.
const MAX_CELL: usize = 120;

/// A rule for programs.
pub(super) fn rule_json(rule: &Rule) -> Value {
    let kinds: Vec<&str> = rule.kinds().iter().map(|kind| kind.name()).collect();
    let agents: Vec<&str> = rule.agents.iter().map(NamePattern::as_str).collect();
    json!({
        "verdict": rule.verdict,
        "kinds": kinds,
        "patterns": rule.patterns(),
        "agents": agents,
        "reason": rule.reason,
        "text": rule.to_string(),
        "toml": rule.to_toml("policy.rules"),
    })
}

/// A rule with its place.
pub(super) fn sourced_rule_json(rule: &SourcedRule) -> Value {
    let mut value = rule_json(&rule.rule);
    value["source"] = json!(rule.origin.source);
    value["file"] = json!(rule.origin.file);
    value["line"] = json!(rule.origin.line);
    value
}

/// A verdict, its rule, and the reason of a question.
pub(super) fn decision_json(decision: &Decision) -> Value {
    json!({
        "verdict": decision.verdict,
        "rule": decision.rule.as_ref().map(sourced_rule_json),
        "why": decision.why.as_ref().map(ToString::to_string),
    })
}

/// A request: its agent, its kind, and what the kind is about.
pub(super) fn request_json(request: &Request) -> Value {
    let mut value = json!({
        "agent": request.agent,
        "kind": request.action.kind(),
        "directory": request.directory,
    });
    match &request.action {
        RequestAction::Read { paths } | RequestAction::Edit { paths } => value["paths"] = json!(paths),
        RequestAction::Shell { command } => value["command"] = json!(command),
        RequestAction::Fetch { url } => value["url"] = json!(url),
        RequestAction::Mcp { tool } => value["tool"] = json!(tool),
        RequestAction::Unknown { .. } => {}
    }
    value
}

/// The result of a replay, with every request that was answered differently.
pub(super) fn report_json(report: &ReplayReport, past: &PastRequests<'_>, since: Timestamp) -> Value {
    let differences = report.differences.iter().filter_map(|difference| {
        let request = past.requests.get(difference.index)?;
        let record = past.records.get(difference.index)?;
        let mut value = decision_json(&difference.decision);
        value["request"] = request_json(&request.request);
        value["answer"] = json!(answer_word(difference.answer));
        value["session"] = json!(record.session);
        value["source"] = json!(record.source);
        value["at"] = json!(time::text(record.at));
        Some(value)
    });
    json!({
        "since": time::text(since),
        "requests": report.requests,
        "sources": sources_json(past),
        "allowed": report.allowed,
        "denied": report.denied,
        "asked": report.asked,
        "agreed": report.agreed,
        "differed": report.differences.len(),
        "differences": differences.collect::<Vec<_>>(),
    })
}

/// Proposed rules.
pub(super) fn suggestions_json(suggestions: &[Suggestion], past: &PastRequests<'_>, since: Timestamp) -> Value {
    let suggestions = suggestions.iter().map(|one| json!({"rule": rule_json(&one.rule), "answers": one.answers}));
    json!({
        "since": time::text(since),
        "requests": past.requests.len(),
        "sources": sources_json(past),
        "suggestions": suggestions.collect::<Vec<_>>(),
    })
}

fn sources_json(past: &PastRequests<'_>) -> Value {
    past.by_source().into_iter().map(|(source, count)| (source.to_owned(), json!(count))).collect()
}

const fn answer_word(answer: Answer) -> &'static str {
    match answer {
        Answer::Approved => "approved",
        Answer::Denied => "denied",
    }
}

/// Prints a rule as `grove.toml` has it.
pub(super) fn print_rule(rule: &Rule) -> Result<(), Failure> {
    for line in rule.to_toml("policy.rules").lines() {
        print_line(sanitize_line(line))?;
    }
    Ok(print_line("")?)
}

/// Prints rules with their places, one per line.
pub(super) fn print_rules(rules: &[SourcedRule]) -> Result<(), Failure> {
    let mut rows = vec![["RULE", "PLACE", "REASON"].map(str::to_owned).to_vec()];
    for SourcedRule { rule, origin } in rules {
        let reason = rule.reason.clone().unwrap_or_default();
        rows.push(vec![sanitize_line(&rule.to_string()), sanitize_line(&origin.to_string()), sanitize_line(&reason)]);
    }
    Ok(table::lines(&rows).into_iter().try_for_each(print_line)?)
}

/// The numbers of requests of each source, in words.
pub(super) fn sources_line(past: &PastRequests<'_>) -> String {
    let counts: Vec<String> = past.by_source().iter().map(|(source, count)| format!("{count} {source}")).collect();
    match counts.is_empty() {
        true => "no answered permission requests".to_owned(),
        false => format!("{} answered permission requests: {}", past.requests.len(), counts.join(", ")),
    }
}

/// Prints the numbers of a replay, then the requests that were answered differently.
pub(super) fn print_report(report: &ReplayReport, past: &PastRequests<'_>) -> Result<(), Failure> {
    print_line(sources_line(past))?;
    let share = |count: usize| match report.requests {
        0 => String::new(),
        all => format!("{} %", count * 100 / all),
    };
    let rows = [
        ("allowed by a rule", report.allowed),
        ("denied by a rule", report.denied),
        ("asked", report.asked),
        ("answered as the person did", report.agreed),
        ("answered differently", report.differences.len()),
    ];
    let rows = rows.map(|(what, count)| vec![format!("  {what}"), count.to_string(), share(count)]);
    table::lines(&rows).into_iter().try_for_each(print_line)?;
    if report.differences.is_empty() {
        return Ok(());
    }
    print_line("")?;
    let mut rows = vec![["DATE", "SESSION", "PERSON", "REQUEST", "RULE"].map(str::to_owned).to_vec()];
    for difference in report.differences.iter().take(MAX_LISTED) {
        let (Some(one), Some(record)) = (past.requests.get(difference.index), past.records.get(difference.index))
        else {
            continue;
        };
        let date = time::text(record.at);
        rows.push(vec![
            date.get(..10).unwrap_or(&date).to_owned(),
            sanitize_line(&record.session),
            answer_word(difference.answer).to_owned(),
            table::cut(&in_words(&one.request.action), MAX_CELL),
            table::cut(&sanitize(&difference.decision.to_string()), MAX_CELL),
        ]);
    }
    table::lines_within(&rows, table::terminal_width(), &[3, 4, 1]).into_iter().try_for_each(print_line)?;
    match report.differences.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => Ok(print_line(format!("and {more} more, with --json"))?),
    }
}

/// The subject of a request, in one line.
fn in_words(action: &RequestAction) -> String {
    match action {
        RequestAction::Read { paths } => format!("read {}", paths.join(" ")),
        RequestAction::Edit { paths } => format!("edit {}", paths.join(" ")),
        RequestAction::Shell { command } => command.clone(),
        RequestAction::Fetch { url } => format!("fetch {url}"),
        RequestAction::Mcp { tool } => format!("tool {tool}"),
        RequestAction::Unknown { kind: Some(kind) } => format!("{kind} of an unknown subject"),
        RequestAction::Unknown { kind: None } => "unknown".to_owned(),
    }
}
