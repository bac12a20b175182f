from agent import Agent


class Copilot(Agent):
    name = "copilot"
    packages = ["npm:@github/copilot@1.0.102"]
    program = "copilot"
    arguments = ["--acp", "--no-auto-update"]
    cannot = {"model-choice": "with a model server of one's own it has one model"}

    def environment(self, place):
        return {"COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1", "COPILOT_MODEL": self.models[0], "COPILOT_PROVIDER_API_KEY": "x",
                "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}

    def edit(self, path, old, new):
        return [("view", {"path": path}), ("edit", {"path": path, "old_str": old, "new_str": new})]


AGENT = Copilot()
