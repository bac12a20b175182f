"""The table of results: a line for each check, a column for each agent."""

import dataclasses


@dataclasses.dataclass
class Result:
    outcome: str
    """`ok`, `-` (the agent cannot) or `FAIL` (Grove, or an agent that has changed)."""
    reason: str = ""
    seconds: float = 0.0


@dataclasses.dataclass
class Row:
    """The results of an agent."""

    name: str
    version: str
    results: dict = dataclasses.field(default_factory=dict)
    absent: str = ""
    """The reason why the agent cannot run on this machine."""
    seconds: float = 0.0

    @property
    def failed(self):
        return any(result.outcome == "FAIL" for result in self.results.values())


def text(checks, rows):
    """The table, and below it the reasons, numbered in the cells that they belong to."""
    notes = []

    def note(text):
        if text not in notes:
            notes.append(text)
        return notes.index(text) + 1

    def cell(row, check):
        if row.absent:
            return f"n/a {note(f'{row.name} cannot run here: {row.absent}')}"
        result = row.results.get(check) or row.results.get("start")
        if not result:
            return "?"
        if not result.reason:
            return result.outcome
        kind = "FAIL" if result.outcome == "FAIL" else "the agent cannot"
        return f"{result.outcome} {note(f'{row.name}, {check}: {kind}: {result.reason}')}"

    lines = [["", *(row.name for row in rows)], ["", *(row.version for row in rows)]]
    lines += [[check, *(cell(row, check) for row in rows)] for check in checks]
    lines.append(["seconds", *(f"{row.seconds:.0f}" for row in rows)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    table = ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]
    table.insert(2, "  ".join("-" * width for width in widths))
    table += ["", "ok: works; -: the agent cannot; FAIL: Grove does something wrong, or the agent has changed; n/a: not run"]
    table += [f"{number}. {each}" for number, each in enumerate(notes, 1)]
    return "\n" + "\n".join(table)
