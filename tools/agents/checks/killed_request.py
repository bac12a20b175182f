"""The host is killed while a permission request waits: it waits still, and its answer reaches the agent."""

import signal

from model import answer, say, shell
from stage import expect, said


def run(stage):
    stage.begin(answer("ask and wait", [say("May I?"), shell("touch asked.txt")], [say("Thank you.")]))
    turn = stage.start_turn("please ask and wait")
    stage.waiting_call(turn)
    stage.restart(signal.SIGKILL)
    expect(not (stage.folder / "asked.txt").exists(), "the command ran without an approval")
    stage.answer(turn, stage.waiting_call(turn), True, client=stage.client)
    ended = stage.turn_end(turn)
    expect((stage.folder / "asked.txt").exists(), "the command did not run")
    text = said(ended)
    expect(text.count("May I?") == 1 and "Thank you." in text, f"the answer is {text!r}")
    shown = stage.host.run_json("show", stage.uri)
    stored = "".join(part.get("text", "") for part in shown["turns"][-1]["parts"])
    expect(stored == text, f"`grove show` has {stored!r}, the state {text!r}")
