#!/usr/bin/env python3
"""Deterministic synthetic corpus of coding-agent session histories.

Writes, under --root (use it as $HOME of the program under test):

  .claude/projects/<encoded-cwd>/<uuid>.jsonl                 Claude Code main sessions
  .claude/projects/<encoded-cwd>/<uuid>/subagents/agent-*.jsonl   ... sub-agents
  .config/Code/User/workspaceStorage/<md5>/workspace.json     VS Code workspaces
  .config/Code/User/workspaceStorage/<md5>/chatSessions/<uuid>.json    (v3 document)
  .config/Code/User/workspaceStorage/<md5>/chatSessions/<uuid>.jsonl   (mutation log, newer)
  .config/Code/User/workspaceStorage/<md5>/chatEditingSessions/<uuid>/{state.json,contents/*}
  .config/Code/User/globalStorage/emptyWindowChatSessions/<uuid>.jsonl
  .copilot/session-state/<uuid>/{events.jsonl,workspace.yaml} Copilot CLI
  .codex/sessions/YYYY/MM/DD/rollout-<ts>-<uuid>.jsonl        Codex
  .pi/agent/sessions/--<cwd>--/<ts>_<uuid>.jsonl              pi (tree entries)
  .gemini/tmp/<project>/{.project_root,chats/session-<ts>-<id>.jsonl}   Gemini CLI
  manifest.json   ground truth: one row a session, and the queries with the session
                  ids that must be found (so recall can be checked, not only speed)

Same --seed and options => byte-identical tree (file mtimes included).
Only the standard library; no wall clock, no os.urandom, no hash() randomisation.

Examples
  gen_corpus.py --root /tmp/c300  --sessions 2000 --mb 300 --giants 2 --giant-mb 50
  gen_corpus.py --root /tmp/cmix  --sessions 5000 --mb 600 --giants 4 \
                --mix claude=.4,vscode=.25,copilot-cli=.15,codex=.1,pi=.1 --dirty 0.02
"""
import argparse, hashlib, json, math, os, random, shutil, sys

BASE_MS = 1_767_225_600_000          # 2026-01-01T00:00:00Z
SPAN_MS = 200 * 86_400_000           # sessions start over 200 days
D = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def rng_for(seed, *parts):
    h = hashlib.sha256(("|".join([str(seed)] + [str(p) for p in parts])).encode()).digest()
    return random.Random(int.from_bytes(h[:8], "big"))


def uuid_of(r):
    n = r.getrandbits(128)
    n = (n & ~(0xF << 76)) | (4 << 76)
    n = (n & ~(0x3 << 62)) | (0x2 << 62)
    s = "%032x" % n
    return f"{s[:8]}-{s[8:12]}-{s[12:16]}-{s[16:20]}-{s[20:]}"


def iso(ms):
    days, rem = divmod(ms, 86_400_000)
    # civil-from-days (no datetime, stays cheap and exact)
    z = days + 719_468
    era = z // 146_097
    doe = z - era * 146_097
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    y = yoe + era * 400
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    d = doy - (153 * mp + 2) // 5 + 1
    m = mp + 3 if mp < 10 else mp - 9
    if m <= 2:
        y += 1
    s, msx = divmod(rem, 1000)
    return "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" % (y, m, d, s // 3600, s // 60 % 60, s % 60, msx)


# ---------------------------------------------------------------- text pools
SYL = ("ba be bi bo bu ca ce ci co cu da de di do du fa fe fi fo fu ga ge gi go gu ha he hi ho "
       "ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu pa pe pi po pu ra re ri ro "
       "ru sa se si so su ta te ti to tu va ve vi vo vu za ze zi zo").split()
COMMON = ("the a to of and in is that it for with as on be this are by at from or an have not we "
          "you can if when which will should file function test error run build code add fix "
          "change use call return value type class module config server client session message "
          "user data list name path line check update remove create read write parse index query "
          "cache token stream event state store lock thread async await result option default "
          "version branch commit merge diff patch review refactor handler request response").split()
LANGS = ("rust", "typescript", "python", "go", "java", "sh")
TOOLS = ("Bash", "Read", "Edit", "Grep", "Glob", "Write", "Task", "TodoWrite", "WebFetch")
UNI = ("проверка", "データベース", "配置文件", "größe", "naïve", "ελληνικά", "🚀", "✅ done", "日本語テスト", "한국어")


class Pools:
    def __init__(self, seed):
        r = rng_for(seed, "pools")
        vocab = list(COMMON)
        seen = set(vocab)
        while len(vocab) < 24_000:
            w = "".join(r.choice(SYL) for _ in range(r.choice((2, 3, 3, 4))))
            if r.random() < 0.12:
                w = w + "_" + "".join(r.choice(SYL) for _ in range(2))
            if w not in seen:
                seen.add(w)
                vocab.append(w)
        self.vocab = vocab
        cum, t = [], 0.0
        for i in range(len(vocab)):
            t += 1.0 / (i + 2.7)          # Zipf
            cum.append(t)
        self.cum = cum
        self.sent = []
        for _ in range(14_000):
            n = r.randint(6, 22)
            ws = r.choices(vocab, cum_weights=cum, k=n)
            if r.random() < 0.03:
                ws[r.randrange(n)] = r.choice(UNI)
            s = " ".join(ws)
            self.sent.append(s[0].upper() + s[1:] + r.choice((".", ".", ".", ":", "?")))
        self.code = []
        for _ in range(9_000):
            a, b, c = r.choices(vocab, cum_weights=cum, k=3)
            ind = "    " * r.randint(0, 3)
            self.code.append(ind + r.choice((
                f"let {a} = {b}.{c}()?;", f"fn {a}({b}: &str) -> Result<{c}> {{", f"if {a} != {b} {{ return {c}; }}",
                f"const {a} = await {b}({c});", f"def {a}({b}, {c}=None):", f"// {a} {b} {c}", f"assert_eq!({a}, \"{b}\");",
                f"import {{ {a} }} from './{b}/{c}';", f"self.{a}.{b}({c})", "}")))
        self.paths = [f"src/{r.choice(vocab[120:4000])}/{r.choice(vocab[120:4000])}.{r.choice(('rs','ts','py','go'))}"
                      for _ in range(3000)]
        self.blob = "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
                            for _ in range(200_000))

    def prose(self, r, n):
        """about n characters of prose"""
        out, got = [], 0
        S = self.sent
        while got < n:
            s = S[int(r.random() * len(S))]
            out.append(s)
            got += len(s) + 1
            if r.random() < 0.12:
                out.append("\n\n")
        return " ".join(out).replace(" \n\n ", "\n\n")

    def source(self, r, n):
        out, got = [], 0
        C = self.code
        while got < n:
            s = C[int(r.random() * len(C))]
            out.append(s)
            got += len(s) + 1
        return "\n".join(out)

    def numbered(self, r, n):
        return "\n".join("%6d\u2192%s" % (i + 1, l) for i, l in enumerate(self.source(r, n).split("\n")))


