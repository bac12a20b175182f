"""The title that the agent gives its session is shown; without one, that of the first message."""

import time

from grove import wait_for
from model import answer, say
from stage import CannotCheck, expect


def run(stage):
    stage.begin(answer("say hello", [say("Hello.")]), utility="A title of the model")
    stage.prompt("say hello, please")
    first = stage.client.state(stage.uri)["title"]
    # It may think of a title after its answer.
    deadline = time.monotonic() + 5
    while not titles(stage) and time.monotonic() < deadline:
        time.sleep(0.2)
    given = titles(stage)
    if not given:
        expect("say hello, please" in first, f"without a title of the agent, it is {first!r}")
        raise CannotCheck("it sends no title; that of the first message is shown")
    wait_for(f"the title {given[-1]!r}", lambda: stage.client.state(stage.uri)["title"] == titles(stage)[-1], patience=5)
    rows = stage.host.run_json("ls")["sessions"]
    row = next(row for row in rows if row["id"].endswith(stage.check))
    # An agent may send one more title meanwhile.
    expect(row["title"] in given[-1:] + titles(stage)[-1:], f"`grove ls` shows {row['title']!r}, not {titles(stage)}")


def titles(stage):
    return [update["title"] for update in stage.updates("session_info_update") if update.get("title")]
