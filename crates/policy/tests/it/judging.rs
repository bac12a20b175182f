//! Verdicts by kind, agent and source.

use grove_policy::{Kind, Policy, RequestAction, RuleSet, Source, Verdict, content_hash};

use crate::{policy, request, shell};

fn edit(path: &str) -> RequestAction {
    RequestAction::Edit { paths: vec![path.to_owned()] }
}

fn verdict(policy: &Policy, action: RequestAction) -> Verdict {
    policy.judge(&request(action)).verdict
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow_over_all_sources() {
    let rules = |verdict: &str| format!("[[rules]]\n{verdict} = \"shell\"\ncommand = \"git *\"\n");
    let set = |verdict: &str| RuleSet::parse_repository(&rules(verdict), "p").unwrap();
    let judge = |sets: Vec<RuleSet>| Policy::from_iter(sets).judge(&shell("git status")).verdict;
    assert_eq!(judge(vec![set("allow")]), Verdict::Allow);
    assert_eq!(judge(vec![set("allow"), set("ask")]), Verdict::Ask);
    assert_eq!(judge(vec![set("allow"), set("ask"), set("deny")]), Verdict::Deny);
    assert_eq!(judge(vec![set("deny"), set("ask"), set("allow")]), Verdict::Deny);
    assert_eq!(judge(vec![]), Verdict::Ask);
}

#[test]
fn a_decision_names_the_rule_and_its_place() {
    let policy =
        policy("[[rules]]\nallow = \"read\"\n\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\nreason = \"no\"\n");
    let decision = policy.judge(&shell("ls; rm x"));
    assert_eq!(decision.to_string(), "deny shell \"rm *\" (policy.toml:4): no");
    assert_eq!(decision.rule.unwrap().origin.source, Source::Repository);
    assert_eq!(policy.judge(&shell("ls")).to_string(), "no rule allows ls");
}

#[test]
fn an_untrusted_source_only_tightens() {
    let set = RuleSet::parse_repository("[[rules]]\nallow = \"any\"\n[[rules]]\ndeny = \"fetch\"\n", "p").unwrap();
    let policy = Policy::from_iter([set.tightening()]);
    assert_eq!(policy.judge(&shell("ls")).verdict, Verdict::Ask);
    assert_eq!(verdict(&policy, RequestAction::Fetch { url: "https://a.com".into() }), Verdict::Deny);
    assert_ne!(content_hash(b"a"), content_hash(b"b"));
}

#[test]
fn a_relative_path_rule_allows_nothing_outside_the_working_directory() {
    let policy = policy("[[rules]]\nallow = \"edit\"\npath = [\"src/**\", \"*.md\"]\n");
    for inside in ["src/a.rs", "/w/app/src/a/b.rs", "./src/../src/x", "README.md", "docs/a.md"] {
        assert_eq!(verdict(&policy, edit(inside)), Verdict::Allow, "{inside}");
    }
    for outside in ["/w/src/a.rs", "../app2/src/a", "src/../../x", "~/src/a", "/etc/x.md", "~root/src/a", ""] {
        assert_eq!(verdict(&policy, edit(outside)), Verdict::Ask, "{outside}");
    }
    let both = RequestAction::Edit { paths: vec!["src/a".into(), "/etc/passwd".into()] };
    assert_eq!(verdict(&policy, both), Verdict::Ask, "every path must be allowed");
    assert_eq!(verdict(&policy, RequestAction::Read { paths: vec!["src/a".into()] }), Verdict::Ask);
}

#[test]
fn one_denied_path_denies_the_request() {
    let policy =
        policy("[[rules]]\nallow = \"any\"\n[[rules]]\ndeny = [\"read\", \"edit\"]\npath = [\".env\", \"~/.ssh\"]\n");
    let both = RequestAction::Read { paths: vec!["a".into(), "b/.env".into()] };
    assert_eq!(verdict(&policy, both), Verdict::Deny);
    assert_eq!(verdict(&policy, edit("~/.ssh/id")), Verdict::Deny);
    assert_eq!(verdict(&policy, edit("/home/dev/.ssh/../.ssh/id")), Verdict::Deny);
    assert_eq!(verdict(&policy, RequestAction::Read { paths: vec![] }), Verdict::Ask, "the path is not known");
    assert_eq!(verdict(&policy, edit("src/a")), Verdict::Allow);
}

#[test]
fn hosts_and_tools_are_matched_as_a_whole() {
    let policy = policy(
        "[[rules]]\nallow = \"fetch\"\nhost = [\"docs.rs\", \"*.github.com\"]\n[[rules]]\nallow = \"mcp\"\n\
         tool = [\"github/get_*\", \"notes/*\"]\n[[rules]]\ndeny = \"mcp\"\ntool = \"notes/delete\"\n",
    );
    let fetch = |url: &str| verdict(&policy, RequestAction::Fetch { url: url.to_owned() });
    assert_eq!(fetch("https://docs.rs/serde"), Verdict::Allow);
    assert_eq!(fetch("https://api.github.com"), Verdict::Allow);
    for other in
        ["https://docs.rs.evil.net", "https://docs.rs@evil.net", "https://github.com", "docs.rs", "ftp://docs.rs"]
    {
        assert_eq!(fetch(other), Verdict::Ask, "{other}");
    }
    let call = |tool: &str| verdict(&policy, RequestAction::Mcp { tool: tool.to_owned() });
    assert_eq!(call("github/get_issue"), Verdict::Allow);
    assert_eq!(call("github/create_issue"), Verdict::Ask);
    assert_eq!(call("notes/delete"), Verdict::Deny);
}

#[test]
fn a_rule_for_an_agent_leaves_others_alone() {
    let policy = policy("[[rules]]\nallow = \"shell\"\ncommand = \"ls\"\nagent = [\"codex\", \"qwen*\"]\n");
    let by = |agent: &str| {
        let request =
            grove_policy::Request::new(agent, RequestAction::Shell { command: "ls".into() }).in_directory("/w");
        policy.judge(&request).verdict
    };
    assert_eq!((by("codex"), by("qwen-code"), by("claude")), (Verdict::Allow, Verdict::Allow, Verdict::Ask));
}

#[test]
fn an_unknown_request_is_asked_and_a_whole_kind_may_be_denied() {
    let allowing = policy("[[rules]]\nallow = \"any\"\n");
    assert_eq!(verdict(&allowing, RequestAction::Unknown { kind: Some(Kind::Shell) }), Verdict::Ask);
    assert_eq!(verdict(&allowing, RequestAction::Unknown { kind: None }), Verdict::Ask);
    let denying = policy("[[rules]]\ndeny = \"shell\"\n");
    assert_eq!(verdict(&denying, RequestAction::Unknown { kind: Some(Kind::Shell) }), Verdict::Deny);
    assert_eq!(verdict(&denying, RequestAction::Unknown { kind: Some(Kind::Read) }), Verdict::Ask);
}

#[test]
fn allowing_all_stops_at_rules_that_deny_or_may_deny() {
    let policy = policy("[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n").allowing_all(true);
    let judge = |command: &str| policy.judge(&shell(command)).verdict;
    assert_eq!(judge("make install"), Verdict::Allow);
    assert_eq!(judge("rm x"), Verdict::Deny);
    assert_eq!(judge("$x y"), Verdict::Ask);
    assert_eq!(judge("eval $x"), Verdict::Ask);
    assert_eq!(Policy::default().allowing_all(true).judge(&shell("eval $x")).verdict, Verdict::Allow);
}

#[test]
fn a_command_past_the_bounds_is_asked() {
    let policy = policy("[[rules]]\nallow = \"shell\"\n");
    assert_eq!(policy.judge(&shell("ls")).verdict, Verdict::Allow);
    for large in ["(".repeat(100_000), "(".repeat(40) + "ls" + &")".repeat(40), "ls;".repeat(2_000), "env ".repeat(100)]
    {
        assert_eq!(policy.judge(&shell(&large)).verdict, Verdict::Ask, "{}", &large[..20]);
    }
    let nested = (0..30).fold("ls".to_owned(), |inner, _| format!("echo $({inner})"));
    assert_eq!(policy.judge(&shell(&nested)).verdict, Verdict::Ask);
}

#[test]
fn a_text_that_ends_within_a_here_document_or_an_escape_is_asked() {
    for text in ["''\\;<<\\", "$(<<\\", "(cat <<'", "cat <<-\"", "<<$'\\", "`<<\\"] {
        let policy = policy("[[rules]]\nallow = \"any\"\n");
        assert_eq!(policy.judge(&shell(text)).verdict, Verdict::Ask, "{text:?}");
    }
}
