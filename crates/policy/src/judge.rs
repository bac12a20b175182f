//! Judging a request.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use crate::pattern::glob::{Certainty, TextToken};
use crate::pattern::{PathText, host_of, hosts_in, is_process_path, normalize};
use crate::request::{Kind, Request, RequestAction};
use crate::rule::{Policy, Rule, Selector, SourcedRule, Verdict};
use crate::shell::{self, Command, ShellScript, ShellWord, UnknownReason, WordPiece};

/// The maximum number of folders in which the paths of a command are looked for.
pub const MAX_FOLDERS: usize = 16;

/// The maximum number of distinct paths, or hosts, of a command.
pub const MAX_PATHS: usize = 4_096;

/// The answer of a policy to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rule that decided. If several rules allow the parts of a command, it is the first part's.
    pub rule: Option<SourcedRule>,
    /// The reason for a question, if no rule decided.
    pub why: Option<AskReason>,
}

/// The reason why a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskReason {
    /// No rule allows this: a command, path, host or tool.
    NoRule(String),
    /// A rule that denies or asks may match: the request is not known well enough.
    MayMatch,
    /// The request cannot be known before it is carried out.
    Unknown(String),
}

impl fmt::Display for AskReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskReason::NoRule(what) => write!(f, "no rule allows {what}"),
            AskReason::MayMatch => f.write_str("a rule may match, depending on values that are known only later"),
            AskReason::Unknown(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Decision {
    /// The decision for people: the rule and its place, or the reason for a question.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.rule, &self.why) {
            (Some(SourcedRule { rule, origin }), why) => {
                write!(f, "{rule} ({origin})")?;
                rule.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))?;
                why.iter().try_for_each(|why| write!(f, "; {why}"))
            }
            (None, Some(why)) => why.fmt(f),
            (None, None) => f.write_str("everything is allowed that no rule denies"),
        }
    }
}

/// A request, prepared for comparing it with many rules.
struct Subject<'a> {
    request: &'a Request,
    script: ShellScript,
    paths: Vec<PathText>,
    /// Paths that a shell command may read or write, from its words.
    named_paths: Vec<PathText>,
    written: Vec<PathText>,
    host: Option<String>,
    /// Hosts that a shell command names. Without a scheme, a word only may be one.
    named_hosts: Vec<(Option<String>, Certainty)>,
}

impl Policy {
    /// Judges a request: rules that deny, then rules that ask, then rules that allow.
    pub fn judge(&self, request: &Request) -> Decision {
        let subject = Subject::of(request);
        let rules = || self.rules.iter().filter(|rule| rule.rule.is_for(&request.agent));
        let mut uncertain = None;
        for verdict in [Verdict::Deny, Verdict::Ask] {
            for rule in rules().filter(|rule| rule.rule.verdict == verdict) {
                match subject.is_covered_by(&rule.rule) {
                    Certainty::Yes => return Decision { verdict, rule: Some(rule.clone()), why: None },
                    Certainty::Maybe => {
                        uncertain.get_or_insert(rule);
                    }
                    Certainty::No => {}
                }
            }
        }
        if let Some(rule) = uncertain {
            return Decision { verdict: Verdict::Ask, rule: Some(rule.clone()), why: Some(AskReason::MayMatch) };
        }
        if self.allows_all {
            return Decision { verdict: Verdict::Allow, rule: None, why: None };
        }
        let allowing: Vec<&SourcedRule> = rules().filter(|rule| rule.rule.verdict == Verdict::Allow).collect();
        match subject.allowed_by(&allowing) {
            Ok(rule) => Decision { verdict: Verdict::Allow, rule: Some(rule.clone()), why: None },
            Err(why) => Decision { verdict: Verdict::Ask, rule: None, why: Some(why) },
        }
    }
}

impl<'a> Subject<'a> {
    fn of(request: &'a Request) -> Self {
        let mut subject = Self {
            request,
            script: ShellScript::default(),
            paths: Vec::new(),
            named_paths: Vec::new(),
            written: Vec::new(),
            host: None,
            named_hosts: Vec::new(),
        };
        match &request.action {
            RequestAction::Read { paths } | RequestAction::Edit { paths } => {
                subject.paths = paths.iter().map(|path| subject.path(path)).collect();
                if paths.is_empty() {
                    subject.paths.push(PathText::Unknown);
                }
            }
            RequestAction::Shell { command } => {
                subject.script = shell::parse(command);
                subject.read_script();
            }
            RequestAction::Fetch { url } => subject.host = host_of(url),
            RequestAction::Mcp { .. } | RequestAction::Unknown { .. } => {}
        }
        subject
    }

    fn path(&self, path: &str) -> PathText {
        let normal = normalize(path, self.request.directory.as_deref(), self.request.home.as_deref());
        PathText::of(normal)
    }

