//! The files with permission rules: `grove.toml`, and `.grove/policy.toml` of a repository.
//!
//! A repository's file counts in full only for content that a person has trusted (`grove policy trust`): agents can edit
//! it. Otherwise its rules that deny or ask count, since these only tighten.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Context;
use grove_host::{LoadedRules, PermissionRules};
use grove_policy::{GrammarError, Kind, Policy, Rule, RuleSet, Selector, Verdict, content_hash};
use grove_wire::x_grove::policy::RuleTarget;

use crate::data_folder::write_private;
use crate::policy_edits;

/// The file of a repository, relative to the working directory or a folder above it.
pub(crate) const REPOSITORY_FILE: &str = ".grove/policy.toml";
/// The maximum size of a file with rules, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum number of trusted contents. Beyond it, the oldest must be trusted again.
pub(crate) const MAX_TRUSTED: usize = 10_000;
/// The maximum number of files that are kept in memory.
pub(crate) const MAX_CACHED: usize = 256;

/// A file with rules, as far as it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct RulesFile {
    pub(crate) path: PathBuf,
    pub(crate) rules: RuleSet,
    /// The name of the content, for a repository's file.
    pub(crate) hash: Option<String>,
    pub(crate) is_trusted: bool,
    pub(crate) problem: Option<String>,
}

/// The version of a file: a change of the file changes it.
type FileStamp = Option<(SystemTime, u64)>;

/// A file's content, or the reason why it cannot be read.
type FileContent = Result<String, String>;

/// A file's rules, or the reason why they cannot be used.
type FileRules = Result<RuleSet, String>;

/// The rules of this host.
pub(crate) struct PolicyFiles {
    settings: PathBuf,
    trusted: PathBuf,
    home: PathBuf,
    /// The newest contents, by file.
    cache: Mutex<HashMap<PathBuf, (FileStamp, FileContent)>>,
    /// The rules of the newest contents, by file and the name of the content.
    parsed: Mutex<HashMap<PathBuf, (String, FileRules)>>,
}

