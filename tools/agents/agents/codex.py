from agent import Agent


class Codex(Agent):
    name = "codex"
    packages = ["npm:@agentclientprotocol/codex-acp@2.6.0"]
    program = "codex-acp"
    locks_copies = True
    # The newest ones get no tools of the usual kind. The second is only asked once.
    models = ["gpt-5.5", "gpt-6-sol"]
    cannot = {
        "setup": "it offers tools of MCP servers after a search, which the fake model does not make",
    }

    def environment(self, place):
        return {"CODEX_HOME": str(place.root / "codex"), "NO_BROWSER": "1", "INITIAL_AGENT_MODE": "workspace-write"}

    def configure(self, place):
        place.write("codex/config.toml", f"""\
model = "{self.models[0]}"
model_provider = "fake"
sandbox_mode = "danger-full-access"
approval_policy = "on-request"
[model_providers.fake]
name = "fake"
base_url = "{place.url}/v1"
wire_api = "responses"
requires_openai_auth = false
""")
        # Outside of its sandbox, it asks only for what a rule names.
        place.write("codex/rules/default.rules", 'prefix_rule(pattern = ["touch"], decision = "prompt")\n')

    def edit(self, path, old, new):
        return [("apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n")]


AGENT = Codex()
