"""The tokens of a turn, as the model server counted them, are shown."""

import json

from model import answer, say
from stage import CannotCheck, expect

INPUT, OUTPUT = 4321, 1234


def run(stage):
    stage.begin(answer("say hello", [say("Hello.")]), usage={"input": INPUT, "output": OUTPUT})
    turn = stage.prompt("say hello")
    usage = turn.get("usage")
    frames = json.dumps(stage.agent_frames())
    if str(INPUT) not in frames and str(OUTPUT) not in frames and str(INPUT + OUTPUT) not in frames:
        raise CannotCheck("it passes on no counts of the model")
    expect(usage, "no usage is shown, and the agent sent some")
    shown = json.dumps(usage)
    if str(OUTPUT) in frames and str(INPUT) in frames:
        expect(usage.get("inputTokens") == INPUT and usage.get("outputTokens") == OUTPUT, f"the usage shown is {shown}")
    else:
        expect(str(INPUT) in shown or str(INPUT + OUTPUT) in shown, f"the usage shown is {shown}")
