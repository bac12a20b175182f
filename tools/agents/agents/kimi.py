from agent import Agent


class Kimi(Agent):
    name = "kimi"
    packages = ["npm:@moonshot-ai/kimi-code@2.1.0"]
    program = "kimi"
    arguments = ["acp"]
    node = 22

    def environment(self, place):
        return {"KIMI_CODE_HOME": str(place.root / "kimi"), "KIMI_CODE_NO_AUTO_UPDATE": "1"}

    def configure(self, place):
        models = "".join(f"""\
[models."{model}"]
provider = "fake"
model = "{model}"
max_context_size = 200000
capabilities = ["image_in"]
""" for model in self.models)
        place.write("kimi/config.toml", f"""\
default_model = "{self.models[0]}"
telemetry = false
[providers.fake]
type = "openai"
base_url = "{place.url}/v1"
api_key = "x"
{models}""")

    def edit(self, path, old, new):
        return [("Read", {"path": path}), ("Edit", {"path": path, "old_string": old, "new_string": new})]


AGENT = Kimi()
