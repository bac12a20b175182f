//! The permission rules: reading, trying and changing them, and judging past requests.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grove_core::Timestamp;
use grove_host::administration::AdministrationRefusal;
use grove_host::{Clock, SystemClock, resolve_links};
use grove_policy::replay::{Answer, replay_with};
use grove_policy::suggest::suggest;
use grove_policy::{Decision, NamePattern, Policy, Request, RequestAction, Rule, RuleSet, Source, SourcedRule};
use grove_wire::x_grove::administration::rules::*;
use tokio::sync::Semaphore;

use super::refusal::{failed, invalid, joined, wrong_state};
use crate::past_requests::PastRequests;
use crate::policy_edits::{self, RemoveRuleError};
use crate::policy_files::{PolicyFiles, RulesFile};
use crate::settings::Settings;
use crate::show::table::cut;

/// The past that is looked at if a request names none, in milliseconds.
const DEFAULT_PAST_MS: u64 = 30 * 86_400_000;
/// The longest text of rules that is accepted, in bytes.
pub(crate) const MAX_RULES_TEXT: usize = 64 << 10;
/// The differences of a replay that are kept for the next pages.
pub(crate) const MAX_DIFFERENCES: usize = 2_000;
/// The most differences in a page, and their number if a request names none.
pub(crate) const MAX_PAGE: usize = 500;
const PAGE: usize = 50;
/// The most suggested rules in an answer.
pub(crate) const MAX_SUGGESTIONS: usize = 100;
/// The characters that are shown of a request's subject.
const SUBJECT_CHARS: usize = 500;
/// The longest path, command or name to judge, in bytes.
pub(crate) const MAX_SUBJECT: usize = 64 << 10;

pub(super) struct RuleAdministration {
    files: Arc<PolicyFiles>,
    /// Past requests are collected one client at a time. Further ones wait.
    replays: Arc<Semaphore>,
    /// The newest replay, for its next pages.
    newest: Mutex<Option<Arc<Replay>>>,
}

/// A replay of past requests.
struct Replay {
    since: Timestamp,
    /// The rules that were tried in addition.
    tried: Option<String>,
    /// The numbers, without differences.
    summary: TestRulesResult,
    differences: Vec<RuleDifference>,
}

