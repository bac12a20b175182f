//! A session's permission policy: operations that are allowed or denied without asking, as set by clients.

use serde::{Deserialize, Serialize};

use crate::{
    ConfirmationReason, Decision, PermissionKind, PermissionOption, PermissionRequest, SessionDetails, Verdict,
};

/// The maximum number of rules of a kind, and of folders, in a session.
pub const MAX_PERMISSION_RULES: usize = 1_000;
/// The maximum length of a rule's argument or of a folder, in bytes.
pub const MAX_PERMISSION_ARGUMENT: usize = 4_096;

/// The permission policy of a session. Without one, people are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permissions {
    /// Allows everything that no rule denies.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_all: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<PermissionRule>,
    /// Denials take precedence over everything that is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<PermissionRule>,
    /// Folders in which reading is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The workspace folder, if it is not the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Rules of the policy grammar that a person added to this session, in TOML.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_rules: Vec<String>,
}

/// A kind of permission request, optionally narrowed by an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    pub kind: PermissionKind,
    /// A command, or its beginning followed by `:*`; a path or an address, which includes everything below. Without one
    /// the rule covers the whole kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// A client's change of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionsChange {
    /// Replaces the given fields.
    Configure {
        allow_all: Option<bool>,
        approved: Option<Vec<PermissionRule>>,
        denied: Option<Vec<PermissionRule>>,
        directories: Option<Vec<String>>,
    },
    /// Adds and removes rules that allow something.
    Rules {
        add: Vec<PermissionRule>,
        remove: Vec<PermissionRule>,
        remove_all: bool,
    },
    AddDirectory(String),
    Primary(String),
    /// Adds rules of the policy grammar, in TOML.
    AddPolicyRules(Vec<String>),
    /// Forgets the remembered answers and the rules that allow something.
    Forget,
    /// Removes everything that is allowed without asking. Rules that deny stay.
    Revoke,
}

impl Permissions {
    /// The policy's decision on a request, if it has one.
    pub fn answer(&self, request: &PermissionRequest) -> Option<Decision> {
        let covers = |rules: &[PermissionRule]| rules.iter().any(|rule| rule.covers(request));
        if covers(&self.denied) {
            return Some(Decision::Denied);
        }
        let is_inside = |path: &String| self.directories.iter().any(|folder| is_within(path, folder));
        let reads_inside = request.kind == PermissionKind::Read && request.path.as_ref().is_some_and(is_inside);
        (self.allow_all || reads_inside || covers(&self.approved)).then_some(Decision::Approved)
    }

    fn is_within_bounds(&self) -> bool {
        let rules = [&self.approved, &self.denied];
        let arguments = rules.iter().flat_map(|rules| rules.iter()).filter_map(|rule| rule.argument.as_ref());
        let texts = [&self.directories, &self.policy_rules];
        rules.iter().all(|rules| rules.len() <= MAX_PERMISSION_RULES)
            && texts.iter().all(|texts| texts.len() <= MAX_PERMISSION_RULES)
            && arguments
                .chain(texts.into_iter().flatten())
                .chain(&self.primary)
                .all(|text| text.len() <= MAX_PERMISSION_ARGUMENT)
    }
}

impl SessionDetails {
    /// True if the policy decides this request, so nobody is asked.
    pub fn answers(&self, request: &PermissionRequest) -> bool {
        let by_rule = self.permissions.as_ref().and_then(|policy| policy.answer(request));
        by_rule.is_some() || self.remembered.iter().any(|known| known.answers(request))
    }
}

impl PermissionRule {
    /// True if the rule applies to a request.
    pub fn covers(&self, request: &PermissionRequest) -> bool {
        if self.kind != request.kind {
            return false;
        }
        let Some(argument) = self.argument.as_deref() else { return true };
        let command = request.full_command_text.as_deref();
        match self.kind {
            PermissionKind::Shell => command.is_some_and(|command| covers_command(argument, command)),
            PermissionKind::Read | PermissionKind::Write => {
                request.path.as_deref().is_some_and(|path| is_within(path, argument))
            }
            PermissionKind::Url => command.or(request.path.as_deref()).is_some_and(|url| is_url_below(url, argument)),
            PermissionKind::Mcp => [command, request.title.as_deref()].contains(&Some(argument)),
        }
    }
}

impl Verdict {
    /// The verdict of a rule, preferably with an option for this time only: the rule decides again each time.
    pub fn by_rule(decision: Decision, request: &PermissionRequest) -> Self {
        let fits = |option: &&PermissionOption| option.allows == (decision == Decision::Approved);
        let fitting = || request.options.iter().filter(fits);
        let option = fitting().find(|option| !option.lasting).or_else(|| fitting().next());
        Self { by: ConfirmationReason::Setting, option: option.map(|option| option.id.clone()), ..decision.into() }
    }
}

