"""A turn is cancelled in the middle; the next one runs."""

import time

from model import answer, say
from stage import expect, said

TEXT = "".join(f"n{number} " for number in range(1, 101))


def run(stage):
    # The later prompt first: some agents send a cancelled prompt again, in one message with the next.
    stage.begin(answer("and now", [say("Here I am.")]), answer("count slowly", [say(TEXT, 100, 100)]))
    turn = stage.start_turn("please count slowly")
    stage.until_said("n3 ")
    began = time.monotonic()
    stage.client.dispatch(stage.chat, "chat/turnCancelled", turnId=turn, duration=0)
    ended = stage.turn_end(turn, state="cancelled")
    expect("n100" not in said(ended), "the whole answer came")
    again = stage.prompt("and now")
    took = time.monotonic() - began
    expect("Here I am." in said(again), f"the next answer is {said(again)!r}")
    expect(took < 20, f"the next turn took {took:.0f} s")
