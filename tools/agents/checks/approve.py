"""A command waits for an approval, which another client gives."""

from model import answer, say, shell
from stage import calls, expect, said


def run(stage):
    stage.begin(answer("run the command", [say("I will run it."), shell("touch made.txt")], [say("It has run.")]))
    turn = stage.start_turn("please run the command")
    waiting = stage.waiting_call(turn)
    expect(not (stage.folder / "made.txt").exists(), "the command ran before it was approved")
    other = stage.another_client()
    other.state(stage.chat)
    stage.answer(turn, waiting, True, client=other)
    ended = stage.turn_end(turn)
    expect("It has run." in said(ended), f"the answer is {said(ended)!r}")
    expect((stage.folder / "made.txt").exists(), "the command did not run")
    done = calls(ended, "completed")
    expect(done and done[0]["success"] and done[0]["confirmed"] == "user-action", f"the call is shown as {calls(ended)}")
