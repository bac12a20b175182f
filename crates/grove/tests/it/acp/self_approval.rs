//! An agent cannot approve its own requests, however its processes connect to the host.

use std::time::Duration;

use super::*;

/// Sends the lines of a file on a WebSocket with the token of the data folder, and prints what comes back. At a line
/// with `?` it waits for the words behind it.
const RAW_CLIENT: &str = r#"
import base64, os, socket, struct, sys
address, token, frames = sys.argv[1], open(sys.argv[2]).read().strip(), open(sys.argv[3]).read().splitlines()
path = sys.argv[4]
host, port = address.rsplit(":", 1)
s = socket.create_connection((host, int(port)), 5)
s.settimeout(5)
key = base64.b64encode(os.urandom(16)).decode()
s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (path, address, token, key)).encode())
got = b""
for line in frames:
    if line.startswith("?"):
        while line[1:].encode() not in got:
            got += s.recv(65536)
        continue
    data = line.encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    s.sendall(b"\x81" + size + b"\0\0\0\0" + data)
try:
    while b"rejectionReason" not in got and b"still open" not in got:
        more = s.recv(65536)
        if not more:
            break
        got += more
except socket.timeout:
    pass
print(got.decode("utf-8", "replace"))
"#;

/// A host whose first agent has helpers beside it, each of which waits for a file and then runs a command.
fn stage(commands: &[(&str, String)]) -> Stage {
    let place = TestHome::new();
    std::fs::create_dir(place.path("work")).unwrap();
    // A further agent has none: its helpers would find the files of the first one's.
    let mut script = format!("if mkdir {}; then\n", place.path("helpers").display());
    for (name, command) in commands {
        let at = |end: &str| place.path(&format!("{name}.{end}")).display().to_string();
        let helper = format!(
            "while [ ! -e {} ]; do sleep 0.05; done\n{command} > {out} 2>&1 < /dev/null\n\
             echo \"ended with $?\" >> {out}\nmv {out} {}\n",
            at("go"),
            at("done"),
            out = at("out"),
        );
        let path = place.write(&format!("{name}.sh"), helper);
        // The second one loses both its parents, its session and its terminal.
        let start = match *name {
            "forked" => format!("setsid sh -c 'nohup sh {} > /dev/null 2>&1 & exit 0'\n", path.display()),
            _ => format!("sh {} > /dev/null 2>&1 &\n", path.display()),
        };
        script.push_str(&start);
    }
    script.push_str(&format!("fi\nexec {}\n", agent_program().display()));
    let agent = place.write("agent.sh", script);
    let behavior = AgentBehavior { store: Some(place.path("store")), ..AgentBehavior::default() };
    let toml = format!(
        "[agents.mine]\ncommand = [\"/bin/sh\", {agent:?}]\nenv = {{ {BEHAVIOR_VARIABLE} = {:?} }}\n",
        behavior.to_json()
    );
    place.write("home/.config/grove/grove.toml", toml);
    let host = Some(serve(&place, &[]));
    Stage { place, host, args: Vec::new() }
}