    /// Finds the paths and hosts that the words of a command name.
    fn read_script(&mut self) {
        let mut script = std::mem::take(&mut self.script);
        let folders = self.folders(&script);
        for access in &script.accesses {
            let first = std::slice::from_ref(&self.request.directory);
            let folders = if access.is_elsewhere { folders.as_deref() } else { Some(first) };
            let paths = self.word_paths(&access.path, folders);
            match access.writes {
                true => self.written.extend(paths),
                false => self.named_paths.extend(paths),
            }
        }
        let (mut hosts, mut paths) = (BTreeSet::new(), HashSet::new());
        for path in script.accesses.iter().map(|access| &access.path) {
            // A file may also be a connection: "/dev/tcp/host/80".
            let is_open = path.has_unknown() && !path.display().starts_with(|c: char| c.is_ascii_alphanumeric());
            hosts.extend(word_hosts(path).into_iter().filter(|(host, _)| host.is_some() || is_open));
        }
        for word in script.commands.iter().flat_map(|command| command.words.iter().skip(1)) {
            hosts.extend(word_hosts(word));
            for word in candidates(word) {
                paths.extend(self.word_paths(&word, folders.as_deref()));
            }
            if paths.len() > MAX_PATHS || hosts.len() > MAX_PATHS {
                script.note(UnknownReason::TooLarge);
                break;
            }
        }
        self.named_hosts.extend(hosts);
        self.named_paths.extend(paths);
        self.script = script;
    }

    /// The folders that the shell may be in; `None` if they are not known.
    fn folders(&self, script: &ShellScript) -> Option<Vec<Option<String>>> {
        let mut folders = vec![self.request.directory.clone()];
        for command in script.commands.iter().filter(|command| shell::changes_folder(&command.words)) {
            let inner = command.words.get(1).and_then(ShellWord::known).filter(|_| command.is_covered)?;
            let deeper = folders.iter().map(|folder| Some(format!("{}/{inner}", folder.as_ref()?)));
            folders.extend(deeper.collect::<Vec<_>>());
            if folders.len() > MAX_FOLDERS {
                return None;
            }
        }
        Some(folders)
    }

    /// The paths that a word may be, in each of the folders.
    fn word_paths(&self, word: &ShellWord, folders: Option<&[Option<String>]>) -> Vec<PathText> {
        let is_absolute = word.display().starts_with(['/', '~']);
        match folders {
            Some(folders) if !is_absolute => {
                folders.iter().map(|folder| self.word_path(word, folder.as_deref())).collect()
            }
            None if !is_absolute => vec![elsewhere(word)],
            _ => vec![self.word_path(word, self.request.directory.as_deref())],
        }
    }

    fn word_path(&self, word: &ShellWord, directory: Option<&str>) -> PathText {
        if let Some(text) = word.known() {
            let normal = normalize(&text, directory, self.request.home.as_deref());
            return PathText::of(normal);
        }
        let text = word.display();
        let text = text.strip_prefix("./").unwrap_or(&text);
        // A pattern such as ".*" may become "..".
        let may_climb = text.split('/').any(|name| name.starts_with('.'));
        if word.has_unknown() || may_climb || text.contains("//") {
            return PathText::Unknown;
        }
        let mut tokens = word.tokens();
        if tokens.starts_with(&[TextToken::Char('.'), TextToken::Char('/')]) {
            tokens.drain(..2);
        }
        match (tokens.first(), directory) {
            (Some(TextToken::Char('/')), _) if is_process_path(text) => PathText::Unknown,
            (Some(TextToken::Char('/')), _) => PathText::Partial(tokens),
            (Some(TextToken::Char('~')), _) => PathText::Unknown,
            (Some(TextToken::Char(_) | TextToken::UnknownName), Some(directory)) => {
                let base = directory.trim_end_matches('/').chars().chain(['/']).map(TextToken::Char);
                tokens.splice(0..0, base);
                PathText::Partial(tokens)
            }
            _ => PathText::Unknown,
        }
    }