# ---------------------------------------------------------------- abstract turns
class Sess:
    """one abstract session; each writer turns it into a tool's own format"""
    __slots__ = ("i", "tool", "id", "r", "start", "target", "proj", "cwd", "needles", "giant", "row", "title")


def plan(args):
    seed = args.seed
    r = rng_for(seed, "plan")
    mix = []
    for part in args.mix.split(","):
        k, v = part.split("=")
        mix.append((k.strip(), float(v)))
    tot = sum(v for _, v in mix)
    # exact counts by largest remainder so that the numbers do not wander with the seed
    raw = [(k, v / tot * args.sessions) for k, v in mix]
    cnt = {k: int(x) for k, x in raw}
    for k, x in sorted(raw, key=lambda t: t[1] - int(t[1]), reverse=True):
        if sum(cnt.values()) >= args.sessions:
            break
        cnt[k] += 1
    tools = [k for k, n in cnt.items() for _ in range(n)]
    r.shuffle(tools)
    n = len(tools)
    # lognormal body, then scaled to the byte budget that the giants leave
    body = [math.exp(r.gauss(0.0, args.sigma)) for _ in range(n)]
    giants = set()
    order = list(range(n))
    r.shuffle(order)
    want = args.giants
    # first giants: one a tool, in the order of the mix
    for k, _ in mix:
        for j in order:
            if want and tools[j] == k and j not in giants:
                giants.add(j)
                want -= 1
                break
    for j in order:
        if not want:
            break
        if j not in giants:
            giants.add(j)
            want -= 1
    left = max(1.0, args.mb * 1e6 - len(giants) * args.giant_mb * 1e6)
    left = max(left * 0.4, left - 24_000 * n)      # a session ends after its last turn: mean overshoot
    rest = sum(b for j, b in enumerate(body) if j not in giants)
    cap = args.giant_mb * 1e6 * 0.6
    out = []
    for j in range(n):
        s = Sess()
        s.i, s.tool, s.giant = j, tools[j], j in giants
        s.r = rng_for(seed, "session", j)
        s.id = uuid_of(s.r)
        s.target = int(args.giant_mb * 1e6) if s.giant else int(max(1500, min(cap, body[j] / rest * left)))
        s.start = BASE_MS + int(s.r.random() * SPAN_MS)
        s.proj = int(min(args.projects - 1, s.r.expovariate(1.0) * args.projects / 3.0))
        s.cwd = "/home/dev/code/project-%02d" % s.proj
        s.needles = []
        s.title = ""
        s.row = dict(i=j, tool=s.tool, id=s.id, project=s.cwd, giant=s.giant, turns=0, messages=0,
                     tool_calls=0, branches=0, compactions=0, subagents=0, dirty="")
        out.append(s)
    # needles: rare (1 session), some (1 %), wide (10 %), phrase, unicode, identifier
    queries = []

    def plant(term, k, where, kind):
        ids = r.sample(range(n), max(1, min(n, k)))
        for j in ids:
            out[j].needles.append((where, term))
        queries.append(dict(term=term, kind=kind, where=where, expect=sorted(out[j].id for j in ids)))

    for q in range(args.needles):
        plant("zq%sneedle%03d" % (r.choice(SYL), q), 1, r.choice(("user", "assistant", "tool")), "rare")
    for q in range(6):
        plant("zqpercent%03d" % q, n // 100, r.choice(("user", "assistant")), "one-percent")
    for q in range(3):
        plant("zqtenth%03d" % q, n // 10, "assistant", "ten-percent")
    plant("frobnicate the quantum scheduler", max(1, n // 200), "assistant", "phrase")
    plant("parse_zqwidget_header_v2", max(1, n // 200), "tool", "identifier")
    plant("кварковый", max(1, n // 200), "user", "unicode")
    return out, queries


def sprinkle(s, where, text):
    """put this session's needles for `where` into the first text offered"""
    hit = [t for w, t in s.needles if w == where]
    if hit:
        s.needles = [(w, t) for w, t in s.needles if w != where]
        return text + " " + " ".join(hit)
    return text


def tool_payload(P, r, giant):
    """(name, input, output text) with the output sizes that are seen in the field"""
    x = r.random()
    if x < 0.34:
        n = int(min(30_000, r.lognormvariate(6.3, 1.3)))
        return "Bash", {"command": "cargo test --package %s 2>&1 | tail -40" % P.vocab[int(r.random() * 3000)],
                        "description": P.sent[int(r.random() * len(P.sent))]}, P.source(r, n)
    if x < 0.66:
        n = int(min(90_000, r.lognormvariate(8.0, 1.1)))
        return "Read", {"file_path": "/home/dev/code/" + P.paths[int(r.random() * len(P.paths))]}, P.numbered(r, n)
    if x < 0.84:
        return "Edit", {"file_path": "/home/dev/code/" + P.paths[int(r.random() * len(P.paths))],
                        "old_string": P.source(r, r.randint(80, 900)), "new_string": P.source(r, r.randint(80, 1400))}, \
            "The file has been updated.\n" + P.numbered(r, r.randint(200, 1500))
    if x < 0.95:
        n = int(min(20_000, r.lognormvariate(6.6, 1.2)))
        return "Grep", {"pattern": P.vocab[int(r.random() * 3000)], "output_mode": "content"}, P.source(r, n)
    if x < 0.985 or not giant:
        return "Write", {"file_path": "/home/dev/code/" + P.paths[int(r.random() * len(P.paths))],
                         "content": P.source(r, r.randint(300, 6000))}, "File created successfully"
    n = r.randint(300_000, 1_500_000)          # what makes giants: huge outputs
    return "Bash", {"command": "cat target/debug/huge.log"}, P.source(r, n)


class Out:
    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path, self.f, self.n = path, open(path, "wb"), 0

    def line(self, obj):
        b = (D(obj) + "\n").encode("utf-8", "surrogatepass")
        self.f.write(b)
        self.n += len(b)

    def raw(self, b):
        self.f.write(b)
        self.n += len(b)

    def close(self, ms):
        self.f.close()
        os.utime(self.path, ns=(ms * 1_000_000, ms * 1_000_000))


def soil(s, o, args, r):
    """damage the tail in one of the ways that real stores are damaged"""
    if r.random() >= args.dirty:
        return
    k = r.choice(("truncated", "blank", "badutf8", "nul", "garbage"))
    s.row["dirty"] = k
    o.raw({"truncated": b'{"type":"assistant","uuid":"deadbeef","message":{"role":"assi',
           "blank": b"\n\n   \n", "badutf8": b'{"type":"user","x":"\xff\xfe\x80"}\n',
           "nul": b"\x00" * 64 + b"\n", "garbage": b"<<<<<<< HEAD\n"}[k])


# ---------------------------------------------------------------- Claude Code
def enc_cwd(c):
    return c.replace("/", "-").replace(".", "-")


def write_claude(root, s, P, args):
    r = s.r
    d = os.path.join(root, ".claude/projects", enc_cwd(s.cwd))
    o = Out(os.path.join(d, s.id + ".jsonl"))
    ms = s.start
    parent = None
    model = r.choice(("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"))
    ver = r.choice(("2.0.76", "2.1.12", "2.1.40"))
    branch = r.choice(("main", "main", "feat/" + P.vocab[300 + s.i % 2000]))
    history = []
    ctx = r.randint(12_000, 22_000)

    def common(kind, u, side=False, agent=None):
        e = {"parentUuid": parent, "isSidechain": side, "userType": "external", "cwd": s.cwd, "sessionId": s.id,
             "version": ver, "gitBranch": branch}
        if agent:
            e["agentId"] = agent
        e["type"] = kind
        return e

    if r.random() < 0.3:
        o.line({"type": "file-history-snapshot", "messageId": uuid_of(r),
                "snapshot": {"messageId": uuid_of(r), "trackedFileBackups": {}, "timestamp": iso(ms)}, "isSnapshotUpdate": False})
    sub = 0
    while o.n < s.target:
        # one user prompt
        text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
        if not s.title:
            s.title = text[:60]
        # rewind: 4 % of prompts start again from an older point => a real branch in the DAG
        if history and r.random() < 0.04:
            parent = history[max(0, len(history) - r.randint(2, 12))]
            s.row["branches"] += 1
        u = uuid_of(r)
        e = common("user", u)
        e.update(message={"role": "user", "content": text}, uuid=u, timestamp=iso(ms), permissionMode="default")
        o.line(e)
        parent = u
        history.append(u)
        s.row["turns"] += 1
        s.row["messages"] += 1
        steps = 1 + int(r.expovariate(1 / 4.0)) if not s.giant else 4 + int(r.expovariate(1 / 10.0))
        for st in range(steps):
            ms += int(r.lognormvariate(8.6, 0.9))
            last = st == steps - 1
            mid, rid = "msg_%024x" % r.getrandbits(96), "req_%024x" % r.getrandbits(96)
            ctx += r.randint(200, 3000)
            usage = {"input_tokens": r.randint(2, 900), "cache_creation_input_tokens": r.randint(100, 4000),
                     "cache_read_input_tokens": ctx, "output_tokens": r.randint(20, 1800), "service_tier": "standard"}
            blocks = []
            if r.random() < 0.35:
                blocks.append({"type": "thinking", "thinking": P.prose(r, int(min(8000, r.lognormvariate(6.0, 0.9)))),
                               "signature": P.blob[:r.randint(200, 600)]})
            if last or r.random() < 0.5:
                blocks.append({"type": "text", "text": sprinkle(s, "assistant", P.prose(r, int(min(9000, r.lognormvariate(5.6, 1.0)))))
                               + (("\n```" + r.choice(LANGS) + "\n" + P.source(r, r.randint(100, 1500)) + "\n```") if r.random() < 0.25 else "")})
            call = None
            if not last:
                name, inp, outp = tool_payload(P, r, s.giant)
                call = ("toolu_%020x" % r.getrandbits(80), name, outp)
                blocks.append({"type": "tool_use", "id": call[0], "name": name, "input": inp})
            # Claude Code writes one line a content block, same message id
            for bi, b in enumerate(blocks):
                u = uuid_of(r)
                e = common("assistant", u)
                e.update(message={"model": model, "id": mid, "type": "message", "role": "assistant", "content": [b],
                                  "stop_reason": ("tool_use" if call else "end_turn") if bi == len(blocks) - 1 else None,
                                  "stop_sequence": None, "usage": usage}, requestId=rid, uuid=u, timestamp=iso(ms))
                o.line(e)
                parent = u
                s.row["messages"] += 1
            if call:
                ms += r.randint(30, 9000)
                outp = sprinkle(s, "tool", call[2])
                u = uuid_of(r)
                src = parent
                e = common("user", u)
                e.update(message={"role": "user", "content": [{"tool_use_id": call[0], "type": "tool_result",
                                                               "content": outp, "is_error": r.random() < 0.04}]},
                         uuid=u, timestamp=iso(ms),
                         toolUseResult={"stdout": outp, "stderr": "", "interrupted": False, "isImage": False},
                         sourceToolAssistantUUID=src)
                o.line(e)
                parent = u
                s.row["messages"] += 1
                s.row["tool_calls"] += 1
            if o.n >= s.target * 1.2:
                break
        # sub-agent transcript in its own file
        if r.random() < 0.03 and not s.giant:
            aid = "%08x" % r.getrandbits(32)
            so = Out(os.path.join(d, s.id, "subagents", f"agent-{aid}.jsonl"))
            p2 = None
            for k in range(r.randint(2, 8)):
                u = uuid_of(r)
                role = "user" if k % 2 == 0 else "assistant"
                body = P.prose(r, r.randint(100, 2500))
                e = {"parentUuid": p2, "isSidechain": True, "userType": "external", "cwd": s.cwd, "sessionId": s.id,
                     "version": ver, "gitBranch": branch, "agentId": aid, "type": role,
                     "message": {"role": role, "content": body if role == "user" else [{"type": "text", "text": body}]},
                     "uuid": u, "timestamp": iso(ms + k)}
                if role == "assistant":
                    e["message"].update(model=model, id="msg_%024x" % r.getrandbits(96), type="message",
                                        usage={"input_tokens": 10, "output_tokens": 100})
                so.line(e)
                p2 = u
            so.close(ms)
            sub += 1
        if ctx > 160_000:                      # compaction
            u = uuid_of(r)
            e = common("system", u)
            e["parentUuid"] = None
            e.update(logicalParentUuid=parent, subtype="compact_boundary", content="Conversation compacted", isMeta=False,
                     timestamp=iso(ms), uuid=u, level="info", compactMetadata={"trigger": "auto", "preTokens": ctx})
            o.line(e)
            parent = u
            u = uuid_of(r)
            e = common("user", u)
            e.update(isVisibleInTranscriptOnly=True, isCompactSummary=True,
                     message={"role": "user", "content": "This session is being continued from a previous conversation. "
                              + P.prose(r, 5000)}, uuid=u, timestamp=iso(ms))
            o.line(e)
            parent = u
            ctx = r.randint(12_000, 22_000)
            s.row["compactions"] += 1
        ms += int(r.lognormvariate(10.6, 1.2))
    if r.random() < 0.7:
        o.line({"type": "summary", "summary": s.title, "leafUuid": parent})
    for w, t in s.needles:                      # nothing may stay unplanted
        u = uuid_of(r)
        e = common("assistant", u)
        e.update(message={"model": model, "id": "msg_x%s" % u[:8], "type": "message", "role": "assistant",
                          "content": [{"type": "text", "text": "Note: " + t}], "usage": {"input_tokens": 1, "output_tokens": 5}},
                 uuid=u, timestamp=iso(ms))
        o.line(e)
        parent = u
    s.needles = []
    soil(s, o, args, r)
    o.close(ms)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=iso(s.start), end=iso(ms), subagents=sub, title=s.title)


# ---------------------------------------------------------------- VS Code Copilot Chat
def vs_request(s, P, r, ms):
    text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
    if not s.title:
        s.title = text[:60]
    resp = [{"kind": "mcpServersStarting", "didStartServerIds": []}]
    rounds, results = [], {}
    steps = int(r.expovariate(1 / 4.0)) if not s.giant else 4 + int(r.expovariate(1 / 10.0))
    for _ in range(steps):
        name, inp, outp = tool_payload(P, r, s.giant)
        outp = sprinkle(s, "tool", outp)
        tid = {"Bash": "run_in_terminal", "Read": "copilot_readFile", "Edit": "copilot_replaceString",
               "Grep": "copilot_findTextInFiles", "Write": "copilot_createFile"}[name]
        cid = uuid_of(r)
        t = P.prose(r, r.randint(30, 400))
        resp.append({"value": t, "supportThemeIcons": False, "supportHtml": False})
        resp.append({"kind": "prepareToolInvocation", "toolName": tid})
        it = {"kind": "toolInvocationSerialized", "invocationMessage": {"value": f"Using \"{tid}\""},
              "pastTenseMessage": {"value": f"Ran {tid}"}, "isConfirmed": {"type": r.choice((1, 1, 4))}, "isComplete": True,
              "source": {"type": "internal", "label": "Built-In"}, "toolCallId": cid, "toolId": tid}
        if tid == "run_in_terminal":
            it["toolSpecificData"] = {"kind": "terminal", "terminalToolSessionId": uuid_of(r),
                                      "commandLine": {"original": inp["command"]}, "language": "sh"}
        else:
            it["resultDetails"] = {"input": D(inp), "output": [{"type": "embed", "isText": True, "value": outp[:4000]}]}
        resp.append(it)
        rounds.append({"response": t, "toolCalls": [{"name": tid, "arguments": D(inp), "id": "toolu_" + cid[:12]}],
                       "toolInputRetry": 0, "id": uuid_of(r)})
        results["toolu_" + cid[:12]] = {"$mid": 20, "content": [{"$mid": 21, "value": tree_of(outp)}]}
        s.row["tool_calls"] += 1
    final = sprinkle(s, "assistant", P.prose(r, int(min(9000, r.lognormvariate(5.9, 1.0)))))
    resp.append({"value": final, "supportThemeIcons": False, "supportHtml": False,
                 "baseUri": {"$mid": 1, "path": s.cwd + "/", "scheme": "file"}})
    model = r.choice(("claude-opus-4.5", "gpt-5.2", "claude-sonnet-4.5", "gpt-4.1"))
    total = r.randint(1500, 90_000)
    s.row["turns"] += 1
    s.row["messages"] += 2
    return {
        "requestId": "request_" + uuid_of(r),
        "message": {"text": text, "parts": [{"range": {"start": 0, "endExclusive": len(text)},
                                             "editorRange": {"startLineNumber": 1, "startColumn": 1, "endLineNumber": 1,
                                                             "endColumn": len(text) + 1}, "text": text, "kind": "text"}]},
        "variableData": {"variables": []}, "response": resp, "responseId": "response_" + uuid_of(r),
        "result": {"timings": {"firstProgress": r.randint(300, 3000), "totalElapsed": total},
                   "metadata": {"codeBlocks": [], "renderedUserMessage": [{"type": 1, "text": "<userRequest>\n" + text + "\n</userRequest>"}],
                                "toolCallRounds": rounds, "toolCallResults": results, "cacheKey": "file://" + s.cwd,
                                "promptTokens": r.randint(9000, 150_000), "outputTokens": r.randint(50, 4000),
                                "modelMessageId": uuid_of(r), "responseId": uuid_of(r), "sessionId": uuid_of(r),
                                "agentId": "github.copilot.editsAgent"}, "details": model + " • 1x"},
        "responseMarkdownInfo": [], "followups": [], "isCanceled": r.random() < 0.03, "contentReferences": [],
        "codeCitations": [], "timestamp": ms, "modelId": "copilot/" + model,
        "agent": {"extensionId": {"value": "GitHub.copilot-chat", "_lower": "github.copilot-chat"}, "extensionVersion": "0.33.5",
                  "publisherDisplayName": "GitHub", "extensionPublisherId": "GitHub", "extensionDisplayName": "GitHub Copilot Chat",
                  "id": "github.copilot.editsAgent", "description": "Edit files in your workspace in agent mode",
                  "metadata": {"themeIcon": {"id": "tools"}, "hasFollowups": False}, "name": "agent", "fullName": "GitHub Copilot",
                  "isDefault": True, "locations": ["panel"], "modes": ["agent"], "slashCommands": [], "disambiguation": []}}, total


def tree_of(text):
    """a tool's result as VS Code stores it: nodes with pieces of text, most of them on their own line"""
    lines = text.split("\n")
    pieces = [{"type": 2, "priority": 9007199254740991, "text": "\n".join(lines[i:i + 40]), "lineBreakBefore": i > 0}
              for i in range(0, len(lines), 40)]
    return {"node": {"type": 1, "ctor": 2, "ctorName": "f", "children": [
        {"type": 1, "ctor": 2, "ctorName": "g", "children": pieces, "props": {}, "references": []}], "props": {},
        "references": []}}


def write_vscode(root, s, P, args, form=None):
    r = s.r
    user = os.path.join(root, ".config/Code/User")
    empty = r.random() < 0.04
    log = r.random() < 0.5                         # half old v3 documents, half mutation logs
    if form:
        log = form == "log"
    ws = os.path.join(user, "workspaceStorage", hashlib.md5(s.cwd.encode()).hexdigest())
    d = os.path.join(user, "globalStorage/emptyWindowChatSessions") if empty else os.path.join(ws, "chatSessions")
    if not empty:
        os.makedirs(ws, exist_ok=True)
        wj = os.path.join(ws, "workspace.json")
        with open(wj, "w") as f:
            f.write(D({"folder": "file://" + s.cwd}))
        os.utime(wj, ns=(BASE_MS * 1_000_000, BASE_MS * 1_000_000))
    ms = s.start
    head = {"version": 3, "requesterUsername": "dev", "requesterAvatarIconUri": {"$mid": 1, "path": "/u/1", "scheme": "https",
            "authority": "avatars.githubusercontent.com"}, "responderUsername": "GitHub Copilot",
            "responderAvatarIconUri": {"id": "copilot"}, "initialLocation": "panel"}
    if log:
        o = Out(os.path.join(d, s.id + ".jsonl"))
        v = dict(head, requests=[], pendingRequests=[], sessionId=s.id, creationDate=s.start, isImported=False,
                 hasPendingEdits=False, inputState={"attachments": [], "mode": {"id": "agent", "kind": "agent"}, "inputText": ""})
        o.line({"kind": 0, "v": v})
        n = 0
        while o.n < s.target:
            q, dt = vs_request(s, P, r, ms)
            if n == 0:
                o.line({"kind": 1, "k": ["customTitle"], "v": s.title})
            resp, res = q.pop("response"), q.pop("result")
            q["response"] = resp[:1]
            o.line({"kind": 2, "k": ["requests"], "v": [q]})
            have = 1
            while have < len(resp):                 # the response arrives in pieces
                step = r.randint(1, 4)
                o.line({"kind": 2, "k": ["requests", n, "response"], "v": resp[have:have + step], "i": have})
                have += step
            o.line({"kind": 1, "k": ["requests", n, "result"], "v": res})
            n += 1
            ms += dt + int(r.lognormvariate(10.6, 1.2))
        if s.needles:
            q, dt = vs_request(s, P, r, ms)
            q["response"][-1]["value"] += " " + " ".join(t for _, t in s.needles)
            s.needles = []
            o.line({"kind": 2, "k": ["requests"], "v": [q]})
        soil(s, o, args, r)
    else:
        o = Out(os.path.join(d, s.id + ".json"))
        reqs, size = [], 0
        o.raw((D(head)[:-1] + ',"requests":[').encode())
        while o.n < s.target or s.needles:
            q, dt = vs_request(s, P, r, ms)
            if o.n >= s.target and s.needles:
                q["response"][-1]["value"] += " " + " ".join(t for _, t in s.needles)
                s.needles = []
            o.raw((("," if size else "") + D(q)).encode())
            size += 1
            ms += dt + int(r.lognormvariate(10.6, 1.2))
        tail = D({"sessionId": s.id, "creationDate": s.start, "lastMessageDate": ms, "isImported": False, "customTitle": s.title})
        o.raw(("]," + tail[1:]).encode())
    o.close(ms)
    if not empty and r.random() < 0.2:              # edit session next to it
        ed = os.path.join(ws, "chatEditingSessions", s.id)
        eo = Out(os.path.join(ed, "state.json"))
        hs = ["%07x" % r.getrandbits(28) for _ in range(r.randint(1, 4))]
        eo.raw(D({"version": 2, "sessionId": s.id, "linearHistory": [], "recentSnapshot": {"entries": [
            {"resource": "file://" + s.cwd + "/" + P.paths[int(r.random() * len(P.paths))], "languageId": "rust",
             "originalHash": h, "currentHash": h, "state": 1} for h in hs]}}).encode())
        eo.close(ms)
        for h in hs:
            co = Out(os.path.join(ed, "contents", h))
            co.raw(P.source(r, r.randint(200, 4000)).encode())
            co.close(ms)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=iso(s.start), end=iso(ms), title=s.title,
                 format="jsonl" if log else "json")


# ---------------------------------------------------------------- Copilot CLI
def write_copilot_cli(root, s, P, args):
    r = s.r
    d = os.path.join(root, ".copilot/session-state", s.id)
    o = Out(os.path.join(d, "events.jsonl"))
    ms, last = s.start, None

    def ev(kind, data):
        nonlocal last
        i = uuid_of(r)
        o.line({"type": kind, "data": data, "id": i, "timestamp": iso(ms), "parentId": last})
        last = i

    model = r.choice(("claude-sonnet-4.5", "gpt-5.2", "claude-opus-4.5"))
    ev("session.start", {"sessionId": s.id, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.20",
                         "startTime": iso(ms), "selectedModel": model,
                         "context": {"cwd": s.cwd, "gitRoot": s.cwd, "branch": "main", "repository": "acme/project-%02d" % s.proj}})
    while o.n < s.target or s.needles:
        text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
        if not s.title:
            s.title = text[:60]
        ev("user.message", {"content": text, "transformedContent": text, "attachments": []})
        s.row["turns"] += 1
        s.row["messages"] += 1
        for st in range(1 + int(r.expovariate(1 / 4.0))):
            ms += int(r.lognormvariate(8.6, 0.9))
            ev("assistant.turn_start", {"turnId": str(st)})
            name, inp, outp = tool_payload(P, r, s.giant)
            cid = "call_%020x" % r.getrandbits(80)
            ev("assistant.message", {"messageId": uuid_of(r), "content": sprinkle(s, "assistant", P.prose(r, r.randint(40, 1500))),
                                     "reasoningText": P.prose(r, r.randint(50, 900)) if r.random() < .4 else None,
                                     "toolRequests": [{"toolCallId": cid, "name": name.lower(), "arguments": inp}],
                                     "outputTokens": r.randint(20, 1500)})
            ev("tool.execution_start", {"toolCallId": cid, "toolName": name.lower(), "arguments": inp})
            ms += r.randint(30, 9000)
            ev("tool.execution_complete", {"toolCallId": cid, "success": r.random() > .04,
                                           "result": {"content": sprinkle(s, "tool", outp), "detailedContent": outp}})
            ev("assistant.turn_end", {"turnId": str(st)})
            s.row["tool_calls"] += 1
            s.row["messages"] += 2
            if o.n > s.target * 1.2 and not s.needles:
                break
        ms += int(r.lognormvariate(10.6, 1.2))
    ev("session.shutdown", {"shutdownType": "routine", "modelMetrics": {model: {"requests": {"count": s.row["turns"], "cost": 1},
       "usage": {"inputTokens": r.randint(10_000, 900_000), "outputTokens": r.randint(500, 40_000),
                 "cacheReadTokens": r.randint(0, 8000), "cacheWriteTokens": 0}}}, "currentModel": model})
    soil(s, o, args, r)
    o.close(ms)
    wo = Out(os.path.join(d, "workspace.yaml"))
    wo.raw(("id: %s\ncwd: %s\ngit_root: %s\nrepository: acme/project-%02d\nbranch: main\nname: %s\ncreated_at: %s\nupdated_at: %s\n"
            % (s.id, s.cwd, s.cwd, s.proj, D(s.title), iso(s.start), iso(ms))).encode())
    wo.close(ms)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=iso(s.start), end=iso(ms), title=s.title)


# ---------------------------------------------------------------- Codex
def write_codex(root, s, P, args):
    r = s.r
    t0 = iso(s.start)
    o = Out(os.path.join(root, ".codex/sessions", t0[:4], t0[5:7], t0[8:10],
                         "rollout-%s-%s.jsonl" % (t0[:19].replace(":", "-"), s.id)))
    ms = s.start

    def item(kind, payload):
        o.line({"timestamp": iso(ms), "type": kind, "payload": payload})

    item("session_meta", {"id": s.id, "timestamp": t0, "cwd": s.cwd, "originator": "codex_cli_rs", "cli_version": "0.100.0",
                          "source": "cli", "model_provider": "openai", "git": {"commit_hash": "%040x" % r.getrandbits(160), "branch": "main"}})
    while o.n < s.target or s.needles:
        text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
        if not s.title:
            s.title = text[:60]
        item("turn_context", {"cwd": s.cwd, "approval_policy": "on-request", "model": "gpt-5.2-codex", "effort": "medium", "summary": "auto"})
        item("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        item("event_msg", {"type": "user_message", "message": text, "images": []})
        s.row["turns"] += 1
        s.row["messages"] += 1
        for _ in range(1 + int(r.expovariate(1 / 4.0))):
            ms += int(r.lognormvariate(8.6, 0.9))
            name, inp, outp = tool_payload(P, r, s.giant)
            cid = "call_%020x" % r.getrandbits(80)
            item("response_item", {"type": "function_call", "name": "shell_command", "call_id": cid,
                                   "arguments": D({"command": inp.get("command", "sed -n 1,200p " + str(inp.get("file_path", "x"))), "workdir": s.cwd})})
            item("response_item", {"type": "function_call_output", "call_id": cid, "output": sprinkle(s, "tool", outp)})
            s.row["tool_calls"] += 1
            if o.n > s.target * 1.2 and not s.needles:
                break
        a = sprinkle(s, "assistant", P.prose(r, int(min(9000, r.lognormvariate(5.9, 1.0)))))
        item("event_msg", {"type": "agent_message", "message": a})
        item("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": a}]})
        item("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": r.randint(9000, 300_000),
             "cached_input_tokens": 4000, "output_tokens": r.randint(100, 9000), "reasoning_output_tokens": 64, "total_tokens": 99_000},
             "last_token_usage": {"input_tokens": 9000, "cached_input_tokens": 4000, "output_tokens": 300, "reasoning_output_tokens": 64,
                                  "total_tokens": 9300}, "model_context_window": 272000}})
        s.row["messages"] += 1
        ms += int(r.lognormvariate(10.6, 1.2))
    soil(s, o, args, r)
    o.close(ms)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=t0, end=iso(ms), title=s.title)


