"""The real Copilot CLI on a real Grove: it lists, creates a session, sends a prompt, shows the streamed answer of the
scripted agent, asks for the permission and answers it. Offline, in folders of its own, on a terminal that tmux draws."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

GROVE, COPILOT = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 60


class Screen:
    """A program on a terminal of its own, as tmux draws it."""

    def __init__(self, command, env, cwd):
        self.tmux = ["tmux", "-f", os.devnull, "-L", f"grove-{os.getpid()}"]
        words = [f"{name}={value}" for name, value in env.items()] + command
        self.run("new-session", "-d", "-x", "120", "-y", "40", "-c", cwd, shlex.join(["env", "-i", *words]))

    def run(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, capture_output=True, text=True).stdout

    def wait_for(self, words):
        deadline = time.monotonic() + PATIENCE
        while words not in (shown := self.run("capture-pane", "-p")):
            if time.monotonic() > deadline:
                raise SystemExit(f"it never showed {words!r}; what it shows:\n{shown}")
            time.sleep(0.2)
        print(f"  it showed {words!r}")

    def type(self, *keys):
        self.run("send-keys", *keys)

    def end(self):
        subprocess.run([*self.tmux, "kill-server"], check=False)


def wait_for_end(frames):
    """Waits until the host has told of the turn's end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with open(frames) as log:
            if "chat/turnComplete" in log.read():
                return
        if time.monotonic() > deadline:
            raise SystemExit("the turn never ended")
        time.sleep(0.2)


def main():
    with tempfile.TemporaryDirectory() as place:
        data, home, work = (os.path.join(place, name) for name in ("data", "home", "work"))
        os.makedirs(os.path.join(home, ".copilot"))
        os.makedirs(work)
        with open(os.path.join(home, ".copilot", "settings.json"), "w") as settings:
            json.dump({"enabledFeatureFlags": {"AHP_CLIENT": True}}, settings)
        with open(os.path.join(home, ".copilot", "config.json"), "w") as config:
            json.dump({"trusted_folders": [work]}, config)
        frames = os.path.join(place, "frames.jsonl")
        serve = [GROVE, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--json", "--log-frames", frames]
        host = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        try:
            where = json.loads(host.stdout.readline())
            env = {
                "HOME": home,
                "COPILOT_HOME": os.path.join(home, ".copilot"),
                "PATH": os.environ["PATH"],
                "TERM": "xterm-256color",
                "COPILOT_AUTO_UPDATE": "false",
                "COPILOT_OFFLINE": "true",
                # A provider of its own, so that it asks nobody to sign in; it is never called.
                "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/v1",
                "COPILOT_PROVIDER_API_KEY": "none",
                "COPILOT_MODEL": "none",
            }
            address = f"{where['ws']}?tkn={where['token']}"
            screen = Screen([COPILOT, "--experimental", "--ahp", address], env, work)
            try:
                screen.wait_for("Connected to New session")
                screen.type("hello grove")
                time.sleep(1)
                screen.type("Enter")
                screen.wait_for("I am the scripted agent")
                screen.wait_for("Approve once")
                screen.type("Enter")
                screen.wait_for("That is all I can do by myself")
                wait_for_end(frames)
            finally:
                screen.end()
        finally:
            host.terminate()
            host.wait(10)
        with open(frames) as log:
            told = [json.loads(line) for line in log]
        methods = [frame.get("method") for frame in told]
        assert {"initialize", "listSessions", "createSession", "subscribe", "dispatchAction"} <= set(methods), methods
        actions = [frame["params"]["action"]["type"] for frame in told if frame.get("method") == "action"]
        assert {"chat/turnStarted", "chat/delta", "chat/toolCallConfirmed", "chat/turnComplete"} <= set(actions), actions
        # What the program adds to the protocol for itself, no other host knows either.
        own = ("extensions/", "copilot/")
        refusals = [frame.get("error", {}).get("message") or frame.get("params", {}).get("rejectionReason") for frame in told]
        refused = [reason for reason in refusals if reason and not any(word in reason for word in own)]
        assert not refused, refused
        print(f"  {len(told)} frames, and nothing of the protocol was refused")


main()