/// Tells work on another thread to stop when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl RuleAdministration {
    pub(super) fn new(files: Arc<PolicyFiles>) -> Self {
        Self { files, replays: Arc::new(Semaphore::new(1)), newest: Mutex::default() }
    }

    pub(super) async fn list(
        &self,
        settings: &Settings,
        params: RulesParams,
    ) -> Result<RulesResult, AdministrationRefusal> {
        let folder = folder(params.cwd.as_deref())?;
        let files = self.files.clone();
        let found = tokio::task::spawn_blocking(move || files.files_for(folder.as_deref())).await.map_err(joined)?;
        let policy = PolicyFiles::policy(&found);
        let file = |file: &RulesFile| RulesFileRow {
            path: file.path.display().to_string(),
            trusted: file.is_trusted,
            rules: file.rules.rules.len(),
            problem: file.problem.clone(),
        };
        Ok(RulesResult {
            file: settings.config_file.display().to_string(),
            files: found.iter().map(file).collect(),
            rules: policy.rules().iter().map(sourced_row).collect(),
        })
    }

    pub(super) async fn check(&self, params: CheckRulesParams) -> Result<CheckRulesResult, AdministrationRefusal> {
        let CheckRulesParams { subject, cwd, agent } = params;
        let folder = folder(cwd.as_deref())?;
        let mut action = match subject {
            RuleSubject::Shell { command } => RequestAction::Shell { command },
            RuleSubject::Read { path } => RequestAction::Read { paths: vec![path] },
            RuleSubject::Edit { path } => RequestAction::Edit { paths: vec![path] },
            RuleSubject::Fetch { url } => RequestAction::Fetch { url },
            RuleSubject::Mcp { tool } => RequestAction::Mcp { tool },
        };
        if subject_text(&action).len() > MAX_SUBJECT || agent.as_ref().is_some_and(|agent| agent.len() > MAX_SUBJECT) {
            return Err(invalid(format!("a request to judge has at most {MAX_SUBJECT} bytes")));
        }
        let files = self.files.clone();
        let judge = move || {
            resolve_links(files.as_ref(), folder.as_deref(), &mut action);
            let mut request = Request::new(agent.as_deref().unwrap_or("claude"), action).with_home(&files.home());
            if let Some(folder) = &folder {
                request = request.in_directory(&folder.to_string_lossy());
            }
            PolicyFiles::policy(&files.files_for(folder.as_deref())).judge(&request)
        };
        let decision = tokio::task::spawn_blocking(judge).await.map_err(joined)?;
        let (verdict, rule, why) = decision_parts(&decision);
        Ok(CheckRulesResult { verdict, rule, why })
    }

    /// Judges past requests. Collecting them stops when the client goes.
    pub(super) async fn test(
        &self,
        settings: Arc<Settings>,
        params: TestRulesParams,
    ) -> Result<TestRulesResult, AdministrationRefusal> {
        let TestRulesParams { since_ms, rules, cursor, limit } = params;
        let first = cursor.as_deref().map(read_cursor).transpose()?.unwrap_or(0);
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let tried = match &rules {
            Some(text) => parse(text)?,
            None => RuleSet::default(),
        };
        let known = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_same = |known: &Arc<Replay>| {
            cursor.is_some() && known.tried == rules && since_ms.is_none_or(|since| since == known.since.0)
        };
        if let Some(known) = known.filter(is_same) {
            return Ok(page(&known, first, limit));
        }
        let since = since_or_default(since_ms);
        let files = self.files.clone();
        let replayed = move |stop: &AtomicBool| replay_past(&settings, &files, since, (rules, tried), stop);
        let replay = Arc::new(self.work(replayed).await?);
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(replay.clone());
        Ok(page(&replay, first, limit))
    }

    pub(super) async fn suggest(
        &self,
        settings: Arc<Settings>,
        params: SuggestRulesParams,
    ) -> Result<SuggestRulesResult, AdministrationRefusal> {
        let since = since_or_default(params.since_ms);
        let found = move |stop: &AtomicBool| {
            let past = PastRequests::collect_until(&settings, since, stop);
            let suggestions = suggest(&past.requests).into_iter().take(MAX_SUGGESTIONS);
            let suggestions = suggestions.map(|one| RuleSuggestion { rule: row(&one.rule), answers: one.answers });
            SuggestRulesResult {
                since_ms: since.0,
                requests: past.requests.len(),
                sources: sources(&past),
                suggestions: suggestions.collect(),
            }
        };
        self.work(found).await
    }

    pub(super) async fn add(
        &self,
        settings: &Settings,
        params: AddRulesParams,
    ) -> Result<RulesChangedResult, AdministrationRefusal> {
        let rules: Vec<Rule> = parse(&params.toml)?.rules.into_iter().map(|rule| rule.rule).collect();
        if rules.is_empty() {
            return Err(invalid("there is no rule: write it as a table [[policy.rules]]"));
        }
        let texts = rules.iter().map(ToString::to_string).collect();
        let file = settings.config_file.clone();
        let written = file.clone();
        let added = tokio::task::spawn_blocking(move || policy_edits::add_to_settings(&written, &rules));
        added.await.map_err(joined)?.map_err(|error| failed(format!("{error:#}")))?;
        Ok(RulesChangedResult { file: file.display().to_string(), rules: texts })
    }

    pub(super) async fn remove(
        &self,
        settings: &Settings,
        params: RemoveRuleParams,
    ) -> Result<RulesChangedResult, AdministrationRefusal> {
        let file = settings.config_file.clone();
        let written = file.clone();
        let RemoveRuleParams { line, toml } = params;
        let remove = move || policy_edits::remove_from_settings(&written, line, &toml);
        let removed = tokio::task::spawn_blocking(remove).await.map_err(joined)?;
        let removed = removed.map_err(|error| match error {
            RemoveRuleError::Changed { .. } => wrong_state(error.to_string()),
            RemoveRuleError::File(error) => failed(format!("{error:#}")),
        })?;
        Ok(RulesChangedResult { file: file.display().to_string(), rules: vec![removed.to_string()] })
    }

    /// Runs long work on a thread of its own, and tells it to stop when nobody waits for it any more.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, AdministrationRefusal> {
        let stop = Arc::new(AtomicBool::new(false));
        let _stops = StopOnDrop(stop.clone());
        let slot = self.replays.clone().acquire_owned().await.map_err(|error| failed(error.to_string()))?;
        let run = move || {
            // Stopped work keeps its place until it has ended.
            let _slot = slot;
            work(&stop)
        };
        tokio::task::spawn_blocking(run).await.map_err(joined)
    }
}

