"""The model is switched between two turns: the next request names the other one."""

from model import answer, say
from stage import CannotCheck, CheckFailure, expect


def run(stage):
    stage.begin(answer("say hello", [say("Hello.")]))
    stage.prompt("say hello")
    schema, values = stage.settings()
    if "model" not in schema:
        raise CannotCheck("it offers no models")
    choices = schema["model"].get("enum", [])
    others = [choice for choice in choices if choice != values["model"]]
    if not others:
        raise CannotCheck(f"it offers no other model than {values['model']!r}")
    before = models_asked(stage, "say hello")
    wanted = next((choice for choice in others if stage.agent.models[1] in choice), others[0])
    stage.client.dispatch(stage.uri, "session/configChanged", config={"model": wanted})
    stage.prompt("say hello again")
    after = models_asked(stage, "say hello again")
    expect(after - before, f"{after} is asked before and after the choice of {wanted!r}; there are {choices}")
    now = stage.settings()[1]["model"]
    if now != wanted:
        raise CheckFailure(f"the chosen model is {wanted!r}, and {now!r} is shown")


def models_asked(stage, text):
    """The models that the requests with a text name, in their bodies or in their paths."""
    asked = (request for request in stage.model.requests() if text in str(request["body"]))
    return {request["body"].get("model") or request["path"].rsplit("/", 1)[-1].split(":")[0] for request in asked}
