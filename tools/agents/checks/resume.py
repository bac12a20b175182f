"""After a restart of the host, a new process of the agent remembers the conversation."""

import json

from model import answer, say
from stage import expect


def run(stage):
    stage.begin(answer("what did I say", [say("You said a lot.")]))
    stage.prompt("what did I say: the word is heliotrope")
    # Nothing runs, so the agent ends with the host.
    stage.restart()
    stage.prompt("and now, what did I say")
    last = stage.model.prompts("and now, what did I say")[-1]
    body = json.dumps(last["body"])
    expect("heliotrope" in body, f"the agent does not remember: {body[-1500:]}")
    expect(body.count("and now, what did I say") == 1, f"the prompt was sent twice: {body[-1500:]}")
