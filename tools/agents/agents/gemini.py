from agent import Agent


class Gemini(Agent):
    name = "gemini"
    packages = ["npm:@google/gemini-cli@0.61.0"]
    program = "gemini"
    arguments = ["--acp"]
    auth = "gemini-api-key"
    node = 20
    cannot = {"output": "it sends no output of commands", "title": "it gives its sessions no titles"}

    def environment(self, place):
        return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def configure(self, place):
        place.write("home/.gemini/settings.json", {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
                                                   "security": {"auth": {"selectedType": "gemini-api-key"}}})

    def edit(self, path, old, new):
        return [("read_file", {"file_path": path}),
                ("replace", {"file_path": path, "instruction": "Change it", "old_string": old, "new_string": new})]


AGENT = Gemini()
