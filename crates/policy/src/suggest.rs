//! Rules that would have answered past requests.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::needs_rule;
use crate::pattern::*;
use crate::replay::{Answer, PastRequest};
use crate::request::{Kind, Request, RequestAction};
use crate::rule::{Policy, Rule, RuleSet, Selector, Verdict};
use crate::shell::{self, Command, quote};

/// The number of answers from which on a rule is proposed.
const MIN_ANSWERS: usize = 2;
/// The maximum number of proposed rules.
const MAX_SUGGESTIONS: usize = 100;
/// The maximum number of candidates that are compared.
const MAX_CANDIDATES: usize = 4_000;

/// Programs for which only exact commands are proposed: their arguments decide everything.
const EXACT_ONLY: [&str; 28] = [
    "awk", "bash", "bun", "chmod", "chown", "curl", "dd", "deno", "docker", "find", "git-bash", "kill", "kubectl",
    "ln", "mv", "node", "perl", "php", "pkill", "python", "python3", "rm", "ruby", "sed", "sh", "ssh", "sudo", "wget",
];
/// Programs whose second word is a command of its own.
const WITH_SUBCOMMANDS: [&str; 21] = [
    "apt",
    "brew",
    "bundle",
    "cargo",
    "composer",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "just",
    "make",
    "mix",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "rustup",
    "terraform",
    "uv",
    "yarn",
];

/// A proposed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    pub rule: Rule,
    /// The number of past requests, or parts of them, that it matches.
    pub answers: usize,
}

/// A part of a request that one rule can answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestPart {
    kind: Kind,
    /// The subject as an exact pattern.
    exact: String,
    /// The subject as wider patterns, the widest first.
    wider: Vec<String>,
}

/// Proposes the fewest rules that would have answered the most requests. None of them contradicts an answer.
pub fn suggest(past: &[PastRequest]) -> Vec<Suggestion> {
    let mut suggestions = Vec::new();
    let mut counts: BTreeMap<RequestPart, usize> = BTreeMap::new();
    for request in past.iter().filter(|past| past.answer == Some(Answer::Approved)) {
        for part in parts(&request.request) {
            *counts.entry(part).or_default() += 1;
        }
    }
    let refused: BTreeSet<&Request> = unique(past, Answer::Denied);
    let accepted: BTreeSet<&Request> = unique(past, Answer::Approved);
    let mut candidates: BTreeMap<(Kind, String), Vec<&RequestPart>> = BTreeMap::new();
    for part in counts.keys() {
        for pattern in part.wider.iter().chain([&part.exact]) {
            candidates.entry((part.kind, pattern.clone())).or_default().push(part);
        }
    }
    let weight = |parts: &[&RequestPart]| parts.iter().filter_map(|part| counts.get(*part)).sum::<usize>();
    // A wider pattern for a single subject says no more than the exact one.
    candidates.retain(|_, parts| weight(parts) >= MIN_ANSWERS);
    candidates.retain(|(_, pattern), parts| parts.len() > 1 || parts.iter().all(|part| part.exact == *pattern));
    let mut order: Vec<_> = candidates.into_iter().collect();
    order.sort_by_key(|(_, parts)| std::cmp::Reverse(weight(parts)));
    order.truncate(MAX_CANDIDATES);
    let mut answered: BTreeSet<&RequestPart> = BTreeSet::new();
    while suggestions.len() < MAX_SUGGESTIONS && !order.is_empty() {
        let left = |parts: &[&RequestPart]| {
            parts.iter().filter(|part| !answered.contains(**part)).filter_map(|part| counts.get(*part)).sum::<usize>()
        };
        let best = order.iter().enumerate().max_by_key(|(_, ((_, pattern), parts))| (left(parts), pattern.len()));
        let Some((at, _)) = best else { break };
        let ((kind, pattern), parts) = order.swap_remove(at);
        let answers = left(&parts);
        if answers < MIN_ANSWERS {
            break;
        }
        let Some(rule) = rule(Verdict::Allow, kind, &[pattern]) else { continue };
        if !refused.iter().any(|request| touches(&rule, request)) {
            answered.extend(parts);
            suggestions.push(Suggestion { rule, answers });
        }
    }
    suggestions.extend(denials(past, &accepted));
    suggestions.truncate(MAX_SUGGESTIONS);
    suggestions
}

