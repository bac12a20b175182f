"""An answer arrives in pieces while the model writes it, and the stored text is what the model wrote."""

from model import answer, say, think
from stage import CheckFailure, expect, said

TEXT = "".join(f"n{number} " for number in range(1, 31))


def run(stage):
    stage.begin(answer("count to thirty", [think("Let me count."), say(TEXT, 30, 60)]))
    turn = stage.prompt("please count to thirty")
    expect(TEXT.strip() in said(turn), f"the model wrote {TEXT!r}, the turn has {said(turn)!r}")
    deltas = stage.client.deltas(stage.chat)
    text = "".join(action["content"] for action in deltas if action["type"] == "chat/delta")
    # The first piece of a part may be part of its beginning.
    if len(deltas) < 5 or "n30" not in text:
        chunks = stage.updates("agent_message_chunk")
        raise CheckFailure(f"{len(deltas)} pieces of text arrived, and the agent sent {len(chunks)}")
    shown = stage.host.run("export", stage.uri, "--format", "markdown", "--out", "-")
    if shown.returncode == 0:
        expect(TEXT.strip() in shown.stdout, "the export lacks text")
