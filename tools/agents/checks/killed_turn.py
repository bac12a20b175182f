"""The host is killed in the middle of a turn: the agent works on, and no text is lost or doubled."""

import signal

from model import answer, say
from stage import expect, said

TEXT = "".join(f"n{number} " for number in range(1, 51))


def run(stage):
    stage.begin(answer("count while the host restarts", [say(TEXT, 50, 80)]), answer("and now", [say("Here I am.")]))
    turn = stage.start_turn("please count while the host restarts")
    stage.until_said("n5 ")
    # The agent goes on meanwhile, with nobody listening.
    stage.restart(signal.SIGKILL, 1.5)
    ended = stage.turn_end(turn)
    requests = [each for each in stage.model.prompts("count while") if each["purpose"]["turn"]["turn"] is not None]
    expect(len(requests) == 1, f"the model was asked {len(requests)} times")
    whole(said(ended), "the state")
    shown = stage.host.run_json("show", stage.uri)
    whole("".join(part.get("text", "") for part in shown["turns"][-1]["parts"]), "`grove show`")
    exported = stage.host.run("export", stage.uri, "--format", "markdown", "--out", "-")
    whole(exported.stdout, "`grove export`")
    again = stage.prompt("and now")
    expect("Here I am." in said(again), f"the next answer is {said(again)!r}")


def whole(text, where):
    """Some agents send something before the model's answer: only that is compared."""
    expect(text.count("n1 ") == 1 and TEXT.strip() in text, f"{where} has not exactly the text that the model sent: {text!r}")
