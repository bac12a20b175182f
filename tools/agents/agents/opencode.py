from agent import Agent


class OpenCode(Agent):
    name = "opencode"
    packages = ["npm:opencode-ai@1.18.33"]
    program = "opencode"
    arguments = ["acp"]
    cannot = {"title": "it gives its sessions no titles"}

    def environment(self, place):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def configure(self, place):
        modalities = {"input": ["text", "image"], "output": ["text"]}
        models = {model: {"name": model, "attachment": True, "modalities": modalities} for model in self.models}
        place.write("home/.config/opencode/opencode.json", {
            "model": f"fake/{self.models[0]}",
            "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "models": models,
                                  "options": {"baseURL": f"{place.url}/v1", "apiKey": "x"}}},
            "permission": {"bash": "ask"}})

    def edit(self, path, old, new):
        return [("read", {"filePath": path}), ("edit", {"filePath": path, "oldString": old, "newString": new})]


AGENT = OpenCode()
