//! The written form of rules.
//!
//! ```toml
//! [[policy.rules]]                 # in .grove/policy.toml: [[rules]]
//! allow = "shell"                  # allow, ask or deny; read, edit, shell, fetch, mcp, any, or a list of them
//! command = ["cargo test *", "git status *"]
//! agent = "claude"                 # optional
//! reason = "tests change nothing"  # optional
//! ```

use serde::Deserialize;
use toml::Spanned;

use crate::pattern::*;
use crate::request::Kind;
use crate::rule::*;

/// The maximum size of a file with rules, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The maximum number of patterns of a file.
pub const MAX_FILE_PATTERNS: usize = 4_000;
/// The maximum length of a reason, in bytes.
pub const MAX_REASON_BYTES: usize = 500;

/// A file with rules that cannot be used, and the place of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct GrammarError {
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    pub problem: String,
}

/// The part of `grove.toml` that is read here.
#[derive(Deserialize)]
struct SettingsFile {
    policy: Option<RulesTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesTable {
    #[serde(default)]
    rules: Vec<Spanned<WrittenRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    allow: Option<OneOrMore>,
    ask: Option<OneOrMore>,
    deny: Option<OneOrMore>,
    agent: Option<OneOrMore>,
    command: Option<OneOrMore>,
    path: Option<OneOrMore>,
    host: Option<OneOrMore>,
    tool: Option<OneOrMore>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_texts(self) -> Vec<String> {
        match self {
            OneOrMore::One(text) => vec![text],
            OneOrMore::More(texts) => texts,
        }
    }
}

impl RuleSet {
    /// Reads `[policy]` of a `grove.toml`. The rest of the file is not looked at.
    pub fn parse_settings(text: &str, file: &str) -> Result<Self, GrammarError> {
        let settings: SettingsFile = read(text, file)?;
        collect(settings.policy.map(|table| table.rules).unwrap_or_default(), text, file, Source::Settings)
    }