fn replay_past(
    settings: &Settings,
    files: &PolicyFiles,
    since: Timestamp,
    (text, tried): (Option<String>, RuleSet),
    stop: &AtomicBool,
) -> Replay {
    let past = PastRequests::collect_until(settings, since, stop);
    // The rules of a repository count for the requests in its folders.
    let mut policies: HashMap<Option<String>, Policy> = HashMap::new();
    for past in &past.requests {
        let directory = &past.request.directory;
        if !policies.contains_key(directory) {
            let found = files.files_for(directory.as_deref().map(Path::new));
            policies.insert(directory.clone(), PolicyFiles::policy(&found).with(tried.clone()));
        }
    }
    let none = Policy::default();
    let report = replay_with(|request| policies.get(&request.directory).unwrap_or(&none), &past.requests);
    let difference = |difference: &grove_policy::replay::Difference| {
        let request = &past.requests.get(difference.index)?.request;
        let record = past.records.get(difference.index)?;
        let (verdict, rule, _) = decision_parts(&difference.decision);
        Some(RuleDifference {
            verdict,
            rule,
            answer: match difference.answer {
                Answer::Approved => "approved".to_owned(),
                Answer::Denied => "denied".to_owned(),
            },
            agent: request.agent.clone(),
            kind: request.action.kind().map(|kind| kind.name().to_owned()),
            subject: cut(&subject_text(&request.action), SUBJECT_CHARS),
            directory: request.directory.clone(),
            session: record.session.clone(),
            source: record.source.to_owned(),
            at: record.at.0,
        })
    };
    let mut differences: Vec<RuleDifference> = report.differences.iter().filter_map(difference).collect();
    differences.sort_by_key(|difference| std::cmp::Reverse(difference.at));
    differences.truncate(MAX_DIFFERENCES);
    let summary = TestRulesResult {
        since_ms: since.0,
        requests: report.requests,
        sources: sources(&past),
        allowed: report.allowed,
        denied: report.denied,
        asked: report.asked,
        agreed: report.agreed,
        differed: report.differences.len(),
        ..TestRulesResult::default()
    };
    Replay { since, tried: text, summary, differences }
}

/// A page of a replay's differences, with its numbers.
fn page(replay: &Replay, first: usize, limit: usize) -> TestRulesResult {
    let end = first.saturating_add(limit).min(replay.differences.len());
    TestRulesResult {
        differences: replay.differences.get(first..end).unwrap_or_default().to_vec(),
        next_cursor: (end < replay.differences.len()).then(|| end.to_string()),
        ..replay.summary.clone()
    }
}

fn read_cursor(cursor: &str) -> Result<usize, AdministrationRefusal> {
    cursor.parse().map_err(|_| invalid("`cursor` is not one of x-grove/policy/test"))
}

fn since_or_default(since: Option<u64>) -> Timestamp {
    Timestamp(since.unwrap_or_else(|| SystemClock.now().0.saturating_sub(DEFAULT_PAST_MS)))
}

/// The folder that a request names: an absolute path, or a `file:` URI.
fn folder(cwd: Option<&str>) -> Result<Option<PathBuf>, AdministrationRefusal> {
    cwd.map(|cwd| grove_work::local_path(cwd).map_err(|error| invalid(format!("`cwd`: {error}")))).transpose()
}

fn parse(text: &str) -> Result<RuleSet, AdministrationRefusal> {
    if text.len() > MAX_RULES_TEXT {
        return Err(invalid(format!("a text of rules has at most {MAX_RULES_TEXT} bytes")));
    }
    RuleSet::parse_settings(text, "rules").map_err(|error| invalid(error.to_string()))
}

fn sources(past: &PastRequests<'_>) -> BTreeMap<String, usize> {
    past.by_source().into_iter().map(|(source, count)| (source.to_owned(), count)).collect()
}

fn decision_parts(decision: &Decision) -> (String, Option<RuleRow>, Option<String>) {
    let rule = decision.rule.as_ref().map(sourced_row);
    (decision.verdict.to_string(), rule, decision.why.as_ref().map(ToString::to_string))
}

fn row(rule: &Rule) -> RuleRow {
    RuleRow {
        text: rule.to_string(),
        toml: rule.to_toml("policy.rules"),
        verdict: rule.verdict.to_string(),
        kinds: rule.kinds().iter().map(|kind| kind.name().to_owned()).collect(),
        patterns: rule.patterns().into_iter().map(ToOwned::to_owned).collect(),
        agents: rule.agents.iter().map(NamePattern::as_str).map(ToOwned::to_owned).collect(),
        reason: rule.reason.clone(),
        ..RuleRow::default()
    }
}

/// A rule with its place.
fn sourced_row(sourced: &SourcedRule) -> RuleRow {
    let source = match sourced.origin.source {
        Source::Settings => Some("settings"),
        Source::Repository => Some("repository"),
        Source::Session => None,
    };
    // A rule that is only tried stands in no file.
    let file = sourced.origin.file.clone().filter(|file| file.contains('/'));
    RuleRow {
        source: source.filter(|_| file.is_some()).map(ToOwned::to_owned),
        line: sourced.origin.line.filter(|_| file.is_some()),
        file,
        ..row(&sourced.rule)
    }
}

/// The subject of a request.
fn subject_text(action: &RequestAction) -> String {
    match action {
        RequestAction::Read { paths } | RequestAction::Edit { paths } => paths.join(" "),
        RequestAction::Shell { command } => command.clone(),
        RequestAction::Fetch { url } => url.clone(),
        RequestAction::Mcp { tool } => tool.clone(),
        RequestAction::Unknown { .. } => String::new(),
    }
}
