from agent import Agent


class Qwen(Agent):
    name = "qwen"
    packages = ["npm:@qwen-code/qwen-code@0.24.4"]
    program = "qwen"
    arguments = ["--acp"]
    auth = "openai"
    node = 22
    cannot = {
        "setup": "it offers tools of MCP servers after a search, which the fake model does not make",
        "title": "it gives its sessions no titles",
    }

    def environment(self, place):
        return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{place.url}/v1"}

    def configure(self, place):
        models = [{"id": model, "name": model, "envKey": "OPENAI_API_KEY", "baseUrl": f"{place.url}/v1",
                   "generationConfig": {"modalities": {"image": True}}} for model in self.models]
        place.write("home/.qwen/settings.json", {
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}, "tools": {"approvalMode": "default"},
            "modelProviders": {"openai": models}, "model": {"name": self.models[0]}, "security": {"auth": {"selectedType": "openai"}}})

    def edit(self, path, old, new):
        return [("read_file", {"file_path": path}), ("edit", {"file_path": path, "old_string": old, "new_string": new})]


AGENT = Qwen()
