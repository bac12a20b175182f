"""Grove has the agent write a summary of old turns; from then on the model is told the summary instead of them."""

import hashlib
import json

from model import answer, say
from stage import expect

# An agent may stop a model that repeats itself.
LONG = " ".join(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(600))


def run(stage):
    stage.begin(answer("older part of a conversation", [say("SUMMARY: there was a heliotrope.")]), answer("tell me", [say(LONG)]),
                answer("and now", [say("It ends.")]))
    for number in range(1, 5):
        stage.prompt(f"tell me part {number}")
    done = stage.client.ask("x-grove/compact", channel=stage.uri)
    expect("SUMMARY: there was a heliotrope." in done["summary"], f"the summary is {done['summary']!r}")
    stage.prompt("and now the end")
    body = json.dumps(stage.model.prompts("and now the end")[-1]["body"])
    expect("SUMMARY: there was a heliotrope." in body, "the model was not told the summary")
    expect("tell me part 1" not in body, "the model was told the compacted turns too")
    # People see everything.
    turns = stage.client.state(stage.chat)["turns"]
    expect(any("tell me part 1" in turn["message"]["text"] for turn in turns), "the old turns are no longer shown")