    /// Reads a repository's `.grove/policy.toml`.
    pub fn parse_repository(text: &str, file: &str) -> Result<Self, GrammarError> {
        let table: RulesTable = read(text, file)?;
        collect(table.rules, text, file, Source::Repository)
    }
}

fn read<T: for<'de> Deserialize<'de>>(text: &str, file: &str) -> Result<T, GrammarError> {
    let error = |line, problem: &str| GrammarError { file: file.to_owned(), line, problem: problem.to_owned() };
    if text.len() > MAX_FILE_BYTES {
        return Err(error(1, "the file is larger than 1 MiB: use fewer rules"));
    }
    toml::from_str(text).map_err(|wrong| {
        let line = wrong.span().map_or(1, |span| line_of(text, span.start));
        error(line, wrong.message().trim())
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

fn collect(
    written: Vec<Spanned<WrittenRule>>,
    text: &str,
    file: &str,
    source: Source,
) -> Result<RuleSet, GrammarError> {
    let mut rules = Vec::new();
    let mut patterns = 0;
    for written in written {
        let line = line_of(text, written.span().start);
        let error = |problem: String| GrammarError { file: file.to_owned(), line, problem };
        if rules.len() >= MAX_RULES {
            return Err(error(format!("there are more than {MAX_RULES} rules")));
        }
        let rule = written.into_inner().into_rule().map_err(error)?;
        patterns += rule.patterns().len() + rule.agents.len();
        if patterns > MAX_FILE_PATTERNS {
            return Err(GrammarError {
                file: file.to_owned(),
                line,
                problem: format!("there are more than {MAX_FILE_PATTERNS} patterns: use wider ones"),
            });
        }
        let origin = RuleOrigin { source, file: Some(file.to_owned()), line: Some(line) };
        rules.push(SourcedRule { rule, origin });
    }
    Ok(RuleSet { rules })
}

impl WrittenRule {
    fn into_rule(self) -> Result<Rule, String> {
        let verdicts = [(Verdict::Allow, self.allow), (Verdict::Ask, self.ask), (Verdict::Deny, self.deny)];
        let mut verdicts = verdicts.into_iter().filter_map(|(verdict, kinds)| Some((verdict, kinds?)));
        let (Some((verdict, kinds)), None) = (verdicts.next(), verdicts.next()) else {
            return Err("a rule has exactly one of \"allow\", \"ask\" and \"deny\"".to_owned());
        };
        let kinds = read_kinds(kinds.into_texts())?;
        let selectors = [("command", self.command), ("path", self.path), ("host", self.host), ("tool", self.tool)];
        let mut selectors = selectors.into_iter().filter_map(|(name, patterns)| Some((name, patterns?)));
        let selector = match (selectors.next(), selectors.next()) {
            (None, _) => Selector::Kinds(kinds),
            (Some((name, patterns)), None) => read_selector(name, patterns.into_texts(), kinds)?,
            (Some((name, _)), Some((other, _))) => {
                return Err(format!("{name:?} and {other:?} are about different kinds: write two rules"));
            }
        };
        let agents = self.agent.map(OneOrMore::into_texts).unwrap_or_default();
        let agents = each(&agents, NamePattern::parse)?;
        if self.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
            return Err(format!("the reason is longer than {MAX_REASON_BYTES} bytes"));
        }
        Ok(Rule { verdict, selector, agents, reason: self.reason })
    }
}

fn read_kinds(names: Vec<String>) -> Result<Vec<Kind>, String> {
    let mut kinds = Vec::new();
    for name in names {
        match Kind::ALL.iter().find(|kind| kind.name() == name) {
            Some(kind) => kinds.push(*kind),
            None if name == "any" => kinds.extend(Kind::ALL),
            None => return Err(format!("{name:?} is no kind: use read, edit, shell, fetch, mcp or any")),
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    match kinds.is_empty() {
        true => Err("the list of kinds is empty".to_owned()),
        false => Ok(kinds),
    }
}

fn read_selector(name: &str, patterns: Vec<String>, kinds: Vec<Kind>) -> Result<Selector, String> {
    if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
        return Err(format!("{name:?} has no pattern, or more than {MAX_PATTERNS}"));
    }
    let fitting: &[Kind] = match name {
        "command" => &[Kind::Shell],
        "path" => &[Kind::Read, Kind::Edit],
        "host" => &[Kind::Fetch],
        _ => &[Kind::Mcp],
    };
    if let Some(other) = kinds.iter().find(|kind| !fitting.contains(kind)) {
        return Err(format!("{name:?} does not apply to {other:?}: leave one of them out", other = other.name()));
    }
    Ok(match name {
        "command" => Selector::Commands(each(&patterns, CommandPattern::parse)?),
        "path" => Selector::Paths { kinds, patterns: each(&patterns, PathPattern::parse)? },
        "host" => Selector::Hosts(each(&patterns, HostPattern::parse)?),
        _ => Selector::Tools(each(&patterns, NamePattern::parse)?),
    })
}

fn each<T>(texts: &[String], parse: impl Fn(&str) -> Result<T, PatternError>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| parse(text).map_err(|error| error.to_string())).collect()
}

impl Rule {
    /// The rule in the form that [`RuleSet`] reads, under a table's name: `policy.rules` or `rules`.
    pub fn to_toml(&self, table: &str) -> String {
        let text = |text: &str| toml::Value::from(text).to_string();
        let list = |texts: &[&str]| match texts {
            [one] => text(one),
            more => format!("[{}]", more.iter().map(|one| text(one)).collect::<Vec<_>>().join(", ")),
        };
        let kinds = self.kinds();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let names = if kinds.len() == Kind::ALL.len() { vec!["any"] } else { names };
        let mut lines = vec![format!("[[{table}]]"), format!("{} = {}", self.verdict, list(&names))];
        let key = match &self.selector {
            Selector::Kinds(_) => None,
            Selector::Commands(_) => Some("command"),
            Selector::Paths { .. } => Some("path"),
            Selector::Hosts(_) => Some("host"),
            Selector::Tools(_) => Some("tool"),
        };
        lines.extend(key.map(|key| format!("{key} = {}", list(&self.patterns()))));
        if !self.agents.is_empty() {
            let agents: Vec<&str> = self.agents.iter().map(NamePattern::as_str).collect();
            lines.push(format!("agent = {}", list(&agents)));
        }
        lines.extend(self.reason.as_ref().map(|reason| format!("reason = {}", text(reason))));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        RuleSet::parse_repository(text, "p.toml").unwrap_err().to_string()
    }

    #[test]
    fn every_error_names_its_line() {
        for (text, place) in [
            ("[[rules]]\nallow = \"shell\"\ncomand = \"x\"\n", "p.toml:3: unknown field `comand`"),
            ("\n[[rules]]\nallow = \"shell\"\ndeny = \"shell\"\n", "p.toml:2: a rule has exactly one of"),
            ("[[rules]]\n\n[[rules]]\nallow = \"shel\"\n", "p.toml:1: a rule has exactly one of"),
            ("[[rules]]\nallow = \"shel\"\n", "p.toml:1: \"shel\" is no kind"),
            ("[[rules]]\nallow = \"edit\"\ncommand = \"x\"\n", "p.toml:1: \"command\" does not apply to \"edit\""),
            ("[[rules]]\nallow = \"shell\"\ncommand = \"a && b\"\n", "p.toml:1: the command pattern"),
            ("[[rules]]\nallow = 3\n", "p.toml:2: expected a text or a list of texts"),
            ("rule = 3\n", "p.toml:1: unknown field `rule`"),
            ("[[rules]\n", "p.toml:1: "),
        ] {
            assert!(wrong(text).starts_with(place), "{}", wrong(text));
        }
    }

    #[test]
    fn a_written_rule_is_read_back() {
        let text = "[[rules]]\nallow = [\"read\", \"edit\"]\npath = [\"src/**\", \"~/a \\\"b\\\"\"]\nagent = \"claude*\"\n\
                    reason = \"why\"\n\n[[rules]]\ndeny = \"any\"\n\n[[rules]]\nask = \"fetch\"\nhost = \"*.a.com\"\n";
        let rules = RuleSet::parse_repository(text, "p").unwrap().rules;
        let written: Vec<_> = rules.iter().map(|rule| rule.rule.to_toml("rules")).collect();
        let again = RuleSet::parse_repository(&written.join("\n"), "p").unwrap().rules;
        let plain = |rules: Vec<SourcedRule>| rules.into_iter().map(|rule| rule.rule).collect::<Vec<_>>();
        assert_eq!(plain(again), plain(rules));
        let settings = RuleSet::parse_settings("[host]\nx = 1\n[[policy.rules]]\nallow = \"read\"\n", "g").unwrap();
        assert_eq!(settings.rules[0].origin.to_string(), "g:3");
    }
}
