#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use serde_json::json;

use super::*;

fn server(name: &str, transport: McpTransport) -> McpServer {
    McpServer::new(name, transport)
}

fn stdio() -> McpTransport {
    let env = BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]);
    McpTransport::Stdio { command: "/bin/server".to_owned(), args: vec!["--key=hunter2".to_owned()], env }
}

fn http() -> McpTransport {
    let headers = BTreeMap::from([("Authorization".to_owned(), "hunter2".to_owned())]);
    McpTransport::Http { url: "https://example.org/?key=hunter2".to_owned(), headers }
}

fn with_servers(mcp_servers: Vec<McpServer>) -> AgentSetup {
    AgentSetup { mcp_servers, ..AgentSetup::default() }
}

fn able() -> AgentAbilities {
    AgentAbilities {
        mcp: McpAbilities { stdio: Support::Yes, http: Support::Unknown, sse: Support::No },
        system_message: SystemMessageAbility::BeforeFirstPrompt,
        ..AgentAbilities::default()
    }
}

#[test]
fn an_agent_is_given_only_what_it_can_honour() {
    let good = with_servers(vec![server("a", stdio()), server("b", http())]);
    assert_eq!(good.check("x", &able(), &[]), Ok(()));
    let sse = McpTransport::Sse { url: "https://example.org".to_owned(), headers: BTreeMap::new() };
    let refused = with_servers(vec![server("c", sse)]).check("x", &able(), &[]).unwrap_err().to_string();
    assert!(refused.contains("agent x cannot use the MCP server c") && refused.contains("SSE"), "{refused}");
    assert!(good.check("x", &AgentAbilities::default(), &[]).is_err());
    let says = |mode| AgentSetup {
        system_message: Some(SystemMessage { mode, content: "be brief".to_owned() }),
        ..AgentSetup::default()
    };
    assert_eq!(says(SystemMessageMode::Append).check("x", &able(), &[]), Ok(()));
    let replaced = says(SystemMessageMode::Replace).check("x", &able(), &[]);
    assert_eq!(replaced, Err(SetupRefusal::ReplacedSystemMessage { agent: "x".to_owned() }));
    let native = AgentAbilities { system_message: SystemMessageAbility::Native, ..able() };
    assert_eq!(says(SystemMessageMode::Replace).check("x", &native, &[]), Ok(()));
    let filter = ToolFilter { excluded: BTreeSet::from(["bash".to_owned()]), ..ToolFilter::default() };
    let filtered = AgentSetup { tool_filter: filter, ..AgentSetup::default() };
    assert_eq!(filtered.check("x", &able(), &[]), Err(SetupRefusal::ToolFilter { agent: "x".to_owned() }));
    // One that asks before every call is denied them.
    let asks = AgentAbilities { hooks: HookAbility::EveryCall, ..able() };
    assert_eq!(filtered.check("x", &asks, &[]), Err(SetupRefusal::ToolFilter { agent: "x".to_owned() }));
    let own = AgentSetup {
        tool_filter: ToolFilter { own_tools: true, ..filtered.tool_filter.clone() },
        ..AgentSetup::default()
    };
    assert_eq!(own.check("x", &asks, &[]), Ok(()));
    assert!(asks.denies_filtered(&own.tool_filter) && !able().denies_filtered(&own.tool_filter));
    assert_eq!(filtered.check("x", &able(), &["bash"]), Ok(()), "Grove does not offer it");
}