/// The rules that would allow a request always, each alternative with all rules that it needs, the narrowest first.
///
/// The first alternative is exact. The second allows the same command with any arguments, or the folder of a path. There is
/// none for a request that is not known well enough.
pub fn offers(request: &Request) -> Vec<Vec<Rule>> {
    let parts = parts(request);
    let exact = parts.iter().map(|part| (part.kind, part.exact.clone()));
    let wider = parts.iter().map(|part| (part.kind, part.wider.last().unwrap_or(&part.exact).clone()));
    let mut offers: Vec<Vec<Rule>> = Vec::new();
    for patterns in [exact.collect::<Vec<_>>(), wider.collect()] {
        let Some(rules) = allowing(&patterns) else { continue };
        let policy = Policy::from_iter([RuleSet::of_session(rules.clone())]);
        if !offers.contains(&rules) && policy.judge(request).verdict == Verdict::Allow {
            offers.push(rules);
        }
    }
    offers
}

/// One rule for each kind of these patterns.
fn allowing(patterns: &[(Kind, String)]) -> Option<Vec<Rule>> {
    let mut by_kind: BTreeMap<Kind, Vec<&String>> = BTreeMap::new();
    for (kind, pattern) in patterns {
        let of_kind = by_kind.entry(*kind).or_default();
        if !of_kind.contains(&pattern) {
            of_kind.push(pattern);
        }
    }
    by_kind.into_iter().map(|(kind, patterns)| rule(Verdict::Allow, kind, &patterns)).collect()
}

fn unique(past: &[PastRequest], answer: Answer) -> BTreeSet<&Request> {
    past.iter().filter(|past| past.answer == Some(answer)).map(|past| &past.request).collect()
}

/// True if a rule allows a part of a request that a person denied, or denies one that a person allowed.
fn touches(rule: &Rule, request: &Request) -> bool {
    let deny = Rule { verdict: Verdict::Deny, ..rule.clone() };
    Policy::from_iter([RuleSet::of_session([deny])]).judge(request).verdict != Verdict::Ask
}

/// Rules for subjects that were denied several times, and never allowed.
fn denials(past: &[PastRequest], accepted: &BTreeSet<&Request>) -> Vec<Suggestion> {
    let mut counts: BTreeMap<(Kind, String), usize> = BTreeMap::new();
    for request in past.iter().filter(|past| past.answer == Some(Answer::Denied)) {
        // Which part of a compound command was refused is not known.
        if let [part] = &parts(&request.request)[..] {
            *counts.entry((part.kind, part.exact.clone())).or_default() += 1;
        }
    }
    let mut found = Vec::new();
    for ((kind, pattern), answers) in counts.into_iter().filter(|(_, answers)| *answers >= MIN_ANSWERS) {
        let Some(rule) = rule(Verdict::Deny, kind, &[pattern]) else { continue };
        if !accepted.iter().any(|request| touches(&rule, request)) {
            found.push(Suggestion { rule, answers });
        }
    }
    found
}

fn rule<T: AsRef<str>>(verdict: Verdict, kind: Kind, patterns: &[T]) -> Option<Rule> {
    let selector = match kind {
        Kind::Shell => Selector::Commands(each(patterns, CommandPattern::parse)?),
        Kind::Read | Kind::Edit => Selector::Paths { kinds: vec![kind], patterns: each(patterns, PathPattern::parse)? },
        Kind::Fetch => Selector::Hosts(each(patterns, HostPattern::parse)?),
        Kind::Mcp => Selector::Tools(each(patterns, NamePattern::parse)?),
    };
    Some(Rule::new(verdict, selector))
}

