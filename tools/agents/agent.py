"""The base of all agents."""


class Agent:
    """An agent: its packages and its settings for the fake model. Each file of `agents/` has an instance, `AGENT`."""

    name = ""
    """Its name in Grove."""
    packages = []
    """Packages with their versions: `npm:NAME@VERSION` or `pypi:NAME==VERSION`. The first one is the agent."""
    program = ""
    """Its program in these packages."""
    arguments = []
    auth = None
    """The authentication method that Grove has to use."""
    node = 0
    """The oldest major version of Node that it runs on."""
    python = None
    """The Python that it runs on, such as (3, 12)."""
    any_version = []
    """Python packages whose version does not matter, whatever the agent asks for."""
    cannot = {}
    """Checks that it cannot pass, each with the reason: a fact about the agent, not about Grove."""
    locks_copies = False
    """It can copy a conversation, and nobody can open the copy before its process ends."""
    models = ["fake-model", "other-model"]
    """Two models, as the agent names them to the model server."""
    mode = None
    """A mode to switch to."""

    @property
    def version(self):
        return self.packages[0].replace("==", "@").rsplit("@", 1)[1]

    def environment(self, place):
        """Its variables."""
        return {}

    def configure(self, place):
        """Writes its settings, before the host starts."""

    def edit(self, path, old, new):
        """The calls of its tools, one after the other, that change a line of a file: names with arguments."""
        raise NotImplementedError