#[test]
fn a_setup_is_bounded_and_names_each_server_once() {
    let twice = with_servers(vec![server("a", stdio()), server("a", stdio())]);
    assert_eq!(twice.check("x", &able(), &[]), Err(SetupRefusal::ServerNameTaken("a".to_owned())));
    let own = with_servers(vec![server(CLIENT_TOOLS_SERVER, stdio())]);
    assert!(own.check("x", &able(), &[]).is_err(), "that name is Grove's own");
    for name in ["", "a\nb", &"n".repeat(MAX_SERVER_NAME + 1)] {
        assert!(with_servers(vec![server(name, stdio())]).check("x", &able(), &[]).is_err(), "{name:?}");
    }
    let many = (0..=MAX_MCP_SERVERS).map(|n| server(&n.to_string(), stdio())).collect();
    assert_eq!(with_servers(many).check("x", &able(), &[]), Err(SetupRefusal::TooManyServers));
    let content = "x".repeat(MAX_SETUP_BYTES);
    let system_message = Some(SystemMessage { mode: SystemMessageMode::Append, content });
    let large = AgentSetup { system_message, ..AgentSetup::default() };
    assert_eq!(large.check("x", &able(), &[]), Err(SetupRefusal::TooLarge));
}

#[test]
fn no_secret_of_a_setup_is_printed() {
    let printed = format!("{:?}", with_servers(vec![server("a", stdio()), server("b", http())]));
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("TOKEN") && printed.contains("Authorization"), "{printed}");
}

#[test]
fn the_names_in_the_file_are_pinned() {
    let setup = AgentSetup {
        mcp_servers: vec![server("a", stdio()), server("b", http())],
        system_message: Some(SystemMessage { mode: SystemMessageMode::Append, content: "be brief".to_owned() }),
        tool_filter: ToolFilter {
            available: Some(BTreeSet::from(["one".to_owned()])),
            excluded: BTreeSet::from(["two".to_owned()]),
            own_tools: false,
        },
        custom_agents: CustomAgents::default(),
        skills: Skills::default(),
        hooks: HookMode::Strict,
    };
    let written = json!({
        "mcpServers": [
            {"name": "a", "type": "stdio", "command": "/bin/server", "args": ["--key=hunter2"], "env": {"TOKEN": "hunter2"}},
            {"name": "b", "type": "http", "url": "https://example.org/?key=hunter2", "headers": {"Authorization": "hunter2"}},
        ],
        "systemMessage": {"mode": "append", "content": "be brief"},
        "toolFilter": {"available": ["one"], "excluded": ["two"]},
        "hooks": "strict",
    });
    assert_eq!(serde_json::to_value(&setup).unwrap(), written);
    assert_eq!(serde_json::from_value::<AgentSetup>(written).unwrap(), setup);
    assert_eq!(serde_json::from_value::<AgentSetup>(json!({})).unwrap(), AgentSetup::default());
}

#[test]
fn a_change_leaves_what_it_does_not_name() {
    let before = with_servers(vec![server("a", stdio())]);
    let system_message = Some(SystemMessage { mode: SystemMessageMode::Append, content: "be brief".to_owned() });
    let after = before.changed(SetupChange { system_message: system_message.clone(), ..SetupChange::default() });
    assert_eq!(after, AgentSetup { system_message, ..before.clone() });
    assert_eq!(after.changed(SetupChange { mcp_servers: Some(vec![]), ..SetupChange::default() }).mcp_servers, vec![]);
    assert_eq!(before.changed(SetupChange::default()), before);
}

#[test]
fn strict_hooks_need_an_agent_that_waits_for_them_before_every_call() {
    let hooked = |hooks| AgentSetup { hooks, ..AgentSetup::default() };
    for (ability, words) in [
        (HookAbility::Unknown, Some("some of its calls")),
        (HookAbility::AllButReads, Some("calls that only read")),
        (HookAbility::EveryCall, None),
    ] {
        let abilities = AgentAbilities { hooks: ability, ..AgentAbilities::default() };
        let refused = hooked(HookMode::Strict).check("x", &abilities, &[]).err().map(|refused| refused.to_string());
        assert_eq!(refused.is_some(), words.is_some(), "{ability:?}");
        if let (Some(refused), Some(words)) = (refused, words) {
            assert!(refused.contains("agent x") && refused.contains(words), "{refused}");
            assert!(refused.contains("hooks = \"best-effort\" under [copilot] in grove.toml"), "{refused}");
        }
        assert_eq!(hooked(HookMode::BestEffort).check("x", &abilities, &[]), Ok(()));
        assert_eq!(hooked(HookMode::None).check("x", &abilities, &[]), Ok(()));
    }
}