fn each<T: AsRef<str>, P>(patterns: &[T], parse: impl Fn(&str) -> Result<P, PatternError>) -> Option<Vec<P>> {
    patterns.iter().map(|pattern| parse(pattern.as_ref()).ok()).collect()
}

/// The parts of a request; none if it is not known well enough.
fn parts(request: &Request) -> Vec<RequestPart> {
    let part = |kind, exact: String, wider| RequestPart { kind, exact, wider };
    match &request.action {
        RequestAction::Shell { command } => {
            let script = shell::parse(command);
            if script.unknown.is_some() {
                return Vec::new();
            }
            let commands = script.commands.iter().filter(|command| needs_rule(command)).map(command_part);
            let written = script.accesses.iter().filter(|access| access.writes).map(|access| {
                let path = access.path.known().filter(|_| !access.is_elsewhere)?;
                path_part(Kind::Edit, &path, request)
            });
            commands.chain(written).collect::<Option<Vec<_>>>().unwrap_or_default()
        }
        RequestAction::Read { paths } => paths.iter().map_while(|path| path_part(Kind::Read, path, request)).collect(),
        RequestAction::Edit { paths } => paths.iter().map_while(|path| path_part(Kind::Edit, path, request)).collect(),
        RequestAction::Fetch { url } => host_of(url).map(|host| part(Kind::Fetch, host, vec![])).into_iter().collect(),
        RequestAction::Mcp { tool } if !tool.contains('*') => vec![part(Kind::Mcp, tool.clone(), vec![])],
        RequestAction::Mcp { .. } | RequestAction::Unknown { .. } => Vec::new(),
    }
}

fn command_part(command: &Command) -> Option<RequestPart> {
    if !command.assignments.iter().all(|set| set.is_harmless()) {
        return None;
    }
    let words: Vec<String> = command.words.iter().map(|word| word.known()).collect::<Option<_>>()?;
    let exact = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let name = words.first()?.as_str();
    let mut wider = Vec::new();
    let has_subcommands = WITH_SUBCOMMANDS.contains(&name);
    let is_plain = |word: &String| !word.starts_with('-') && !word.contains(['/', ' ', '*']);
    match words.get(1).filter(|word| is_plain(word)) {
        // "npm run x": the third word says what runs.
        Some(run) if has_subcommands && run == "run" => {
            wider.extend(
                words.get(2).filter(|word| is_plain(word)).map(|script| format!("{name} run {} *", quote(script))),
            );
        }
        Some(second) if has_subcommands => wider.push(format!("{name} {} *", quote(second))),
        _ if !has_subcommands && !EXACT_ONLY.contains(&name) && !name.contains('/') => {
            wider.push(format!("{} *", quote(name)));
        }
        _ => {}
    }
    Some(RequestPart { kind: Kind::Shell, exact, wider })
}

fn path_part(kind: Kind, path: &str, request: &Request) -> Option<RequestPart> {
    let path = normalize(path, request.directory.as_deref(), request.home.as_deref())?;
    if path.contains(['*', '?']) {
        return None;
    }
    let inside = request.directory.as_deref().and_then(|directory| path.strip_prefix(directory)?.strip_prefix('/'));
    let mut wider = Vec::new();
    let exact = match inside {
        Some(inside) => {
            wider.extend(inside.split_once('/').map(|(top, _)| format!("{top}/**")));
            wider.extend(
                inside
                    .rsplit_once('/')
                    .map(|(folder, _)| format!("{folder}/**"))
                    .filter(|folder| !wider.contains(folder)),
            );
            if inside.contains('/') { inside.to_owned() } else { format!("./{inside}") }
        }
        None => path.clone(),
    };
    Some(RequestPart { kind, exact, wider })
}
