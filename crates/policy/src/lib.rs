//! Rules that answer permission requests of agents, so that people are asked less often.
//!
//! A [`Policy`] is a list of [`Rule`]s from three sources: `grove.toml`, a repository's `.grove/policy.toml`, and the
//! session. A [`Request`] says what an agent wants to do. [`Policy::judge`] returns a [`Decision`]: allow, ask or deny,
//! and the rule that decided.
//!
//! - Rules that deny come before rules that ask, and these before rules that allow, over all sources.
//! - A shell command is parsed (see [`shell`]). Each of its parts must be allowed, and a rule that denies any part
//!   denies the whole. A command that cannot be known without running it is asked, never allowed.
//! - A word that is not known before the command runs (`$name`, `*.txt`) may be anything. A rule that denies or asks
//!   and could match it leads to a question.
//! - Paths are compared after `.`, `..` and `~` are resolved. A relative pattern matches nothing outside the working
//!   directory. Hosts are compared only if the URL can be read without doubt.
//! - An untrusted repository may tighten the policy, not loosen it ([`RuleSet::tightening`]); [`content_hash`] names the
//!   content that a person trusts.
//!
//! The crate does no I/O. [`import`] reads the configuration of other tools, [`replay`] judges past requests, and
//! [`suggest`] proposes rules that would have answered them.
//!
//! ```
//! use grove_policy::{RequestAction, Policy, Request, RuleSet, Source, Verdict};
//!
//! let text = r#"
//! [[policy.rules]]
//! allow = "shell"
//! command = ["git status *", "cargo test *"]
//!
//! [[policy.rules]]
//! deny = "shell"
//! command = "git push *"
//! reason = "people push"
//! "#;
//! let policy = Policy::from_iter([RuleSet::parse_settings(text, "grove.toml")?]);
//! let shell = |command: &str| Request::new("claude", RequestAction::Shell { command: command.to_owned() }).in_directory("/w");
//! assert_eq!(policy.judge(&shell("git status -s && cargo test")).verdict, Verdict::Allow);
//! assert_eq!(policy.judge(&shell("git status; rm x")).verdict, Verdict::Ask);
//! let denied = policy.judge(&shell("sh -c 'git pu''sh origin'"));
//! assert_eq!(denied.verdict, Verdict::Deny);
//! assert_eq!(denied.rule.as_ref().map(|rule| rule.origin.source), Some(Source::Settings));
//! # Ok::<(), grove_policy::GrammarError>(())
//! ```

mod grammar;
pub mod import;
mod judge;
pub mod limits;
mod pattern;
pub mod replay;
mod request;
mod rule;
pub mod shell;
pub mod suggest;

pub use grammar::GrammarError;
pub use judge::{AskReason, Decision};
pub use pattern::{CommandPattern, HostPattern, NamePattern, PathPattern, PatternError};
pub use request::{Kind, Request, RequestAction};
pub use rule::{Policy, Rule, RuleOrigin, RuleSet, Selector, Source, SourcedRule, Verdict, content_hash};
