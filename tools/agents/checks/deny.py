"""A denied command does not run, and the turn ends."""

import grove
from model import answer, say, shell
from stage import calls, expect


def run(stage):
    stage.begin(answer("run the command", [shell("touch denied.txt")], [say("Then not.")]))
    turn = stage.start_turn("please run the command")
    stage.answer(turn, stage.waiting_call(turn), False)

    # An agent may go on, or end its turn.
    def ended():
        return next((each for each in stage.client.state(stage.chat)["turns"] if each["id"] == turn), None)

    found = grove.wait_for("the end of the turn", ended)
    expect(found["state"] in ("complete", "cancelled"), f"the turn is {found['state']}: {found['responseParts']}")
    expect(not (stage.folder / "denied.txt").exists(), "the denied command ran")
    denied = calls(found)
    expect(denied and denied[0]["status"] == "cancelled" and denied[0]["reason"] == "denied", f"the call is not shown as denied: {denied}")
