"""The output of a command is shown in its call."""

import json

from model import answer, say, shell
from stage import CannotCheck, CheckFailure, calls


def run(stage):
    stage.begin(answer("run the command", [shell("echo grove-was-$((40 + 2))")], [say("It has run.")]))
    ended = stage.prompt("please run the command")
    if "grove-was-42" in json.dumps([call.get("content") for call in calls(ended, "completed")]):
        return
    if "grove-was-42" in json.dumps(stage.agent_frames()):
        raise CheckFailure(f"the agent sent the output, and the call is shown as {calls(ended)}")
    raise CannotCheck("it does not send the output of commands")