    /// How certainly a rule that denies or asks applies.
    fn is_covered_by(&self, rule: &Rule) -> Certainty {
        let kind = self.request.action.kind();
        let is_unread = self.script.unknown.is_some();
        match &rule.selector {
            Selector::Kinds(kinds) => match kind {
                Some(Kind::Shell) => {
                    let writes = !self.written.is_empty() && kinds.contains(&Kind::Edit);
                    Certainty::from(kinds.contains(&Kind::Shell) || writes)
                }
                Some(kind) => kinds.contains(&kind).into(),
                None if kinds.len() == Kind::ALL.len() => Certainty::Yes,
                None => Certainty::Maybe,
            },
            Selector::Commands(patterns) => match &self.request.action {
                RequestAction::Shell { .. } => {
                    let commands = self.script.commands.iter();
                    let found = commands.flat_map(|command| patterns.iter().map(|pattern| pattern.covers(command)));
                    let unread = if is_unread { Certainty::Maybe } else { Certainty::No };
                    found.fold(unread, Ord::max)
                }
                RequestAction::Unknown { kind: None | Some(Kind::Shell) } => Certainty::Maybe,
                _ => Certainty::No,
            },
            Selector::Paths { kinds, patterns } => self.paths_covered_by(kinds, patterns),
            Selector::Hosts(patterns) => {
                let covers = |(host, most): &(Option<String>, Certainty)| match host {
                    Some(host) if *most == Certainty::Yes => {
                        patterns.iter().any(|pattern| pattern.matches(host)).into()
                    }
                    Some(host) => Certainty::from(patterns.iter().any(|pattern| pattern.may_match(host))).min(*most),
                    None => Certainty::Maybe,
                };
                match &self.request.action {
                    RequestAction::Fetch { .. } => covers(&(self.host.clone(), Certainty::Yes)),
                    RequestAction::Shell { .. } => {
                        let unread = if is_unread { Certainty::Maybe } else { Certainty::No };
                        self.named_hosts.iter().map(covers).fold(unread, Ord::max)
                    }
                    RequestAction::Unknown { kind: None | Some(Kind::Fetch) } => Certainty::Maybe,
                    _ => Certainty::No,
                }
            }
            Selector::Tools(patterns) => match &self.request.action {
                RequestAction::Mcp { tool } => patterns.iter().any(|pattern| pattern.matches(tool)).into(),
                RequestAction::Unknown { kind: None | Some(Kind::Mcp) } => Certainty::Maybe,
                _ => Certainty::No,
            },
        }
    }

    fn paths_covered_by(&self, kinds: &[Kind], patterns: &[crate::PathPattern]) -> Certainty {
        let (directory, home) = (self.request.directory.as_deref(), self.request.home.as_deref());
        let covers = |path: &PathText| {
            let each = patterns.iter().map(|pattern| pattern.covers(path, directory, home));
            each.fold(Certainty::No, Ord::max)
        };
        let all = |paths: &[PathText]| paths.iter().map(covers).fold(Certainty::No, Ord::max);
        match &self.request.action {
            RequestAction::Read { .. } if kinds.contains(&Kind::Read) => all(&self.paths),
            RequestAction::Edit { .. } if kinds.contains(&Kind::Edit) => all(&self.paths),
            RequestAction::Shell { .. } => {
                let unread = if self.script.unknown.is_some() { Certainty::Maybe } else { Certainty::No };
                let written = if kinds.contains(&Kind::Edit) { all(&self.written) } else { Certainty::No };
                // Whether a program writes the file that it is given is not known.
                let named = all(&self.named_paths);
                let named = if kinds.contains(&Kind::Read) { named } else { named.min(Certainty::Maybe) };
                unread.max(written).max(named)
            }
            RequestAction::Unknown { kind } if kind.is_none_or(|kind| kinds.contains(&kind)) => Certainty::Maybe,
            _ => Certainty::No,
        }
    }

    /// The rule that allows the request. Each part of a command needs one.
    fn allowed_by<'r>(&self, rules: &[&'r SourcedRule]) -> Result<&'r SourcedRule, AskReason> {
        let (directory, home) = (self.request.directory.as_deref(), self.request.home.as_deref());
        let find = |what: String, allows: &dyn Fn(&Rule) -> bool| {
            rules.iter().copied().find(|rule| allows(&rule.rule)).ok_or(AskReason::NoRule(what))
        };
        let path = |kind: Kind, path: &PathText| {
            let PathText::Known(text) = path else {
                return Err(AskReason::Unknown(format!("the path of the {kind} is not known")));
            };
            find(format!("the {kind} of {text}"), &|rule| match &rule.selector {
                Selector::Kinds(kinds) => kinds.contains(&kind),
                Selector::Paths { kinds, patterns } => {
                    let is_match =
                        |pattern: &crate::PathPattern| pattern.matches(path, directory, home) == Certainty::Yes;
                    kinds.contains(&kind) && patterns.iter().any(is_match)
                }
                Selector::Commands(_) | Selector::Hosts(_) | Selector::Tools(_) => false,
            })
        };
        match &self.request.action {
            RequestAction::Read { .. } => first(self.paths.iter().map(|text| path(Kind::Read, text))),
            RequestAction::Edit { .. } => first(self.paths.iter().map(|text| path(Kind::Edit, text))),
            RequestAction::Shell { .. } => {
                if let Some(unknown) = &self.script.unknown {
                    return Err(AskReason::Unknown(unknown.to_string()));
                }
                let command = |command: &Command| {
                    find(display(command), &|rule| match &rule.selector {
                        Selector::Kinds(kinds) => kinds.contains(&Kind::Shell),
                        Selector::Commands(patterns) => {
                            patterns.iter().any(|pattern| pattern.matches(command) == Certainty::Yes)
                        }
                        Selector::Paths { .. } | Selector::Hosts(_) | Selector::Tools(_) => false,
                    })
                };
                let commands = self.script.commands.iter().filter(|command| needs_rule(command)).map(command);
                first(commands.chain(self.written.iter().map(|text| path(Kind::Edit, text))))
            }
            RequestAction::Fetch { url } => {
                let Some(host) = &self.host else {
                    return Err(AskReason::Unknown(format!("the host of {url:?} is not certain")));
                };
                find(format!("the host {host}"), &|rule| match &rule.selector {
                    Selector::Kinds(kinds) => kinds.contains(&Kind::Fetch),
                    Selector::Hosts(patterns) => patterns.iter().any(|pattern| pattern.matches(host)),
                    Selector::Commands(_) | Selector::Paths { .. } | Selector::Tools(_) => false,
                })
            }
            RequestAction::Mcp { tool } => find(format!("the tool {tool}"), &|rule| match &rule.selector {
                Selector::Kinds(kinds) => kinds.contains(&Kind::Mcp),
                Selector::Tools(patterns) => patterns.iter().any(|pattern| pattern.matches(tool)),
                Selector::Commands(_) | Selector::Paths { .. } | Selector::Hosts(_) => false,
            }),
            RequestAction::Unknown { .. } => {
                Err(AskReason::Unknown("the agent does not say what it would do".to_owned()))
            }
        }
    }
}

