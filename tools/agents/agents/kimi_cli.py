from agent import Agent


class KimiCli(Agent):
    name = "kimi-cli"
    # The last version that works: the next one only says that kimi-code took its place.
    packages = ["pypi:kimi-cli==1.51.0"]
    program = "kimi-cli"
    arguments = ["acp"]
    # It does not start on the first versions of 3.12.
    python = (3, 13)
    cannot = {
        "mode": "its only mode is the default one",
        "title": "it gives its sessions no titles",
        "usage": "it passes on no counts of the model",
    }

    def environment(self, place):
        return {"KIMI_SHARE_DIR": str(place.root / "kimi-cli"), "KIMI_CLI_NO_AUTO_UPDATE": "1"}

    def configure(self, place):
        models = "".join(f"""\
[models."{model}"]
provider = "fake"
model = "{model}"
max_context_size = 200000
capabilities = ["image_in"]
""" for model in self.models)
        place.write("kimi-cli/config.toml", f"""\
default_model = "{self.models[0]}"
telemetry = false
[providers.fake]
type = "openai_legacy"
base_url = "{place.url}/v1"
api_key = "x"
{models}""")
        # It opens no session without an account, whatever model it uses.
        place.write("kimi-cli/credentials/kimi-code.json", """\
{"access_token": "x", "refresh_token": "x", "expires_at": 4102444800, "scope": "", "token_type": "Bearer"}""")

    def edit(self, path, old, new):
        edit = {"old": old, "new": new}
        return [("ReadFile", {"path": path}), ("StrReplaceFile", {"path": path, "edit": edit})]


AGENT = KimiCli()