#[test]
fn a_filter_knows_the_tools_of_servers_by_the_ends_of_their_names() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let filter = ToolFilter { available: Some(names(&["look", "bash"])), excluded: names(&["bash"]), own_tools: true };
    for (tool, is_allowed) in
        [("look", true), ("mcp__grove__look", true), ("grove-look", true), ("overlook", false), ("bash", false)]
    {
        assert_eq!(filter.allows_call(tool), is_allowed, "{tool}");
    }
    assert!(ToolFilter { excluded: names(&["read"]), ..ToolFilter::default() }.allows_call("notes_read"));
}

#[test]
fn the_prompt_of_the_selected_custom_agent_goes_behind_the_system_message() {
    let agent = |name: &str, unserved: &[&str]| CustomAgent {
        name: name.to_owned(),
        prompt: format!("be a {name}"),
        unserved: unserved.iter().map(|member| (*member).to_owned()).collect(),
        ..CustomAgent::default()
    };
    let message = SystemMessage { mode: SystemMessageMode::Replace, content: "be brief".to_owned() };
    let before = AgentSetup { system_message: Some(message), ..AgentSetup::default() };
    let custom_agents = Some(vec![agent("poet", &[]), agent("clerk", &["tools"])]);
    let select = |name: &str| SetupChange { selected_agent: Some(name.to_owned()), ..SetupChange::default() };
    let defined = before.changed(SetupChange { custom_agents, ..SetupChange::default() });
    assert_eq!(defined.instructions(), before.instructions(), "none is selected");
    let poet = defined.changed(select("poet"));
    let instructions = poet.instructions().unwrap().into_owned();
    assert_eq!(
        (instructions.mode, instructions.content.as_str()),
        (SystemMessageMode::Replace, "be brief\n\nbe a poet")
    );
    assert_eq!(
        poet.check("x", &AgentAbilities { system_message: SystemMessageAbility::Native, ..able() }, &[]),
        Ok(())
    );
    assert!(defined.changed(select("clerk")).custom_agents.check("x").is_err(), "it has tools of its own");
    assert_eq!(
        defined.changed(select("none")).custom_agents.check("x"),
        Err(SetupRefusal::NoCustomAgent("none".to_owned()))
    );
    assert_eq!(poet.changed(select("")).instructions(), before.instructions());
    let gone = poet.changed(SetupChange { custom_agents: Some(Vec::new()), ..SetupChange::default() });
    assert_eq!(gone.instructions(), before.instructions(), "its definition is gone");
}

#[test]
fn the_agent_is_told_of_the_enabled_skills_behind_everything_else() {
    let skill = |name: &str| Skill {
        name: name.to_owned(),
        description: format!("does {name}"),
        path: format!("/skills/{name}/SKILL.md"),
    };
    let message = SystemMessage { mode: SystemMessageMode::Append, content: "be brief".to_owned() };
    let disabled = BTreeSet::from(["sew".to_owned()]);
    let skills = Skills { directories: vec!["/skills".to_owned()], disabled, found: vec![skill("knit"), skill("sew")] };
    let setup = AgentSetup { system_message: Some(message.clone()), skills: skills.clone(), ..AgentSetup::default() };
    let content = setup.instructions().unwrap().into_owned().content;
    assert!(content.starts_with("be brief\n\n"), "{content}");
    assert!(content.ends_with("\n- knit: does knit (/skills/knit/SKILL.md)"), "{content}");
    let none = Skills { found: vec![skill("sew")], ..skills };
    assert_eq!(AgentSetup { skills: none, ..AgentSetup::default() }.instructions(), None);
}
