"""A client's tool, an MCP server of `grove.toml` and a system message reach the agent, as its model is told."""

import json
import re
import time

from grove import wait_for
from model import answer, call, say
from stage import CannotCheck, calls, expect, said

MESSAGE = "Always answer in rhymes."
OF_CLIENT = "forty-two-of-the-client"
OF_SERVER = "key-of-the-server"
SEARCH = re.compile("tool_?search|search_tool", re.IGNORECASE)
"""The tool with which a model finds those of MCP servers, in the agents that do not offer them at once."""
PROMPTS = 6
"""How often an agent is asked again until it has connected to its servers."""

# The MCP server: one tool, which says one of its variables.
SERVER = '''
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "tell", "description": "Tells", "inputSchema": {"type": "object", "properties": {}}}]}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": os.environ.get("KEY", "none")}]}
    elif message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "0"}}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''


def run(stage):
    server = stage.place.root / "server.py"
    server.write_text(SERVER)
    stage.begin(answer("say hello", [say("Hello.")]))
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    tools = [{"name": "add", "description": "Adds two numbers", "inputSchema": schema}]
    stage.client.dispatch(stage.uri, "session/activeClientSet", activeClient={"clientId": stage.client.name, "tools": tools})
    servers = [{"name": "tables", "type": "stdio", "command": "/usr/bin/env", "args": ["python3", str(server)],
                "env": {"KEY": OF_SERVER}}]
    stage.client.ask("x-grove/setup", channel=stage.uri, mcpServers=servers,
                     systemMessage={"mode": "append", "content": MESSAGE})
    stage.prompt("say hello")
    expect(stage.model.prompts(MESSAGE), "the system message did not reach the model")
    # Some agents connect to the servers while the first prompts run already.
    for _ in range(PROMPTS):
        if fitting(stage, "grove", "add") and fitting(stage, "tables", "tell"):
            break
        if SEARCH.search(json.dumps(tools_in(stage))):
            raise CannotCheck("its model has to search for the tools first, which the fake model does not")
        time.sleep(2)
        stage.prompt("say hello")
    add, tell = tool(stage, "grove", "add"), tool(stage, "tables", "tell")
    stage.model.script(answer("use both tools", [call(add, {"a": 40, "b": 2})], [call(tell, {})], [say("Both were used.")]))
    ended = take_part(stage, stage.start_turn("please use both tools"))
    expect("Both were used." in said(ended), f"the answer is {said(ended)!r}")
    for text in (OF_CLIENT, OF_SERVER):
        expect(stage.model.prompts(text), f"{text} did not reach the model")
    of_client = [each for each in calls(ended) if "add" in each["toolName"]]
    expect(len(of_client) == 1, f"the client's call is shown as {of_client}")


def tool(stage, server, name):
    """The name under which the model knows a tool of a server."""
    found = fitting(stage, server, name)
    expect(found, f"{name} of {server} is not among the tools of the model: {sorted(offered(stage))}")
    return found[0]


def fitting(stage, server, name):
    """The names that a tool of a server may have. Most agents put the server's name before the tool's."""
    return [each for each in offered(stage) if each == name or each.endswith(name) and server in each]


def offered(stage):
    """The names of the tools in the newest prompt."""
    return {name for name in names_in(tools_in(stage)) if isinstance(name, str)}


def tools_in(stage):
    return stage.model.prompts("say hello")[-1]["body"].get("tools", [])


def names_in(value):
    """The names in a list of tools, in any of the models' formats."""
    if isinstance(value, list):
        for each in value:
            yield from names_in(each)
    elif isinstance(value, dict):
        yield value.get("name")
        for key in ("function", "functionDeclarations", "tools"):
            yield from names_in(value.get(key))


def take_part(stage, turn):
    """Approves what the agent asks, and runs the client's tool, until the end of the turn."""
    done = set()

    def ended():
        state = stage.client.state(stage.chat)
        for waiting in calls(state.get("activeTurn"), "pending-confirmation"):
            stage.answer(turn, waiting, True)
        for running in calls(state.get("activeTurn"), "running"):
            if running.get("contributor") and running["toolCallId"] not in done:
                done.add(running["toolCallId"])
                result = {"success": True, "pastTenseMessage": "Added", "content": [{"type": "text", "text": OF_CLIENT}]}
                stage.client.dispatch(stage.chat, "chat/toolCallComplete", turnId=turn, toolCallId=running["toolCallId"],
                                      result=result)
        return next((each for each in state["turns"] if each["id"] == turn), None)

    found = wait_for(f"the end of {turn}", ended, pause=0.1)
    expect(found["state"] == "complete", f"the turn is {found['state']}: {found['responseParts']}")
    return found
