"""A host of Grove, and clients that speak AHP with it over `grove ahp-bridge`."""

import itertools
import json
import os
import signal
import subprocess
import threading
import time

PATIENCE = 45
"""Seconds until anything that a check waits for counts as missing."""


class RequestRefused(Exception):
    """The host answered a request with an error."""


class Missing(Exception):
    """Something did not happen in time."""


def wait_for(what, condition, patience=PATIENCE, pause=0.05):
    """Waits until a condition gives something, and returns that."""
    deadline = time.monotonic() + patience
    while True:
        if found := condition():
            return found
        if time.monotonic() > deadline:
            raise Missing(f"{what} did not happen within {patience} s")
        time.sleep(pause)


class Host:
    """One process of `grove serve`. It can be killed and started again on the same data."""

    def __init__(self, program, root, environment, path):
        self.program = program
        self.root = root
        self.data = root / "data"
        self.frames = root / "frames.jsonl"
        self.log = root / "host.log"
        self.environment = {"HOME": str(root / "home"), "PATH": os.pathsep.join(path), "LANG": "C.UTF-8",
                            "GROVE_LISTEN": "127.0.0.1:0", **environment}
        self.process = None

    def start(self):
        words = [self.program, "serve", "--json", "--data-dir", str(self.data), "--log-agent-frames", str(self.frames)]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(words, env=self.environment, cwd=self.root, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise Missing(f"the host did not start: {self.log.read_text()[-2000:]}")

    def end(self, number):
        """Ends the process with a signal. Turns that run go on without it."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def restart(self, number, pause=0.0):
        self.end(number)
        time.sleep(pause)
        self.start()

    def run(self, *words, **options):
        """A command of Grove on this host's data."""
        return subprocess.run([self.program, *words, "--data-dir", str(self.data)], env=self.environment, cwd=self.root,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)

    def run_json(self, *words):
        ran = self.run(*words, "--json")
        if ran.returncode:
            raise RequestRefused(f"grove {' '.join(words)}: {ran.stderr.strip() or ran.stdout.strip()}")
        return json.loads(ran.stdout)

    def stop(self):
        """Ends the host and every agent, those of turns that still run too."""
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.run("stop", "--turns")


class Client:
    """A client of AHP 1.0."""

    def __init__(self, host, name):
        self.name = name
        words = [host.program, "ahp-bridge", "--stdio", "--data-dir", str(host.data)]
        self.process = subprocess.Popen(words, env=host.environment, cwd=host.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.ids = itertools.count(1)
        self.answers = {}
        self.arrived = threading.Condition()
        self.actions = []
        """Every action so far: channel, action."""
        self.ended = False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.ask("initialize", channel="ahp-root://", protocolVersions=["1.0.0"], clientId=name)

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.arrived:
                if message.get("method") == "action":
                    self.actions.append((message["params"]["channel"], message["params"]))
                elif "method" not in message:
                    self.answers[message["id"]] = message
                self.arrived.notify_all()
        with self.arrived:
            self.ended = True
            self.arrived.notify_all()

    def _send(self, message):
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Missing(f"the connection has ended: {error}") from error

    def ask(self, method, patience=PATIENCE * 2, **params):
        """A request, and its result."""
        number = next(self.ids)
        self._send({"id": number, "method": method, "params": params})
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.answers or self.ended, patience):
                raise Missing(f"{method} was not answered")
            answer = self.answers.pop(number, None)
        if answer is None:
            raise Missing(f"{method} was not answered: the connection ended")
        if "error" in answer:
            raise RequestRefused(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def dispatch(self, channel, kind, **action):
        """Sends an action, and waits for its echo; a refusal is an error."""
        number = next(self.ids)
        self._send({"method": "dispatchAction",
                    "params": {"channel": channel, "clientSeq": number, "action": {"type": kind, **action}}})
        mine = {"clientId": self.name, "clientSeq": number}

        def echo():
            return next((envelope for _, envelope in self.actions if envelope.get("origin") == mine), None)

        with self.arrived:
            if not self.arrived.wait_for(lambda: echo() or self.ended, PATIENCE) or not echo():
                raise Missing(f"{kind} was not echoed")
            if reason := echo().get("rejectionReason"):
                raise RequestRefused(f"{kind}: {reason}")

    def state(self, channel):
        """The present state of a channel, to which this client is subscribed from then on."""
        return self.ask("subscribe", channel=channel)["snapshot"]["state"]

    def deltas(self, channel):
        """The actions of a channel that append text, in order."""
        return [envelope["action"] for where, envelope in list(self.actions)
                if where == channel and envelope["action"]["type"] in ("chat/delta", "chat/reasoning")]

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()
