"""Moved back, forked and branched off, the agent knows the messages on the way and no others."""

import json

from model import answer, say
from stage import expect


def run(stage):
    stage.begin(answer("what did I say", [say("You said a lot.")]))
    stage.prompt("what did I say: the word is heliotrope")
    stage.prompt("what did I say: the word is marigold")

    stage.client.ask("x-grove/navigate", channel=stage.uri, entry=entry(stage, "marigold"))
    stage.prompt("what did I say: the word is snapdragon")
    knows(stage, "after a move", "snapdragon", {"heliotrope"}, {"marigold"})

    fork = stage.client.ask("x-grove/fork", channel=stage.uri)["session"]
    stage.prompt("what did I say: the word is foxglove", stage.follow(fork))
    body = knows(stage, "in a fork", "foxglove", {"heliotrope", "snapdragon"}, {"marigold"})
    copies = stage.capabilities().get("sessionCapabilities", {}).get("fork") is not None and not stage.agent.locks_copies
    retold = r"User:\nwhat did I say: the word is snapdragon" in body
    expect(retold != copies, f"the conversation was {'retold' if retold else 'not retold'}, and the agent can{'' if copies else 'not'} copy it")

    branch = stage.client.ask("x-grove/branch", channel=stage.uri, entry=entry(stage, "snapdragon"))["session"]
    stage.prompt("what did I say: the word is larkspur", stage.follow(branch))
    knows(stage, "in a branch", "larkspur", {"heliotrope"}, {"marigold", "snapdragon", "foxglove"})

    # The source went on with none of it.
    stage.prompt("what did I say: the word is edelweiss")
    knows(stage, "in the source", "edelweiss", {"heliotrope", "snapdragon"}, {"marigold", "foxglove", "larkspur"})
    for session in (fork, branch):
        stage.client.ask("disposeSession", channel=session)


def entry(stage, text):
    """The entry of a message."""
    rows = stage.client.ask("x-grove/tree", channel=stage.uri, filter="user-only")["rows"]
    return next(row["id"] for row in rows if text in row["text"])


def knows(stage, where, word, wanted, unwanted):
    body = json.dumps(stage.model.prompts(word)[-1]["body"])
    expect(all(each in body for each in wanted), f"{where}, the model was not told {wanted}: {body[-1500:]}")
    expect(not any(each in body for each in unwanted), f"{where}, the model was told one of {unwanted}: {body[-1500:]}")
    return body