# ---------------------------------------------------------------- pi
def write_pi(root, s, P, args):
    r = s.r
    t0 = iso(s.start)
    o = Out(os.path.join(root, ".pi/agent/sessions", "--" + s.cwd.strip("/").replace("/", "-") + "--",
                         "%s_%s.jsonl" % (t0.replace(":", "-").replace(".", "-"), s.id)))
    ms, leaf, hist = s.start, None, []
    o.line({"type": "session", "version": 3, "id": s.id, "timestamp": t0, "cwd": s.cwd})

    def ent(kind, **kw):
        nonlocal leaf
        i = "%08x" % r.getrandbits(32)
        e = {"type": kind, "id": i, "parentId": leaf, "timestamp": iso(ms)}
        e.update(kw)
        o.line(e)
        leaf = i
        hist.append(i)

    ent("model_change", provider="anthropic", modelId="claude-opus-4-5")
    ent("thinking_level_change", thinkingLevel="medium")
    ctx = 9000
    while o.n < s.target or s.needles:
        text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
        if not s.title:
            s.title = text[:60]
        if len(hist) > 8 and r.random() < 0.10:
            leaf = hist[r.randrange(2, len(hist))]
            s.row["branches"] += 1
            ent("branch_summary", fromId=hist[-1], summary=P.prose(r, 300))
        ent("message", message={"role": "user", "content": [{"type": "text", "text": text}], "timestamp": ms})
        s.row["turns"] += 1
        s.row["messages"] += 1
        steps = 1 + int(r.expovariate(1 / 4.0))
        for st in range(steps):
            ms += int(r.lognormvariate(8.6, 0.9))
            name, inp, outp = tool_payload(P, r, s.giant)
            cid = "toolu_%020x" % r.getrandbits(80)
            ctx += r.randint(200, 3000)
            blocks = [{"type": "text", "text": sprinkle(s, "assistant", P.prose(r, r.randint(40, 1500)))}]
            if st < steps - 1:
                blocks.append({"type": "toolCall", "id": cid, "name": name.lower(), "arguments": inp})
            ent("message", message={"role": "assistant", "content": blocks, "api": "anthropic-messages", "provider": "anthropic",
                                    "model": "claude-opus-4-5", "usage": {"input": 10, "output": r.randint(20, 900), "cacheRead": ctx,
                                    "cacheWrite": 100, "cost": {"input": 0, "output": 0.01, "cacheRead": 0.01, "cacheWrite": 0, "total": 0.02}},
                                    "stopReason": "toolUse" if st < steps - 1 else "stop", "timestamp": ms})
            s.row["messages"] += 1
            if st < steps - 1:
                ent("message", message={"role": "toolResult", "toolCallId": cid, "toolName": name.lower(),
                                        "content": [{"type": "text", "text": sprinkle(s, "tool", outp)}], "isError": False, "timestamp": ms})
                s.row["tool_calls"] += 1
                s.row["messages"] += 1
        if ctx > 160_000:
            ent("compaction", summary=P.prose(r, 3000), firstKeptEntryId=hist[max(0, len(hist) - 6)], tokensBefore=ctx)
            s.row["compactions"] += 1
            ctx = 9000
        ms += int(r.lognormvariate(10.6, 1.2))
    soil(s, o, args, r)
    o.close(ms)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=t0, end=iso(ms), title=s.title)