impl PolicyFiles {
    pub(crate) fn new(settings: &Path, data_dir: &Path, home: &Path) -> Self {
        Self {
            settings: settings.to_owned(),
            trusted: data_dir.join("trusted-policies.json"),
            home: home.to_owned(),
            cache: Mutex::new(HashMap::new()),
            parsed: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn home(&self) -> String {
        self.home.to_string_lossy().into_owned()
    }

    /// The files that count for a folder, the settings first.
    pub(crate) fn files_for(&self, folder: Option<&Path>) -> Vec<RulesFile> {
        let mut files = Vec::new();
        if let Some(text) = self.content(&self.settings) {
            let parsed = text.and_then(|text| {
                let hash = content_hash(text.as_bytes());
                self.rules(&self.settings, &hash, |file| RuleSet::parse_settings(&text, file))
            });
            files.push(rules_file(&self.settings, parsed, None, true));
        }
        let Some(path) = folder.and_then(repository_file) else { return files };
        let Some(text) = self.content(&path) else { return files };
        let hash = text.as_ref().ok().map(|text| content_hash(text.as_bytes()));
        let is_trusted = hash.as_ref().is_some_and(|hash| self.trusted_hashes().contains(hash));
        let parsed = text.and_then(|text| {
            let hash = hash.clone().unwrap_or_default();
            self.rules(&path, &hash, |file| RuleSet::parse_repository(&text, file))
        });
        files.push(rules_file(&path, parsed, hash, is_trusted));
        files
    }

    /// The policy of these files. A file that cannot be read makes every request a question.
    pub(crate) fn policy(files: &[RulesFile]) -> Policy {
        Policy::from_iter(files.iter().map(|file| match (&file.problem, file.is_trusted) {
            (Some(problem), _) => {
                let ask = Rule::new(Verdict::Ask, Selector::Kinds(Kind::ALL.to_vec()));
                RuleSet::of_session([Rule { reason: Some(problem.clone()), ..ask }])
            }
            (None, true) => file.rules.clone(),
            (None, false) => file.rules.clone().tightening(),
        }))
    }

    /// Trusts the present content of a repository's file, and returns its path.
    pub(crate) fn trust(&self, folder: &Path) -> anyhow::Result<RulesFile> {
        let path = repository_file(folder)
            .with_context(|| format!("there is no {REPOSITORY_FILE} in {} or above it", folder.display()))?;
        let file = self.files_for(Some(folder)).pop().filter(|file| file.path == path);
        let file = file.with_context(|| format!("{} cannot be read", path.display()))?;
        if let Some(problem) = &file.problem {
            anyhow::bail!("{problem}");
        }
        if let Some(hash) = file.hash.clone() {
            self.trust_hash(hash)?;
        }
        Ok(RulesFile { is_trusted: true, ..file })
    }

    fn trust_hash(&self, hash: String) -> anyhow::Result<()> {
        let mut hashes = self.trusted_hashes();
        if hashes.contains(&hash) {
            return Ok(());
        }
        hashes.push(hash);
        let from = hashes.len().saturating_sub(MAX_TRUSTED);
        write_private(&self.trusted, &serde_json::to_string_pretty(&hashes[from..])?)
    }

    /// Adds rules to a repository's file, and trusts exactly the content that is written.
    fn add_to_repository(&self, file: &Path, rules: &[Rule]) -> anyhow::Result<()> {
        let content = match self.content(file) {
            None => String::new(),
            Some(content) => {
                let content = content.map_err(|problem| anyhow::anyhow!(problem))?;
                // An agent may have written it: trusting the new content must not trust the rest with it.
                if !self.trusted_hashes().contains(&content_hash(content.as_bytes())) {
                    let folder = file.parent().and_then(Path::parent).unwrap_or(file);
                    anyhow::bail!(
                        "nobody has trusted the content of {}: read it, then run `grove policy trust {}`",
                        file.display(),
                        folder.display()
                    );
                }
                content
            }
        };
        let text = policy_edits::with_rules(&content, rules, file)?;
        policy_edits::write_repository_file(file, &text)?;
        self.trust_hash(content_hash(text.as_bytes()))
    }

    fn trusted_hashes(&self) -> Vec<String> {
        match self.content(&self.trusted) {
            Some(Ok(text)) => serde_json::from_str(&text).unwrap_or_else(|error| {
                tracing::warn!("no rules of repositories are trusted: {} is damaged: {error}", self.trusted.display());
                Vec::new()
            }),
            Some(Err(error)) => {
                tracing::warn!("no rules of repositories are trusted: {error}");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The rules of a file, parsed again only if its content has another name.
    fn rules(&self, path: &Path, hash: &str, parse: impl FnOnce(&str) -> Result<RuleSet, GrammarError>) -> FileRules {
        let mut cache = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = cache.get(path)
            && known == hash
        {
            return rules.clone();
        }
        let rules = parse(&path.display().to_string()).map_err(|error| error.to_string());
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(path.to_owned(), (hash.to_owned(), rules.clone()));
        rules
    }

    /// The content of a file, read again if it has changed; `None` if there is no file.
    fn content(&self, path: &Path) -> Option<Result<String, String>> {
        let stamp = match std::fs::metadata(path) {
            Ok(metadata) => metadata.modified().ok().map(|modified| (modified, metadata.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(format!("{} cannot be read: {error}", path.display()))),
        };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, content)) = cache.get(path)
            && stamp.is_some()
            && *known == stamp
            && stamp.is_some_and(|(modified, _)| is_settled(modified))
        {
            return Some(content.clone());
        }
        let content = match stamp {
            Some((_, length)) if length > MAX_BYTES => Err(format!("{} has more than 1 MiB", path.display())),
            _ => std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display())),
        };
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(path.to_owned(), (stamp, content.clone()));
        Some(content)
    }
}

/// True if a later change of a file would change its time as well.
fn is_settled(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age.as_secs() >= 2)
}

fn rules_file(path: &Path, rules: Result<RuleSet, String>, hash: Option<String>, is_trusted: bool) -> RulesFile {
    let (rules, problem) = match rules {
        Ok(rules) => (rules, None),
        Err(problem) => (RuleSet::default(), Some(problem)),
    };
    RulesFile { path: path.to_owned(), rules, hash, is_trusted, problem }
}

/// The file of the repository that a folder is in: in the folder, or in one above it up to the repository's own.
fn repository_file(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let file = folder.join(REPOSITORY_FILE);
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// The file that rules for the sessions in a folder are added to: the present one, else one in the repository's folder.
fn new_repository_file(folder: &Path) -> PathBuf {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    repository_file(folder).unwrap_or_else(|| root.join(REPOSITORY_FILE))
}

impl PermissionRules for PolicyFiles {
    fn rules_for(&self, folder: Option<&Path>) -> LoadedRules {
        let files = self.files_for(folder);
        let problem = files.iter().find_map(|file| file.problem.clone());
        let untrusted = files.iter().find(|file| !file.is_trusted).map(|file| {
            let folder = file.path.parent().and_then(Path::parent).unwrap_or(&file.path);
            let path = file.path.display();
            format!("{path} allows nothing, because nobody has trusted its content: read it, then run `grove policy trust {}`", folder.display())
        });
        let policy = Arc::new(Self::policy(&files));
        LoadedRules { policy, home: Some(self.home()), warning: problem.or(untrusted) }
    }

    fn file_of(&self, target: RuleTarget, folder: Option<&Path>) -> Option<PathBuf> {
        match target {
            RuleTarget::Session => None,
            RuleTarget::Repository => folder.map(new_repository_file),
            RuleTarget::Everywhere => Some(self.settings.clone()),
        }
    }

    fn add_rules(&self, target: RuleTarget, folder: Option<&Path>, rules: &[Rule]) -> Result<PathBuf, String> {
        let file = self.file_of(target, folder).ok_or("there is no file for it")?;
        let added = match target {
            RuleTarget::Repository => self.add_to_repository(&file, rules),
            RuleTarget::Session | RuleTarget::Everywhere => policy_edits::add_to_settings(&file, rules),
        };
        added.map(|()| file).map_err(|error| format!("{error:#}"))
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let mut rest = Vec::new();
        for existing in path.ancestors() {
            if let Ok(real) = existing.canonicalize() {
                return Some(rest.iter().rev().fold(real, |real: PathBuf, name| real.join(name)));
            }
            // A link that leads nowhere yet, or a folder that cannot be looked into.
            match existing.symlink_metadata() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Ok(_) | Err(_) => return None,
            }
            rest.push(existing.file_name()?.to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use grove_policy::{Request, RequestAction};

    use super::*;

    const RULES: &str =
        "[[rules]]\nallow = \"shell\"\ncommand = \"ls\"\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n";

    fn verdict(files: &PolicyFiles, folder: &Path, command: &str) -> Verdict {
        let request = Request::new("claude", RequestAction::Shell { command: command.to_owned() }).in_directory("/w");
        files.rules_for(Some(folder)).policy.judge(&request).verdict
    }

    #[test]
    fn rules_of_a_repository_allow_only_with_the_content_that_was_trusted() {
        let place = tempfile::tempdir().unwrap();
        let (work, data) = (place.path().join("work"), place.path().join("data"));
        std::fs::create_dir_all(work.join(".grove")).unwrap();
        std::fs::create_dir_all(work.join("src")).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        let file = work.join(REPOSITORY_FILE);
        std::fs::write(&file, RULES).unwrap();
        let files = PolicyFiles::new(&place.path().join("grove.toml"), &data, place.path());
        let inner = work.join("src");
        assert_eq!(verdict(&files, &inner, "ls"), Verdict::Ask);
        assert_eq!(verdict(&files, &inner, "rm x"), Verdict::Deny, "an untrusted file may tighten");
        let warning = files.rules_for(Some(&inner)).warning.unwrap();
        assert!(warning.contains(&format!("grove policy trust {}", work.display())), "{warning}");

        assert!(files.trust(&inner).unwrap().is_trusted);
        assert_eq!(verdict(&files, &inner, "ls"), Verdict::Allow);
        assert_eq!(files.rules_for(Some(&inner)).warning, None);

        std::fs::write(&file, format!("{RULES}[[rules]]\nallow = \"any\"\n")).unwrap();
        assert_eq!(verdict(&files, &inner, "ls"), Verdict::Ask, "its content has changed");
        assert!(files.rules_for(Some(&inner)).warning.is_some());
    }

    #[test]
    fn settings_are_read_again_when_they_change_and_a_wrong_file_makes_every_request_a_question() {
        let place = tempfile::tempdir().unwrap();
        let settings = place.path().join("grove.toml");
        let files = PolicyFiles::new(&settings, place.path(), place.path());
        let allow = |command: &str| format!("[[policy.rules]]\nallow = \"shell\"\ncommand = \"{command}\"\n");
        assert_eq!(verdict(&files, place.path(), "ls"), Verdict::Ask);
        std::fs::write(&settings, allow("ls")).unwrap();
        assert_eq!(verdict(&files, place.path(), "ls"), Verdict::Allow);
        std::fs::write(&settings, allow("cd")).unwrap();
        assert_eq!(verdict(&files, place.path(), "ls"), Verdict::Ask);
        std::fs::write(&settings, format!("{}alow = 1\n", allow("ls"))).unwrap();
        assert_eq!(verdict(&files, place.path(), "ls"), Verdict::Ask);
        assert!(files.rules_for(None).warning.unwrap().contains("grove.toml:4: unknown field `alow`"));
    }

    #[test]
    fn a_link_is_followed_before_its_path_is_judged() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let files = PolicyFiles::new(&root.join("grove.toml"), &root, &root);
        assert_eq!(files.real_path(&root.join("link/new/file")), Some(PathBuf::from("/etc/new/file")));
        assert_eq!(files.real_path(&root.join("a/b")), Some(root.join("a/b")));
        std::os::unix::fs::symlink(root.join("missing"), root.join("dangling")).unwrap();
        assert_eq!(files.real_path(&root.join("dangling")), None, "it leads nowhere yet");
        assert_eq!(files.real_path(&root.join("dangling/b")), None);
    }

    #[test]
    fn a_rule_for_a_repository_trusts_what_it_writes_and_nothing_that_others_wrote() {
        let place = tempfile::tempdir().unwrap();
        let (work, data) = (place.path().join("work"), place.path().join("data"));
        std::fs::create_dir_all(work.join("src")).unwrap();
        std::fs::create_dir_all(work.join(".git")).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        let files = PolicyFiles::new(&place.path().join("grove.toml"), &data, place.path());
        let inner = work.join("src");
        let rules: Vec<Rule> =
            RuleSet::parse_repository(RULES, "p").unwrap().rules.into_iter().map(|rule| rule.rule).collect();
        let file = files.add_rules(RuleTarget::Repository, Some(&inner), &rules[..1]).unwrap();
        assert_eq!(file, work.join(REPOSITORY_FILE));
        assert_eq!(verdict(&files, &inner, "ls"), Verdict::Allow);

        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str("[[rules]]\nallow = \"any\"\n");
        std::fs::write(&file, text).unwrap();
        let refused = files.add_rules(RuleTarget::Repository, Some(&inner), &rules).unwrap_err();
        assert!(refused.contains("grove policy trust"), "{refused}");
        assert_eq!(verdict(&files, &inner, "ls"), Verdict::Ask, "an agent may have written it");

        files.add_rules(RuleTarget::Everywhere, Some(&inner), &rules[..1]).unwrap();
        assert_eq!(verdict(&files, place.path(), "ls"), Verdict::Allow);
        assert_eq!(files.file_of(RuleTarget::Session, Some(&inner)), None);
    }
}
