//! The formats for people.

use super::*;

const MARKDOWN: &str = r#"# A \*small\* session

- Session: s1
- Source: copilot-cli
- Folder: /w
- Created: 2023-11-14 22:13:20 UTC
- Changed: 2023-11-14 22:14:25 UTC
- Turns: 1
- State: failed
- Models: gpt-4
- Tools: bash, runSubagent
- Usage: tokens: 12 in, 3 out

## Turn 1

2023-11-14 22:13:20 UTC · gpt-4 · 1 min 5 s · tokens: 12 in, 3 out

**User**

> What is here?
> Tell me.
> - file /w/a.rs

**Thought** (1.5 s)

```
I look first.
```

I **look**.

**bash: List the folder** (shell, approved by a person, failed, exit code 2)

input:

```
ls
```

output:

````
a.rs
```
````

**runSubagent** (subagent)

input:

```
look

look
```


### Turn 1.1

**User**

> look

Nothing there.

**Created /w/b.rs (+3 -0)**

**Question**

```
Go on?
```

**warning**

```
Slow.
```

**Not understood**

```
{
  "new": true
}
```

**This turn: failed: the line went dead**

References:

- /w/c.rs

Resembles public code:

- https://e.org/x (MIT)

"#;

#[test]
fn a_session_in_markdown_has_all_that_is_worth_showing() {
    let turns = [turn()];
    assert_eq!(written(Form::Markdown, &session_of(&turns), &turns), MARKDOWN);
}

/// The names of a document's elements and attributes, as a browser reads them.
fn elements(html: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("every tag has an end");
        rest = after;
        let name: String = tag.chars().take_while(|letter| !letter.is_whitespace()).collect();
        let attributes = tag.split('"').step_by(2).flat_map(str::split_whitespace).filter_map(|word| {
            let name = word.split('=').next()?;
            (name != self::name_of(tag)).then(|| name.to_owned())
        });
        found.push((name.clone(), attributes.collect()));
        if name == "style" {
            rest = rest.split_once("</style>").unwrap().1;
        }
    }
    found
}

fn name_of(tag: &str) -> &str {
    tag.split_whitespace().next().unwrap_or_default()
}

/// All allowed names of elements and attributes.
const ELEMENTS: &str = "!DOCTYPE html head meta title style body h1 h2 h3 h4 h5 h6 dl dt dd section p div ul ol li details \
    summary span pre code strong em del blockquote a table thead tbody tr th td br hr /html /head /title /style /body /h1 \
    /h2 /h3 /h4 /h5 /h6 /dl /dt /dd /section /p /div /ul /ol /li /details /summary /span /pre /code /strong /em /del \
    /blockquote /a /table /thead /tbody /tr /th /td / start";
const ATTRIBUTES: &str = "html charset http-equiv content name class open href start /";

fn is_safe(html: &str) {
    let allowed = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    for (element, attributes) in elements(html) {
        assert!(allowed(ELEMENTS, &element), "<{element}>");
        for attribute in attributes {
            assert!(allowed(ATTRIBUTES, &attribute), "<{element} {attribute}>");
        }
    }
    for scheme in ["href=\"javascript:", "href=\"data:", "href=\"file:", "href=\"vbscript:", "src="] {
        let found = html.to_lowercase().find(scheme).map(|at| &html[at.saturating_sub(40)..]);
        let in_text = found.is_some_and(|found| found.contains("&lt;") || scheme == "src=");
        assert!(found.is_none() || in_text, "{scheme}");
    }
}

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "</pre></details></title></style><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>",
    "' onmouseover='alert(1)",
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) ![c](https://evil.example/beacon.png)",
    "[x]: javascript:alert(1)\n\n[x] <javascript:alert(1)> <https://a.example/?\"onclick=x>",
    "<!-- <script>alert(1)</script> --> <![CDATA[ <script> ]]> <?php ?>",
    "```\"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```",
    "| a |\n|:-:|\n| <b onclick=x> |\n\n3. x\n4. y",
    "&lt;script&gt; &#60;script&#62; \u{0}<scr\u{0}ipt>\u{1b}[2J\u{202e}",
    "<meta http-equiv=refresh content=0;url=https://evil.example><base href=//evil.example><iframe src=x></iframe>",
    "[a](https://e.example/\"onclick=\"alert(1)) [b](<https://e.example/ onclick=x>)",
];