# ---------------------------------------------------------------- Gemini CLI
def write_gemini(root, s, P, args):
    r = s.r
    d = os.path.join(root, ".gemini/tmp", "project-%02d" % s.proj)
    t0 = iso(s.start)
    o = Out(os.path.join(d, "chats", "session-%s-%s.jsonl" % (t0[:16].replace(":", "-"), s.id[:8])))
    ms = s.start
    o.line({"sessionId": s.id, "projectHash": hashlib.sha256(s.cwd.encode()).hexdigest(), "startTime": t0, "lastUpdated": t0,
            "kind": "main"})
    while o.n < s.target or s.needles:
        text = sprinkle(s, "user", P.prose(r, int(min(6000, r.lognormvariate(4.6, 1.0)))))
        if not s.title:
            s.title = text[:60]
        o.line({"id": uuid_of(r), "timestamp": iso(ms), "type": "user", "content": [{"text": text}]})
        s.row["turns"] += 1
        s.row["messages"] += 1
        for _ in range(1 + int(r.expovariate(1 / 4.0))):
            ms += int(r.lognormvariate(8.6, 0.9))
            name, inp, outp = tool_payload(P, r, s.giant)
            outp = sprinkle(s, "tool", outp)
            tool = {"Bash": "run_shell_command", "Read": "read_file", "Edit": "replace", "Grep": "search_file_content",
                    "Write": "write_file"}[name]
            cid = "%s-%d-%012x" % (tool, ms, r.getrandbits(48))
            m = {"id": uuid_of(r), "timestamp": iso(ms), "type": "gemini",
                 "content": sprinkle(s, "assistant", P.prose(r, r.randint(40, 1500))), "thoughts": [], "model": "gemini-3-pro",
                 "tokens": {"input": r.randint(9000, 150_000), "output": r.randint(20, 900), "cached": 4000, "thoughts": 64,
                            "tool": 0, "total": 99_000}}
            o.line(m)
            # written again once its call has ended
            m["toolCalls"] = [{"id": cid, "name": tool, "args": inp, "status": "success", "timestamp": iso(ms),
                               "result": [{"functionResponse": {"id": cid, "name": tool, "response": {"output": outp}}}],
                               "resultDisplay": outp[:200], "displayName": name}]
            o.line(m)
            s.row["tool_calls"] += 1
            s.row["messages"] += 1
            if o.n > s.target * 1.2 and not s.needles:
                break
        o.line({"$set": {"lastUpdated": iso(ms)}})
        ms += int(r.lognormvariate(10.6, 1.2))
    soil(s, o, args, r)
    o.close(ms)
    po = Out(os.path.join(d, ".project_root"))
    po.raw(s.cwd.encode())
    po.close(BASE_MS)
    s.row.update(path=os.path.relpath(o.path, root), bytes=o.n, start=t0, end=iso(ms), title=s.title)


