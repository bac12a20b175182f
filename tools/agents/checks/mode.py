"""The mode is switched between two turns: the agent is told, and its new mode is shown."""

from grove import wait_for
from model import answer, say
from stage import CannotCheck, CheckFailure, expect


def run(stage):
    stage.begin(answer("say hello", [say("Hello.")]))
    stage.prompt("say hello")
    schema, values = stage.settings()
    if "mode" not in schema:
        raise CannotCheck("it offers no modes")
    choices = schema["mode"].get("enum", [])
    others = [choice for choice in choices if choice != values["mode"]]
    if not others:
        raise CannotCheck(f"its only mode is {values['mode']!r}")
    wanted = stage.agent.mode or others[0]
    if wanted not in others:
        raise CheckFailure(f"no mode {wanted!r} to switch to: {choices}, now {values['mode']}")
    stage.client.dispatch(stage.uri, "session/configChanged", config={"mode": wanted})
    stage.prompt("say hello again")
    wait_for("the new mode", lambda: stage.settings()[1].get("mode") == wanted, patience=5)
    sent = [frame for frame in stage.frames("c->a")
            if frame.get("method") in ("session/set_mode", "session/set_config_option") and wanted in frame["params"].values()]
    expect(sent, "the agent was not told")
    answers = [frame for frame in stage.agent_frames() if frame.get("id") == sent[0]["id"] and "method" not in frame]
    expect(answers and "error" not in answers[0], f"the agent refused: {answers}")
