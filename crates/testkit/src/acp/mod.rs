//! An agent without a model that speaks the Agent Client Protocol, version 1, on its stdio: the program `acp-agent`
//! ([`agent_program`] finds it).
//!
//! The environment variable [`BEHAVIOR_VARIABLE`] holds its [`AgentBehavior`]: JSON, or the path of a file with it. The
//! prompt holds its actions. It trusts no client: a message that is not in the protocol is refused with -32602, one at
//! the wrong time with -32600. A fault that cannot be answered is kept as a complaint, which the step `"complaints"`
//! prints and stderr shows.
//!
//! ```no_run
//! use grove_testkit::acp::{BEHAVIOR_VARIABLE, AgentAbilities, AgentBehavior, agent_program, prompt};
//!
//! let can = AgentAbilities { resume: false, ..AgentAbilities::default() };
//! let behavior = AgentBehavior { asks_first: true, can, ..AgentBehavior::default() };
//! let mut command = std::process::Command::new(agent_program());
//! command.env(BEHAVIOR_VARIABLE, behavior.to_json());
//! let text = prompt(&serde_json::json!([{"tool": {"title": "touch x", "ask": true}}, {"say": "done"}]));
//! ```
//!
//! # Behaviors
//!
//! Each field of [`AgentBehavior`] is a switch, and all are off: `{}` is an agent that behaves well and can do
//! everything.
//! Each difference between real agents has one. A test of a difference sets its switch and nothing else.
//!
//! With a `store`, sessions are stored there, one file each, so that another process can list, load, resume, fork and
//! delete them. They are written when a prompt comes, when its turn ends and when the agent does; `kill -9` in the
//! middle of a turn loses its output.
//!
//! # Scripts
//!
//! A prompt whose last text begins with `acp:` carries a JSON array of steps. Any other is answered with `You said: `
//! and its text, a word at a time. Steps run one after the other; at the end the turn ends with `end_turn`. A cancelled
//! turn ends before the next step and in the middle of waiting steps, with `cancelled`; the answer to a pending
//! question is awaited even then, since a client owes it.
//!
//! Steps that ask something print the result, on its own line: `read: …`, `permission: allow_once`, or with an error
//! `read: error -32002 …`.
//!
//! | step | what it does |
//! |---|---|
//! | `{"say": "text"}` | a chunk of the answer |
//! | `{"say": {"text": "text", "chunks": 4, "delay_ms": 5, "repeat": 2}}` | the same in pieces, with a pause before each but the first; `pieces` and `delay` are understood too |
//! | `{"think": "text"}` | a chunk of thought; it has the same long form |
//! | `{"stream": {"count": 100, "per_second": 50}}` | numbered chunks `7:1789000000000000;`, each with the microseconds since 1970 at which it was said |
//! | `{"tool": {"title": "touch x", "kind": "execute", "input": {"command": "touch x"}, "output": "ok", "ask": true, "fails": false, "takes_ms": 10, "id": "c1"}}` | a tool call from its beginning to its end, in the behavior's way; everything may be left out |
//! | `{"tool_call": {"toolCallId": "c", "title": "t"}}` | an update `tool_call`, as it is |
//! | `{"tool_update": {"toolCallId": "c", "status": "completed"}}` | an update `tool_call_update`, as it is |
//! | `{"ask": {"tool_call": {"toolCallId": "c"}, "options": []}}` | a permission request; without options, those of the behavior |
//! | `{"asks": [{"tool_call": {"toolCallId": "c"}}, {"tool_call": {"toolCallId": "c"}}]}` | several permission requests, sent before any of them is answered |
//! | `{"plan": [{"content": "c", "priority": "high", "status": "pending"}]}` | a plan |
//! | `{"commands": [{"name": "n", "description": "d"}]}` | the available commands |
//! | `{"mode": "plan"}` | the agent has switched to another mode |
//! | `{"config": {"model": "large"}}` | options have other values; an array is all options as they are from now on |
//! | `{"usage": {"used": 10, "size": 1000, "cost": {"amount": 0.1, "currency": "USD"}}}` | an update `usage_update` |
//! | `{"info": {"title": "A title"}}` | an update `session_info_update` |
//! | `{"notice": {"severity": "warning", "title": "t", "description": "d"}}` | an update `notice` |
//! | `{"update": {"sessionUpdate": "of_tomorrow"}}` | any update |
//! | `{"later": {"delay_ms": 100, "update": {"sessionUpdate": "session_info_update", "title": "t"}}}` | an update that comes by itself, after the turn if it is over by then; it is not remembered |
//! | `{"raw": {"jsonrpc": "2.0", "method": "m"}}` | any line; a string need not be JSON |
//! | `{"request": {"method": "m", "params": {}}}` | any request, as it is |
//! | `{"read": {"path": "/x", "line": 1, "limit": 2}}` | `fs/read_text_file` |
//! | `{"write": {"path": "/x", "content": "c"}}` | `fs/write_text_file` |
//! | `{"terminal": {"create": {"command": "ls", "args": []}, "kill_after_ms": 100, "leave": false, "call": "c1"}}` | a terminal: created, waited for, read, released; a cancelled turn kills its command. With a `call`, a tool call shows it, and is completed without a word of it |
//! | `{"elicit": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}}` | `elicitation/create` |
//! | `{"sleep": 100}` | nothing, for so many milliseconds |
//! | `{"await_file": "/x"}` | nothing, until there is such a file |
//! | `"hang"` | nothing, until the turn is cancelled |
//! | `{"crash": {"code": 3}}` | the process ends |
//! | `{"crash": {"signal": 9}}` | the same by a signal |
//! | `{"stderr": "text"}` | a line on stderr |
//! | `"close_stdout"` | stdout is closed, and the process lives on |
//! | `{"fail": {"code": -32603, "message": "m", "data": {}}}` | the prompt is answered with an error |
//! | `{"stop": "refusal"}` | the turn ends with another reason |
//! | `{"stop": {"reason": "end_turn", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}, "_meta": {}}}` | the same with more |
//! | `{"spawn": {"seconds": 60, "holds_stdout": true}}` | leaves a process behind in the agent's group, and says its number: `spawned: 4711` |
//! | `"echo_history"` | says the texts of the session from before this prompt: `user: …`, `agent: …`, one a line |
//! | `"cwd"` | says the session's folder and the process's |
//! | `{"env": "HOME"}` | says an environment variable: `env: HOME is /root`, `env: HOME is not set` |
//! | `"client"` | says the client's params of `initialize` |
//! | `"settings"` | says mode, model and options: `settings: {"mode":…,"model":…,"options":{…}}` |
//! | `{"mcp": {"server": "grove", "tool": "add", "arguments": {"a": 1}}}` | calls a tool of one of the session's MCP servers over stdio, which start with the session: `mcp: 3`, `mcp: failed: …` |
//! | `{"mcp_tools": "grove"}` | says the names of its tools, as the agent has listed them last: `tools: add, get` |
//! | `"complaints"` | says the client's faults so far: `complaints: none` |

mod agent;
mod behavior;
mod check;
mod mcp;
mod memory;
mod peer;
mod program;
mod script;
mod turn;

pub use agent::{ALONE, run};
pub use behavior::{
    AgentAbilities, AgentBehavior, AgentBehaviorError, BEHAVIOR_VARIABLE, CrashPoint, PermissionOfferKind,
    PromptContentKind, RpcError,
};
pub use program::agent_program;
pub use script::{PREFIX, prompt};
