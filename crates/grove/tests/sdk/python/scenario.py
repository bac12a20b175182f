"""The Python SDK, unmodified, with Grove as its server: create, send, permission, own tool, resume."""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile

from copilot import CopilotClient, RuntimeConnection
from copilot.rpc import LogRequest, NameSetRequest, PlanUpdateRequest
from copilot.session import PermissionHandler
from copilot.tools import Tool, ToolResult

GROVE = os.environ["GROVE_BIN"]


def script(*steps):
    """A prompt that makes the scripted agent run these steps."""
    return "script:" + json.dumps(list(steps))


def environment(home):
    """The environment of a host, without anything of the machine's user."""
    data = os.path.join(home, "data")
    return {"PATH": os.environ["PATH"], "HOME": home, "GROVE_DATA_DIR": data, "GROVE_LISTEN": "127.0.0.1:0"}


def client_of(home):
    connection = RuntimeConnection.for_stdio(path=GROVE, args=["copilot"])
    return CopilotClient(connection=connection, env=environment(home), use_logged_in_user=False)


async def scenario(home):
    client = client_of(home)
    await client.start()
    models = await client.list_models()
    assert "scripted" in [model.id for model in models]
    assert all(isinstance(model.capabilities.supports.vision, bool) for model in models)

    asked, looked = [], []

    def allow(request, invocation):
        asked.append(request.kind)
        return PermissionHandler.approve_all(request, invocation)

    def look(invocation):
        looked.append(invocation.arguments)
        return ToolResult(text_result_for_llm=f"saw {invocation.arguments['at']}")

    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    tool = Tool(name="look", description="looks", parameters=parameters, handler=look)
    session = await client.create_session(model="scripted", tools=[tool], on_permission_request=allow)
    shell = {"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}}
    own = {"clientTool": {"name": "look", "input": {"at": "x"}}}
    last = await session.send_and_wait(script(shell, own, {"say": "done"}))
    assert last.data.content == "look gave: saw x\ndone", last
    assert [str(getattr(kind, "value", kind)) for kind in asked] == ["shell"], asked
    assert looked == [{"at": "x"}], looked

    await session.rpc.name.set(NameSetRequest(name="from Python"))
    await session.rpc.plan.update(PlanUpdateRequest(content="# Plan"))
    await session.rpc.log(LogRequest(message="noted"))
    assert (await session.rpc.metadata.snapshot()).summary == "from Python"
    assert (await session.rpc.usage.get_metrics()).total_user_requests == 1
    assert (await session.rpc.queue.pending_items()).items == []
    assert (await session.rpc.tasks.list()).tasks == []
    events = await session.get_events()
    types = [event.type.value for event in events]
    for wanted in ["session.start", "user.message", "tool.execution_complete", "session.plan_changed", "session.info"]:
        assert wanted in types, f"{wanted} is not in {types}"
    identifier = session.session_id
    await session.disconnect()
    await client.stop()

    # Another program goes on with it.
    client = client_of(home)
    await client.start()
    assert identifier in [row.session_id for row in await client.list_sessions()]
    resumed = await client.resume_session(identifier, on_permission_request=allow)
    again = await resumed.get_events()
    assert [event.id for event in again][: len(events)] == [event.id for event in events]
    assert again[-1].type.value == "session.resume"
    last = await resumed.send_and_wait(script({"say": "again"}))
    assert last.data.content == "again"
    await resumed.disconnect()
    await client.stop()


def main():
    home = tempfile.mkdtemp(prefix="grove-sdk-python-")
    try:
        asyncio.run(asyncio.wait_for(scenario(home), 120))
    finally:
        # The host outlives the programs.
        subprocess.run([GROVE, "stop"], env=environment(home), stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(home, ignore_errors=True)
    print("ok: the Python SDK")


main()