WRITERS = {"claude": write_claude, "vscode": write_vscode,
           "vscode-log": lambda *a: write_vscode(*a, form="log"), "vscode-flat": lambda *a: write_vscode(*a, form="flat"),
           "copilot-cli": write_copilot_cli, "codex": write_codex, "pi": write_pi, "gemini": write_gemini}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--root", required=True)
    a.add_argument("--seed", type=int, default=42)
    a.add_argument("--sessions", type=int, default=2000)
    a.add_argument("--mb", type=float, default=300, help="total size, in 10^6 bytes, giants included (approximate)")
    a.add_argument("--sigma", type=float, default=1.4, help="spread of the lognormal of session sizes")
    a.add_argument("--giants", type=int, default=2)
    a.add_argument("--giant-mb", type=float, default=50)
    a.add_argument("--mix", default="claude=.6,vscode=.4")
    a.add_argument("--projects", type=int, default=40)
    a.add_argument("--needles", type=int, default=40)
    a.add_argument("--dirty", type=float, default=0.0, help="share of line-based files with a damaged tail")
    a.add_argument("--force", action="store_true", help="remove what an earlier run left in --root")
    args = a.parse_args()
    root = os.path.abspath(args.root)
    if os.path.exists(os.path.join(root, "manifest.json")):
        if not args.force:
            sys.exit("refusing: %s holds a corpus (use --force)" % root)
        for x in (".claude", ".config", ".copilot", ".codex", ".pi", ".gemini"):
            shutil.rmtree(os.path.join(root, x), ignore_errors=True)
    P = Pools(args.seed)
    sessions, queries = plan(args)
    by = {}
    for s in sessions:
        WRITERS[s.tool](root, s, P, args)
        k = by.setdefault(s.tool, dict(sessions=0, bytes=0, messages=0))
        k["sessions"] += 1
        k["bytes"] += s.row["bytes"]
        k["messages"] += s.row["messages"]
    rows = [s.row for s in sessions]
    sizes = sorted(x["bytes"] for x in rows)
    man = dict(generator="gen_corpus.py/1", args={k: v for k, v in vars(args).items() if k not in ("root", "force")},
               totals=dict(sessions=len(rows), bytes=sum(sizes), messages=sum(x["messages"] for x in rows), by_tool=by,
                           size_percentiles={p: sizes[min(len(sizes) - 1, int(len(sizes) * p / 100))] for p in (1, 10, 25, 50, 75, 90, 99, 100)}),
               queries=queries, sessions=rows)
    with open(os.path.join(root, "manifest.json"), "w") as f:
        json.dump(man, f, ensure_ascii=False, indent=0)
    print(json.dumps(man["totals"], indent=1))


if __name__ == "__main__":
    main()