impl PermissionsChange {
    /// The session's details after this change; `None` if they would exceed the limits.
    pub(crate) fn apply(self, details: &SessionDetails) -> Option<SessionDetails> {
        let mut details = details.clone();
        let mut policy = details.permissions.take().unwrap_or_default();
        match self {
            PermissionsChange::Configure { allow_all, approved, denied, directories } => {
                policy.allow_all = allow_all.unwrap_or(policy.allow_all);
                policy.approved = approved.unwrap_or(policy.approved);
                policy.denied = denied.unwrap_or(policy.denied);
                policy.directories = directories.unwrap_or(policy.directories);
            }
            PermissionsChange::Rules { add, remove, remove_all } => {
                policy.approved.retain(|rule| !remove_all && !remove.contains(rule));
                let new: Vec<_> = add.into_iter().filter(|rule| !policy.approved.contains(rule)).collect();
                policy.approved.extend(new);
            }
            PermissionsChange::AddDirectory(folder) => {
                if !policy.directories.contains(&folder) {
                    policy.directories.push(folder);
                }
            }
            PermissionsChange::Primary(folder) => policy.primary = Some(folder),
            PermissionsChange::AddPolicyRules(rules) => {
                let new: Vec<_> = rules.into_iter().filter(|rule| !policy.policy_rules.contains(rule)).collect();
                policy.policy_rules.extend(new);
            }
            PermissionsChange::Forget => {
                details.remembered.clear();
                policy.approved.clear();
                policy.policy_rules.clear();
            }
            PermissionsChange::Revoke => {
                details.remembered.retain(|known| !known.option.allows);
                policy = Permissions { denied: policy.denied, primary: policy.primary, ..Permissions::default() };
            }
        }
        let is_within_bounds = policy.is_within_bounds();
        details.permissions = Some(policy).filter(|policy| *policy != Permissions::default());
        is_within_bounds.then_some(details)
    }
}

/// True if a command equals the argument or begins with its prefix. Further commands in the same line are not allowed
/// by it.
fn covers_command(argument: &str, command: &str) -> bool {
    let Some(begin) = argument.strip_suffix(":*") else { return command == argument };
    let goes_on =
        command.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    goes_on && !begin.is_empty() && !command.contains([';', '&', '|', '\n', '\r', '`', '$', '<', '>', '(', ')'])
}

/// True if a path is the folder or below it, compared as text. A path with `..` is in no folder.
pub fn is_within(path: &str, folder: &str) -> bool {
    let climbs = |path: &str| path.split(['/', '\\']).any(|piece| piece == "..");
    let folder = folder.trim_end_matches(['/', '\\']);
    let below = |rest: &str| rest.is_empty() || rest.starts_with(['/', '\\']);
    !climbs(path) && !climbs(folder) && path.strip_prefix(folder).is_some_and(below)
}

