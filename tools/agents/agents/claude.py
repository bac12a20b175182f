from agent import Agent


class Claude(Agent):
    name = "claude"
    packages = ["npm:@agentclientprotocol/claude-agent-acp@0.100.0"]
    program = "claude-agent-acp"
    node = 22
    models = ["default", "haiku"]
    cannot = {
        "setup": "it offers tools of MCP servers after a search, which the fake model does not make",
    }

    def environment(self, place):
        return {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": "x", "CLAUDE_CONFIG_DIR": str(place.root / "claude"),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "IS_SANDBOX": "1"}

    def edit(self, path, old, new):
        return [("Read", {"file_path": path}), ("Edit", {"file_path": path, "old_string": old, "new_string": new})]


AGENT = Claude()