/// The first rule, if every part has one.
fn first<'r>(parts: impl Iterator<Item = Result<&'r SourcedRule, AskReason>>) -> Result<&'r SourcedRule, AskReason> {
    let mut found = None;
    for part in parts {
        let rule = part?;
        found.get_or_insert(rule);
    }
    found.ok_or_else(|| AskReason::NoRule("an empty request".to_owned()))
}

/// False for a command that another one stands for, and for harmless settings of variables.
pub(crate) fn needs_rule(command: &Command) -> bool {
    let only_sets =
        || command.words.is_empty() && command.assignments.iter().all(|set| set.is_harmless() && set.is_literal());
    !command.is_covered && !only_sets()
}

/// A command for people.
pub(crate) fn display(command: &Command) -> String {
    let variables = command.assignments.iter().map(|set| format!("{}={}", set.name, set.value.display()));
    let words = command.words.iter().map(|word| match word.known() {
        Some(text) => shell::quote(&text),
        None => word.display(),
    });
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// A path whose folder is not known. Its name still says something.
fn elsewhere(word: &ShellWord) -> PathText {
    match word.known() {
        Some(text) if !text.contains("..") && !text.contains("//") && !text.contains("/./") => {
            let path = ['/'].into_iter().chain(text.chars()).map(TextToken::Char);
            PathText::Partial(std::iter::once(TextToken::Unknown).chain(path).collect())
        }
        _ => PathText::Unknown,
    }
}

/// The maximum number of places in a word where a path may begin.
const MAX_CANDIDATES: usize = 16;

/// The parts of a word that may be a path: all of it, the value of an option, a file behind `@`.
fn candidates(word: &ShellWord) -> Vec<ShellWord> {
    let mut found = vec![word.clone()];
    for (at, piece) in word.pieces.iter().enumerate() {
        let WordPiece::Text(text) = piece else { continue };
        let marks = text.char_indices().filter(|(_, c)| matches!(c, '=' | '@' | ':' | ',')).map(|(mark, _)| mark + 1);
        // The value of a short option follows its letter.
        let is_option = at == 0 && text.starts_with('-') && !text.starts_with("--");
        let value = text.char_indices().nth(2).map(|(start, _)| start).filter(|_| is_option);
        let value =
            value.or_else(|| (is_option && text.chars().count() == 2 && word.pieces.len() > 1).then_some(text.len()));
        found.extend(marks.chain(value).take(MAX_CANDIDATES + 1).map(|start| word.part(at, start)));
        if found.len() > MAX_CANDIDATES {
            found.truncate(MAX_CANDIDATES);
            found.push(ShellWord::unknown());
            break;
        }
    }
    found.retain(|word| !word.is(""));
    found
}

/// The hosts that a word may name, and how certainly.
fn word_hosts(word: &ShellWord) -> Vec<(Option<String>, Certainty)> {
    if word.has_unknown() {
        return vec![(None, Certainty::Maybe)];
    }
    // A pattern that matches no file stays as it is.
    let mut found = hosts_in(&word.display());
    if found.iter().all(|(_, certainty)| *certainty < Certainty::Yes) {
        found.extend(candidates(word).iter().flat_map(|part| hosts_in(&part.display())));
    }
    found
}