/// Lets a helper run its command, and returns the command's output.
async fn output_of(stage: &Stage, name: &str) -> String {
    stage.place.write(&format!("{name}.go"), "");
    let done = stage.place.path(&format!("{name}.done"));
    for _ in 0..600 {
        if let Ok(output) = std::fs::read_to_string(&done) {
            return output;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{name} does not end: {}", std::fs::read_to_string(stage.place.path("stderr")).unwrap_or_default())
}

fn grove(place_of_data: &str, args: &str) -> String {
    format!("{} {args} --data-dir {place_of_data}", env!("CARGO_BIN_EXE_grove"))
}

#[tokio::test]
async fn an_agent_cannot_approve_its_own_requests() {
    // The helpers find the data folder beside the script that they are in.
    let data = "$(dirname $0)/data";
    let approve = grove(data, &format!("approve {SESSION}"));
    let raw = |frames: &str, path: &str| {
        let here = "$(dirname $0)";
        format!("python3 {here}/raw.py $(cat {here}/address) {here}/data/token {here}/{frames} {path}")
    };
    let (socket, editor) = (raw("frames", "/ws"), raw("editor-frames", "/acp"));
    let helpers = [("plain", approve.clone()), ("forked", approve.clone()), ("raw", socket), ("editor", editor)];
    let stage = stage(&helpers);
    assert_eq!(stage.place.data(), stage.place.path("data"));
    stage.place.write("raw.py", RAW_CLIENT);
    stage.place.write("address", &stage.host().address);
    let (mut client, chat) = stage.begin().await;
    start(
        &mut client,
        &chat,
        "t",
        &json!([{"tool": {"title": "rm x", "kind": "execute", "ask": true}}, {"say": "end"}]),
    )
    .await;
    let call = asked(&mut client, &chat).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"channel": "ahp-root://", "protocolVersions": ["0.9.0", "0.8.0", "0.7.0", "1.0.0"], "clientId": "a-raw-one"}});
    let action = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"channel": chat, "clientSeq": 1,
        "action": {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": call["toolCallId"],
                   "approved": true, "confirmed": "user-action"}}});
    let always = json!({"jsonrpc": "2.0", "id": 2, "method": "x-grove/policy/allow", "params": {"channel": chat,
        "request": call["toolCallId"], "target": "session", "rule": "[[rules]]\nallow = \"any\"\n"}});
    let listed = json!({"jsonrpc": "2.0", "id": 3, "method": "x-grove/sessions/answer", "params": {
        "session": format!("local-agent-host:agent-host-{SESSION}"), "request": call["toolCallId"],
        "answer": {"kind": "permission", "approved": true}}});
    let rule = json!({"jsonrpc": "2.0", "id": 4, "method": "x-grove/policy/add",
        "params": {"toml": "[[policy.rules]]\nallow = \"any\"\n"}});
    let install = json!({"jsonrpc": "2.0", "id": 5, "method": "x-grove/agents/install",
        "params": {"id": "codex", "version": "1"}});
    stage.place.write("frames", format!("{hello}\n{always}\n{listed}\n{rule}\n{install}\n{action}\n"));
    // An editor answers the first question that it is asked.
    let hello = request(json!(1), "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let resume = request(json!(2), "session/resume", json!({"sessionId": ID, "cwd": "/", "mcpServers": []}));
    let option = json!({"outcome": {"outcome": "selected", "optionId": call["options"][0]["id"]}});
    let allow = json!({"jsonrpc": "2.0", "id": 1, "result": option});
    stage.place.write("editor-frames", format!("{hello}\n?agentInfo\n{resume}\n?request_permission\n{allow}\n"));

    for name in ["plain", "forked", "raw", "editor"] {
        let output = output_of(&stage, name).await;
        assert!(output.contains("is for persons alone"), "{name}: {output}");
        for method in
            ["x-grove/policy/allow", "x-grove/sessions/answer", "x-grove/policy/add", "x-grove/agents/install"]
        {
            let is_refused = output.contains(&format!("{method} is for persons alone"));
            assert_eq!(is_refused, name == "raw", "{name}: {output}");
        }
        let waits = client.chat(&chat).active_turn.as_ref().map(|turn| turn.id.clone());
        assert_eq!(waits.as_deref(), Some("t"), "{name}: it still waits");
    }
    // Clients of the session are told.
    client.until(|client| meta(client, SESSION, "warnings").to_string().contains("tried to act as a person")).await;
    // What the host runs for the agent in a terminal belongs to the agent as well.
    let mut other = stage.host().ahp("b").await;
    let its_chat = stage.session(&mut other, "mine:/other").await;
    let args = ["-c", &grove(&stage.place.data().display().to_string(), &format!("approve {SESSION}"))];
    let terminal = json!([{"terminal": {"create": {"command": "/bin/sh", "args": args}}}]);
    let text = said(&mut other, &its_chat, "t", terminal).await;
    assert!(text.contains("is for persons alone"), "{text}");

    // A person does it from outside.
    let approved = stage.place.run(&["approve", SESSION]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert_eq!(client.turn_end(&chat, "t").await.state, TurnState::Complete);
    let audited = |action: &str| {
        let ran = stage.place.run(&["audit", "--action", action, "--json"]);
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let attempts = audited("agent-attempt");
    assert!(attempts.iter().all(|attempt| attempt["outcome"] == "refused"), "{attempts:#?}");
    // Each approval of the helpers and of the terminal, the two rules, the answer in the list, and the installation.
    assert_eq!(attempts.len(), 9, "{attempts:#?}");
    let approvals = audited("approve");
    assert_eq!(approvals.last().unwrap()["outcome"], "done", "{approvals:#?}");
    assert_eq!(approvals.last().unwrap()["detail"], "rm x", "{approvals:#?}");
}
