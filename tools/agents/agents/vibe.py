from agent import Agent


class Vibe(Agent):
    name = "vibe"
    packages = ["pypi:mistral-vibe==3.0.3"]
    program = "vibe-acp"
    python = (3, 12)
    # Its exact version of the list of certificate authorities is not in every mirror, and any version will do.
    any_version = ["certifi"]
    cannot = {
        "setup": "it offers tools of MCP servers after a search, which the fake model does not make",
    }

    def environment(self, place):
        return {"VIBE_HOME": str(place.root / "vibe"), "FAKE_KEY": "x", "MISTRAL_API_KEY": "x"}

    def configure(self, place):
        models = "".join(f"""\
[[models]]
name = "{model}"
alias = "{model}"
provider = "fake"
supports_images = true
max_context_length = 200000
""" for model in self.models)
        place.write("vibe/config.toml", f"""\
active_model = "{self.models[0]}"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
enable_connectors = false
[[providers]]
name = "fake"
api_base = "{place.url}/v1"
api_key_env_var = "FAKE_KEY"
backend = "generic"
{models}""")

    def edit(self, path, old, new):
        return [("read_file", {"path": path}), ("edit", {"file_path": path, "old_string": old, "new_string": new})]


AGENT = Vibe()