#[test]
fn nothing_that_a_session_holds_becomes_a_tag_of_the_html() {
    for hostile in HOSTILE {
        let text = (*hostile).to_owned();
        let call = TranscriptToolCall {
            id: text.clone(),
            name: text.clone(),
            provider: Some(text.clone()),
            intention: Some(text.clone()),
            raw_input: Some(json!({"x": text})),
            output: Some(ToolOutput { text: text.clone(), raw: None }),
            approval: Approval::Setting { id: Some(text.clone()) },
            ..TranscriptToolCall::default()
        };
        let inner = TranscriptTurn { parts: vec![TranscriptPart::Text(text.clone())], ..TranscriptTurn::default() };
        let chat = TranscriptChat { turns: vec![inner], ..TranscriptChat::default() };
        let outer = TranscriptToolCall { subagent: Some(Box::new(chat)), ..call.clone() };
        let turn = TranscriptTurn {
            message: TranscriptMessage {
                text: text.clone(),
                command: Some(text.clone()),
                ..TranscriptMessage::default()
            },
            parts: vec![
                TranscriptPart::Text(text.clone()),
                TranscriptPart::Reasoning { text: text.clone(), title: Some(text.clone()), duration_ms: None },
                TranscriptPart::ToolCall(Box::new(call)),
                TranscriptPart::ToolCall(Box::new(outer)),
                TranscriptPart::Question(Question {
                    title: text.clone(),
                    message: text.clone(),
                    ..Question::default()
                }),
                TranscriptPart::Notice(Notice { kind: text.clone(), text: text.clone(), ..Notice::default() }),
                TranscriptPart::Raw(json!({text.clone(): text.clone()})),
                TranscriptPart::Edit(Box::new(TranscriptEdit {
                    place: FileLocation::local(&text),
                    ..TranscriptEdit::default()
                })),
            ],
            model: Some(TranscriptModel::new(&text)),
            mode: Some(text.clone()),
            outcome: TurnOutcome::Failed(ErrorInfo::new("x", text.clone())),
            followups: vec![text.clone()],
            references: vec![FileLocation::local(&text)],
            citations: vec![CodeCitation { source: text.clone(), licence: text.clone(), snippet: text.clone() }],
            ..TranscriptTurn::default()
        };
        let mut session = session_of(std::slice::from_ref(&turn));
        session.title = Some(text.clone());
        session.source_id.clone_from(&text);
        session.agent = Some(text.clone());
        session.workspace.branch = Some(text);
        let turns = [turn];
        is_safe(&written(Form::Html, &session, &turns));
        let markdown = written(Form::Markdown, &session, &turns);
        assert!(!markdown.contains(|letter: char| letter.is_control() && letter != '\n'), "{markdown:?}");
    }
}

#[test]
fn the_html_forbids_scripts_and_loads_and_needs_no_other_file() {
    let turns = [turn()];
    let html = written(Form::Html, &session_of(&turns), &turns);
    let policy = html.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    let before = html.split("Content-Security-Policy").next().unwrap();
    assert!(!before.contains("<style") && !before.contains("<title"), "the policy comes first");
    is_safe(&html);
    for word in ["I <strong>look</strong>.", "the line went dead", "Nothing there.", "exit code 2", "a.rs\n```"] {
        assert!(html.contains(word), "{word}");
    }
}

#[test]
fn recorded_sessions_become_documents_that_are_safe() {
    for (path, session, turns) in recorded() {
        let html = written(Form::Html, &session, &turns);
        is_safe(&html);
        let markdown = written(Form::Markdown, &session, &turns);
        for turn in &turns {
            let first = turn.message.text.lines().next().unwrap_or_default();
            let quoted = format!("> {}", first.replace('<', "\\<"));
            assert!(markdown.contains(quoted.trim_end()), "{}: {first}", path.display());
        }
    }
}
