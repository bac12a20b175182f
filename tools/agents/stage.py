"""The surroundings of a check: an agent's host and model, and a session of its own."""

import json
import os
import signal

import grove
import model as model_server
from grove import wait_for


class CannotCheck(Exception):
    """The agent cannot do what a check tries."""


class CheckFailure(Exception):
    """Something is not as a check expects it."""


def expect(condition, what):
    if not condition:
        raise CheckFailure(what)


class Place:
    """One agent with its host, its model and its folders. All of its checks share it."""

    def __init__(self, root, agent, programs, grove_program, model_program):
        self.root = root
        self.agent = agent
        self.home = root / "home"
        self.home.mkdir()
        self.model = model_server.Model(model_program)
        self.url = self.model.url
        self.path = programs.path
        self.command = [str(programs.program), *agent.arguments]
        self.host = grove.Host(grove_program, root, {}, programs.path)

    def write(self, name, text):
        """Writes a file below the folder of this place."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))

    def start(self):
        self.agent.configure(self)
        environment = {"PATH": os.pathsep.join(self.path), **self.agent.environment(self)}
        table = {"command": self.command, "env": environment}
        if self.agent.auth:
            table["auth"] = self.agent.auth
        lines = [f"[agents.{self.agent.name}]"]
        for key, value in table.items():
            if isinstance(value, dict):
                value = "{ " + ", ".join(f"{name} = {json.dumps(text)}" for name, text in value.items()) + " }"
            else:
                value = json.dumps(value)
            lines.append(f"{key} = {value}")
        self.write("home/.config/grove/grove.toml", "\n".join(lines) + "\n")
        self.host.start()

    def stage(self, check):
        return Stage(self, check)

    def log_end(self):
        """The end of the host's log."""
        return f"\nhost: {self.host.log.read_text()[-3000:]}" if self.host.log.exists() else ""

    def stop(self):
        try:
            self.host.stop()
        finally:
            self.model.stop()


