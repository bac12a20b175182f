"""A file that the agent changes is shown as a difference, with its text before and after."""

from model import answer, call, say
from stage import CheckFailure, calls, expect


def run(stage):
    path = stage.folder / "poem.txt"
    path.write_text("roses are red\nviolets are green\n")
    edits = stage.agent.edit(str(path), "violets are green", "violets are blue")
    stage.begin(answer("correct the poem", *([call(tool, arguments)] for tool, arguments in edits), [say("It is correct.")]))
    turn = stage.prompt("please correct the poem")
    expect(path.read_text() == "roses are red\nviolets are blue\n", f"the file has {path.read_text()!r}: {calls(turn)}")
    shown = [part for each in calls(turn) for part in each.get("content") or [] if part["type"] == "fileEdit"]
    if not shown:
        raise CheckFailure(f"no difference is shown: {calls(turn)}")
    after = shown[-1]["after"]
    expect(after["uri"] == path.as_uri(), f"the difference is about {after['uri']}")
    texts = [body(stage, shown[-1][side]) for side in ("before", "after")]
    expect("violets are green" in texts[0] and "violets are blue" in texts[1], f"the texts are {texts}")


def body(stage, side):
    uri = side["content"]["uri"]
    return stage.client.ask("resourceRead", channel=stage.uri, uri=uri, encoding="utf-8")["data"]
