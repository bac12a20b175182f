"""The fake model of the test kit, as a process, and its script."""

import json
import subprocess
import urllib.request


class Model:
    """A model server on loopback. `script` replaces its answers."""

    def __init__(self, program, seconds=1800):
        words = [program, "--seconds", str(seconds)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.first = 0
        """Requests up to this number are those of earlier checks."""

    def script(self, *turns, **options):
        """Sets the answers. Earlier requests are forgotten."""
        body = json.dumps({"turns": list(turns), **options}).encode()
        request = urllib.request.Request(f"{self.url}/grove/script", body, method="PUT")
        with urllib.request.urlopen(request, timeout=10):
            pass
        self.first = max((request["number"] for request in self.all_requests()), default=0)

    def all_requests(self):
        with urllib.request.urlopen(f"{self.url}/grove/requests", timeout=10) as answer:
            return json.load(answer)

    def requests(self):
        """The requests since the script was set, oldest first."""
        return [request for request in self.all_requests() if request["number"] > self.first]

    def prompts(self, text=""):
        """Those of the conversation, without titles and the like, that contain a text."""
        of_turns = (request for request in self.requests() if isinstance(request["purpose"], dict))
        return [request for request in of_turns if text in json.dumps(request["body"], ensure_ascii=False)]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def answer(prompt, *replies):
    """The replies to a prompt that contains a text: one for each request of the agent until the prompt is done."""
    return {"when": {"told": prompt}, "answers": list(replies)}


def say(text, pieces=1, pause_ms=0):
    return {"say": {"text": text, "chunks": pieces, "delay_ms": pause_ms}}


def think(text):
    return {"think": {"text": text}}


def shell(command):
    return {"shell": {"command": command}}


def call(tool, arguments):
    return {"call": {"tool": tool, "arguments": arguments}}