fn is_url_below(url: &str, argument: &str) -> bool {
    let without_scheme = |url: &str| url.split_once("://").map_or(url, |(_, rest)| rest).to_owned();
    let (url, allowed) = match argument.contains("://") {
        true => (url.to_owned(), argument.to_owned()),
        false => (without_scheme(url), argument.to_owned()),
    };
    let rest = url.strip_prefix(allowed.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(kind: PermissionKind, path: Option<&str>, command: Option<&str>) -> PermissionRequest {
        PermissionRequest {
            id: "p".into(),
            kind,
            path: path.map(str::to_owned),
            full_command_text: command.map(str::to_owned),
            intention: None,
            title: None,
            options: vec![],
            edits: vec![],
            editable: false,
        }
    }

    fn shell(command: &str) -> PermissionRequest {
        asks(PermissionKind::Shell, None, Some(command))
    }

    fn rule(kind: PermissionKind, argument: &str) -> PermissionRule {
        PermissionRule { kind, argument: Some(argument.to_owned()) }
    }

    #[test]
    fn a_rule_with_a_beginning_allows_no_second_command() {
        let git = rule(PermissionKind::Shell, "git:*");
        assert!(git.covers(&shell("git")) && git.covers(&shell("git status -s")));
        for other in
            ["gitk", "git status; rm -rf /", "git log | sh", "git $(rm x)", "git log > /etc/passwd", "git a\nrm b"]
        {
            assert!(!git.covers(&shell(other)), "{other}");
        }
        assert!(!rule(PermissionKind::Shell, ":*").covers(&shell("rm x")));
        assert!(rule(PermissionKind::Shell, "make test").covers(&shell("make test")));
        assert!(!rule(PermissionKind::Shell, "make test").covers(&shell("make test-all")));
    }

    #[test]
    fn a_folder_holds_what_is_below_it_and_nothing_that_climbs_out() {
        assert!(is_within("/w/a/b", "/w/a") && is_within("/w/a", "/w/a/") && is_within("/x", "/"));
        assert!(!is_within("/w/ab", "/w/a") && !is_within("/w/a/../b", "/w/a") && !is_within("/w", "/w/a"));
    }

    #[test]
    fn an_address_is_allowed_with_what_is_below_it() {
        let host = rule(PermissionKind::Url, "example.org");
        let asks = |url| asks(PermissionKind::Url, None, Some(url));
        assert!(host.covers(&asks("https://example.org")) && host.covers(&asks("http://example.org/a?b")));
        assert!(
            !host.covers(&asks("https://example.org.evil.net")) && !host.covers(&asks("https://evil.net/example.org"))
        );
        let page = rule(PermissionKind::Url, "https://example.org/a");
        assert!(page.covers(&asks("https://example.org/a/b")) && !page.covers(&asks("http://example.org/a/b")));
    }

    #[test]
    fn what_is_denied_stays_denied_where_everything_is_allowed() {
        let denied = vec![rule(PermissionKind::Shell, "rm:*")];
        let policy = Permissions { allow_all: true, denied, ..Permissions::default() };
        assert_eq!(policy.answer(&shell("rm x")), Some(Decision::Denied));
        assert_eq!(policy.answer(&shell("ls")), Some(Decision::Approved));
        assert_eq!(Permissions::default().answer(&shell("ls")), None);
    }

    #[test]
    fn reading_is_allowed_in_folders_that_were_added_and_writing_is_not() {
        let policy = Permissions { directories: vec!["/w".into()], ..Permissions::default() };
        let about = |kind, path| policy.answer(&asks(kind, Some(path), None));
        assert_eq!(about(PermissionKind::Read, "/w/a"), Some(Decision::Approved));
        assert_eq!(about(PermissionKind::Read, "/v/a"), None);
        assert_eq!(about(PermissionKind::Write, "/w/a"), None);
    }

    #[test]
    fn what_is_revoked_is_asked_again_and_what_is_denied_stays_denied() {
        let option = |allows| PermissionOption { id: "o".into(), label: String::new(), allows, lasting: true };
        let remembered = [true, false].map(|allows| crate::RememberedPermission {
            kind: PermissionKind::Shell,
            about: format!("ls {allows}"),
            option: option(allows),
        });
        let denied = vec![rule(PermissionKind::Shell, "rm:*")];
        let approved = vec![rule(PermissionKind::Shell, "git:*")];
        let directories = vec!["/w".to_owned()];
        let policy_rules = vec!["[[rules]]".to_owned()];
        let policy =
            Permissions { allow_all: true, approved, denied: denied.clone(), directories, primary: None, policy_rules };
        let details =
            SessionDetails { permissions: Some(policy), remembered: remembered.to_vec(), ..SessionDetails::default() };
        let after = PermissionsChange::Revoke.apply(&details);
        let after = after.unwrap_or_default();
        assert_eq!(after.permissions, Some(Permissions { denied, ..Permissions::default() }));
        assert_eq!(after.remembered, remembered[1..]);
        assert!(!after.answers(&shell("ls true")) && after.answers(&shell("rm x")));
    }

    #[test]
    fn a_change_past_the_bounds_changes_nothing() {
        let add = vec![rule(PermissionKind::Read, &"x".repeat(MAX_PERMISSION_ARGUMENT + 1))];
        let change = PermissionsChange::Rules { add, remove: vec![], remove_all: false };
        assert_eq!(change.apply(&SessionDetails::default()), None);
        let add = (0..=MAX_PERMISSION_RULES).map(|at| rule(PermissionKind::Read, &at.to_string())).collect();
        let change = PermissionsChange::Rules { add, remove: vec![], remove_all: false };
        assert_eq!(change.apply(&SessionDetails::default()), None);
        let rules = (0..=MAX_PERMISSION_RULES).map(|at| at.to_string()).collect();
        assert_eq!(PermissionsChange::AddPolicyRules(rules).apply(&SessionDetails::default()), None);
        let rules = vec!["x".repeat(MAX_PERMISSION_ARGUMENT + 1)];
        assert_eq!(PermissionsChange::AddPolicyRules(rules).apply(&SessionDetails::default()), None);
    }
}