class Stage:
    """A session of one check."""

    def __init__(self, place, check):
        self.place = place
        self.agent = place.agent
        self.model = place.model
        self.host = place.host
        self.check = check
        self.folder = place.root / "work" / check
        self.folder.mkdir(parents=True)
        (self.folder / "README.md").write_text("# A folder to work in\n")
        self.uri = f"{self.agent.name}:/{check}"
        self.client = grove.Client(self.host, f"{check}-1")
        self.clients = [self.client]
        self.chat = None
        self.turns = 0

    def another_client(self):
        client = grove.Client(self.host, f"{self.check}-{len(self.clients) + 1}")
        self.clients.append(client)
        return client

    def begin(self, *turns, **options):
        """Sets the model's script, and creates the session."""
        self.model.script(*turns, **options)
        self.client.ask("createSession", channel=self.uri, workingDirectories=[self.folder.as_uri()])
        self.follow()

    def follow(self, uri=None):
        """Waits until a session is ready, and subscribes to its chat, whose URI is returned."""
        uri = uri or self.uri

        def ready():
            state = self.client.state(uri)
            expect(state["lifecycle"] != "failed", f"the session failed: {state.get('creationError')}")
            return state if state["lifecycle"] == "ready" else None

        chat = wait_for("the session is ready", ready)["defaultChat"]
        self.client.state(chat)
        if uri == self.uri:
            self.chat = chat
        return chat

    def restart(self, number=signal.SIGTERM, pause=0.0):
        """Ends the host with a signal, starts it again after a while, and connects again."""
        self.host.restart(number, pause)
        self.client = self.another_client()
        self.follow()

    def start_turn(self, text, chat=None, attachments=None):
        """Starts a turn with a prompt, and returns its id."""
        self.turns += 1
        turn = f"t{self.turns}"
        message = {"text": text, "origin": {"kind": "user"}}
        if attachments:
            message["attachments"] = attachments
        self.client.dispatch(chat or self.chat, "chat/turnStarted", turnId=turn, startedAt="2026-10-10T10:00:00.000Z",
                             message=message)
        return turn

    def turn_end(self, turn, chat=None, state="complete"):
        """Waits for the end of a turn, and returns it."""
        def ended():
            turns = self.client.state(chat or self.chat)["turns"]
            return next((each for each in turns if each["id"] == turn), None)

        found = wait_for(f"the end of {turn}", ended)
        expect(found["state"] == state, f"the turn is {found['state']}, not {state}: {json.dumps(found['responseParts'])[-1500:]}")
        return found

    def prompt(self, text, chat=None, attachments=None):
        """Runs a turn to its end, and returns it. Permission requests are approved."""
        turn = self.start_turn(text, chat, attachments)
        chat = chat or self.chat

        def ended():
            state = self.client.state(chat)
            for waiting in calls(state.get("activeTurn"), "pending-confirmation"):
                self.answer(turn, waiting, True, chat)
            return next((each for each in state["turns"] if each["id"] == turn), None)

        found = wait_for(f"the end of {turn}", ended, pause=0.1)
        expect(found["state"] == "complete", f"the turn is {found['state']}: {json.dumps(found['responseParts'])[-1500:]}")
        return found

    def active_turn(self):
        return self.client.state(self.chat).get("activeTurn")

    def until_said(self, text):
        """Waits until the running turn has said a text."""
        wait_for(f"{text!r} in the answer", lambda: (turn := self.active_turn()) and text in said(turn))

    def waiting_call(self, turn):
        """Waits for a permission request of a turn, and returns its call."""

        def waiting():
            state = self.client.state(self.chat)
            ended = next((each for each in state["turns"] if each["id"] == turn), None)
            expect(not ended, f"the turn ended without a permission request: {ended}")
            return next(iter(calls(state.get("activeTurn"), "pending-confirmation")), None)

        return wait_for("a permission request", waiting)

    def answer(self, turn, waiting, approved, chat=None, client=None):
        """Answers a permission request."""
        more = {"confirmed": "user-action"} if approved else {"reason": "denied"}
        try:
            (client or self.client).dispatch(chat or self.chat, "chat/toolCallConfirmed", turnId=turn,
                                             toolCallId=waiting["toolCallId"], approved=approved, **more)
        except grove.RequestRefused:
            # Somebody else was faster, or the call is over.
            if client:
                raise

    def settings(self):
        """The session's settings: the schema of each, and its value."""
        config = self.client.state(self.uri).get("config") or {}
        return (config.get("schema") or {}).get("properties", {}), config.get("values", {})

    def frames(self, direction=None):
        """The ACP messages of this session so far."""
        found = []
        if self.host.frames.exists():
            for line in self.host.frames.read_text().splitlines():
                line = json.loads(line)
                if line.get("session", "").rsplit("/", 1)[-1] == self.check and direction in (None, line["dir"]):
                    found.append(line["msg"])
        return found

    def agent_frames(self):
        return self.frames("a->c")

    def updates(self, kind):
        """The agent's session updates of a kind."""
        of_session = (frame["params"]["update"] for frame in self.agent_frames() if frame.get("method") == "session/update")
        return [update for update in of_session if update.get("sessionUpdate") == kind]

    def capabilities(self):
        """What the agent said that it can, in its answer to `initialize`."""
        for frame in self.agent_frames():
            if "agentCapabilities" in (frame.get("result") or {}):
                return frame["result"]["agentCapabilities"]
        return {}

    def report(self):
        """The end of the conversation with the agent, for a failed check."""
        frames = "\n".join(json.dumps(frame, ensure_ascii=False)[:600] for frame in self.frames()[-25:])
        errors = self.host.run("logs", self.uri).stdout[-2000:]
        asked = "\n".join(f"{each['path']} {each['purpose']}" for each in self.model.requests()[-10:])
        return f"\nlast messages between host and agent:\n{frames}\nrequests to the model:\n{asked}\nthe agent's stderr:\n{errors}"

    def close(self):
        """Disposes of the session, which ends its agents."""
        try:
            self.client.ask("disposeSession", channel=self.uri, patience=10)
        except (grove.RequestRefused, grove.Missing):
            pass
        for client in self.clients:
            client.close()


def said(turn):
    """The text of a turn's answer."""
    return "".join(part["content"] for part in turn["responseParts"] if part["kind"] == "markdown")


def calls(turn, status=None):
    """The tool calls of a turn."""
    parts = (turn or {}).get("responseParts", [])
    found = [part["toolCall"] for part in parts if part["kind"] == "toolCall"]
    return [call for call in found if status in (None, call["status"])]
