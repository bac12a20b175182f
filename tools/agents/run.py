"""Run real agents behind Grove, offline, each in front of a fake model, and print a table: agent by check.

    run.py --grove PROGRAM --model PROGRAM --packages FOLDER [--agent NAME]... [--check NAME]... [--jobs 2] [--seconds N] [--keep FOLDER]

`make test-agents` builds the two programs and calls this. A name is that of a file below.

| folder | a file is |
|---|---|
| `agents/` | an agent: a subclass of `agent.Agent` with its packages, command, settings, and what it cannot do |
| `checks/` | a check: a doc string whose first line is printed on failure, and `run(stage)` |

To add an agent: write `agents/NAME.py`. To add a check: write `checks/NAME.py`; it is run for every agent that does not name it in
`cannot`. `run(stage)` gets a `stage.Stage`: a session of its own in a folder of its own, on the agent's one host and one model. It
ends in one of these ways:

| way | result | meaning |
|---|---|---|
| it returns | `ok` | |
| `raise CannotCheck(reason)` | `-` | the agent cannot do it: its frames or its offers show so. Its `cannot` must name the check, else it fails |
| anything else is raised | `FAIL` | Grove does something wrong, or the agent behaves otherwise than in the version before |

After `--seconds` no further check begins; those are shown as `?`, and the run fails. The order of checks is that of their names in `ORDER`, then the rest by name. Agents run beside each other, the checks of an agent one
after the other.
"""

import argparse
import concurrent.futures
import importlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import install  # noqa: E402
import table  # noqa: E402
from stage import CannotCheck, CheckFailure, Place  # noqa: E402

ORDER = ["stream", "approve", "deny", "output", "edit", "cancel", "killed-turn", "killed-request", "resume", "model-choice", "mode", "image", "fork",
         "compaction", "title", "usage", "setup"]
# The slowest first, so that the run does not end with one of them alone.
AGENT_ORDER = ["copilot", "vibe", "qwen", "gemini", "kimi-cli", "kimi", "claude", "opencode", "codex"]


def names(folder, order):
    found = {path.stem.replace("_", "-") for path in (HERE / folder).glob("*.py")}
    return [name for name in order if name in found] + sorted(found - set(order))


def load(folder, name):
    return importlib.import_module(f"{folder}.{name.replace('-', '_')}")


def chosen(given, all_names, kind):
    for name in given:
        if name not in all_names:
            sys.exit(f"test-agents: there is no {kind} {name!r}; there are: {', '.join(all_names)}")
    return [name for name in all_names if not given or name in given]


class Run:
    def __init__(self, options):
        self.options = options
        self.checks = chosen(options.check, names("checks", ORDER), "check")
        self.agents = chosen(options.agent, names("agents", AGENT_ORDER), "agent")
        self.ending = threading.Event()
        self.printing = threading.Lock()
        self.began = time.monotonic()

    def is_late(self):
        return bool(self.options.seconds) and time.monotonic() - self.began > self.options.seconds

    def say(self, text):
        with self.printing:
            print(text, flush=True)

    def run_agent(self, name):
        """The results of one agent: check, result."""
        agent = load("agents", name).AGENT
        began = time.monotonic()
        row = table.Row(name, agent.version)
        try:
            programs = install.install(agent, pathlib.Path(self.options.packages), self.say)
        except install.CannotRun as reason:
            row.absent = str(reason)
            self.say(f"{name}: cannot run here: {reason}")
            return row
        root = pathlib.Path(tempfile.mkdtemp(prefix=f"grove-agents-{name}-"))
        place = Place(root, agent, programs, self.options.grove, self.options.model)
        try:
            place.start()
            for check in self.checks:
                if self.ending.is_set() or self.is_late():
                    break
                self.run_check(place, row, check)
        except Exception as failure:
            row.results["start"] = table.Result("FAIL", first_line(failure))
            self.say(f"{name}: it does not start: {traceback.format_exc()}{place.log_end()}")
        finally:
            place.stop()
            if self.options.keep:
                shutil.copytree(root, pathlib.Path(self.options.keep) / name, symlinks=True, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("socket"))
            shutil.rmtree(root, ignore_errors=True)
            row.seconds = time.monotonic() - began
        self.say(f"{name}: done after {row.seconds:.0f} s")
        return row

    def run_check(self, place, row, check):
        module = load("checks", check)
        known = place.agent.cannot.get(check)
        began = time.monotonic()
        stage = None
        try:
            stage = place.stage(check)
            module.run(stage)
            if known:
                raise CheckFailure(f"the agent can do this now: remove {check!r} from its `cannot`")
            result = table.Result("ok")
        except CannotCheck as reason:
            text = f"{known} ({reason})" if known else f"its `cannot` does not name {check!r}, and yet: {reason}"
            result = table.Result("-" if known else "FAIL", text)
        except Exception as failure:
            result = table.Result("FAIL", first_line(failure))
            detail = traceback.format_exc() + (stage.report() if stage else "") + place.log_end()
            self.say(f"{row.name}: {check}: {module.__doc__.strip().splitlines()[0]}\n{detail}")
        finally:
            if stage:
                stage.close()
        result.seconds = time.monotonic() - began
        row.results[check] = result
        reason = f": {result.reason}" if result.reason else ""
        self.say(f"{row.name}: {check}: {result.outcome} after {result.seconds:.1f} s{reason}")

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            rows = list(pool.map(self.run_agent, self.agents))
        print(table.text(self.checks, rows))
        if self.is_late():
            print(f"test-agents: more than {self.options.seconds} s: what is shown as `?` was not tried")
        is_whole = all(row.absent or len(row.results) >= len(self.checks) for row in rows)
        return 0 if is_whole and not any(row.failed for row in rows) and not self.ending.is_set() else 1


def first_line(failure):
    text = f"{type(failure).__name__}: {failure}" if not isinstance(failure, CheckFailure) else str(failure)
    return text.strip().splitlines()[0][:300] if text.strip() else type(failure).__name__


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grove", required=True, type=os.path.abspath, help="the program of Grove")
    parser.add_argument("--model", required=True, type=os.path.abspath, help="the fake model of the test kit")
    parser.add_argument("--packages", required=True, type=os.path.abspath, help="the folder in which agents are installed")
    parser.add_argument("--agent", action="append", default=[], help="only this agent")
    parser.add_argument("--check", action="append", default=[], help="only this check")
    parser.add_argument("--jobs", type=int, default=2, help="agents at a time [2]")
    parser.add_argument("--seconds", type=int, default=0, help="the time after which no further check begins [none]")
    parser.add_argument("--keep", help="copy each agent's folders here: data, home, frames, logs")
    run = Run(parser.parse_args())

    def end(_signal, _frame):
        # The agent processes must end with this one.
        run.ending.set()
        raise SystemExit("test-agents: stopped")

    signal.signal(signal.SIGTERM, end)
    os.environ.pop("GROVE_TOKEN", None)
    sys.exit(run.run())


if __name__ == "__main__":
    main()
