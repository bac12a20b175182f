//! A turn as the Copilot SDK's clients get it, event by event.

use grove_core::*;
use grove_wire::copilot::project::{self, EventPosition, Projector, TurnPosition, history, locate};
use grove_wire::copilot::{self, EventData};
use serde_json::{Value, json};

/// A session, its turns, and the events that its clients got.
struct Scene {
    session: Session,
    projector: Projector,
    told: Vec<copilot::Event>,
    now: u64,
}

impl Scene {
    fn new() -> Self {
        let new = NewSession {
            id: "s1".into(),
            uri: "scripted:/s1".into(),
            agent: "scripted".into(),
            model: Some("small".into()),
            working_directories: vec!["/project".into()],
            config: None,
            store: StoreName::default(),
        };
        let mut session = Session::new(&new, Timestamp(1_000));
        // Its first prompt would name it otherwise.
        session.set_title(&"A scene".into());
        let projector = Projector::new(&session, &[]);
        Self { session, projector, told: Vec::new(), now: 1_000 }
    }

    fn started(text: &str) -> Self {
        let mut scene = Self::new();
        scene.send("t1", text);
        scene
    }

    fn act(&mut self, command: Command) {
        self.now += 1;
        let batch = advance(&mut self.session, None, command, Timestamp(self.now)).unwrap();
        for event in &batch.events {
            self.told.extend(self.projector.tell(event));
        }
    }

    fn ask(&mut self, command: ClientCommand) {
        self.act(Command::Client("me".into(), command));
    }

    fn host(&mut self, command: impl Into<HostCommand>) {
        self.act(Command::Host(command.into()));
    }

    fn report(&mut self, event: ChatEvent) {
        self.act(Command::Agent(EventReport::Chat { chat: Session::MAIN_CHAT.into(), event }));
    }

    fn send(&mut self, turn: &str, text: &str) {
        let (chat, message) = (Session::MAIN_CHAT.into(), Message::user(text));
        self.ask(ClientCommand::StartTurn { chat, turn: turn.into(), message, started_at: None });
    }

    fn say(&mut self, part: &str, pieces: &[&str]) {
        let text = TextPart { id: part.into(), content: String::new(), delivery: Delivery::Streamed };
        self.report(ChatEvent::PartAdded { turn: "t1".into(), part: Part::Text(text) });
        for piece in pieces {
            let (part, content) = (part.into(), (*piece).to_owned());
            self.report(ChatEvent::TextDelta { turn: "t1".into(), part, content });
        }
    }

    fn think(&mut self, part: &str, content: &str) {
        let thought = Part::Reasoning { id: part.into(), content: String::new() };
        self.report(ChatEvent::PartAdded { turn: "t1".into(), part: thought });
        let (part, content) = (part.into(), content.to_owned());
        self.report(ChatEvent::ReasoningDelta { turn: "t1".into(), part, content });
    }

    fn call(&mut self, id: &str, client: Option<&str>, input: &str, gate: Gate) {
        let call = NewToolCall {
            id: id.into(),
            name: "bash".into(),
            display_name: "Run".into(),
            kind: Some(ToolKind::Terminal),
            language: None,
            client: client.map(ClientId::from),
            extra: None,
        };
        self.report(ChatEvent::ToolCallStarted { turn: "t1".into(), call: call.clone() });
        self.report(ChatEvent::ToolCallReady {
            turn: "t1".into(),
            call,
            invocation_message: "Runs it".into(),
            input: Some(input.into()),
            gate,
        });
    }

    fn gate(&mut self, call: &str) {
        let request = PermissionRequest {
            id: "r1".into(),
            kind: PermissionKind::Shell,
            path: None,
            full_command_text: Some("ls".into()),
            intention: Some("look around".into()),
            title: None,
            options: vec![],
            edits: vec![],
            editable: false,
        };
        let gated = ToolCallGate { call: call.into(), request, invocation_message: None, input: None, hook: None };
        self.report(ChatEvent::ToolCallGated { turn: "t1".into(), gated: Box::new(gated) });
    }

    fn resolve(&mut self, decision: Decision) {
        self.ask(ClientCommand::ResolvePermission {
            chat: Session::MAIN_CHAT.into(),
            turn: "t1".into(),
            question: PermissionTarget::Request("r1".into()),
            verdict: decision.into(),
            answered_by: None,
        });
    }

    fn complete(&mut self, call: &str, output: &str) {
        let result = ToolResult {
            success: true,
            past_tense_message: "Ran it".into(),
            output: Some(output.into()),
            attached: vec![],
            extra: None,
        };
        self.report(ChatEvent::ToolCallCompleted { turn: "t1".into(), call: call.into(), result, run: None });
    }

    fn finish(&mut self) {
        self.report(ChatEvent::TurnCompleted { turn: "t1".into(), duration: None });
    }

    /// The types of the sent events, ephemeral ones in brackets.
    fn kinds(&self) -> Vec<String> {
        let kind = |event: &copilot::Event| match event.ephemeral {
            true => format!("({})", event.kind()),
            false => event.kind().to_owned(),
        };
        self.told.iter().map(kind).collect()
    }

    /// The data of the only event of a type.
    fn data(&self, kind: &str) -> Value {
        let mut found = self.told.iter().filter(|event| event.kind() == kind);
        let data = serde_json::to_value(&found.next().unwrap_or_else(|| panic!("no {kind}")).data).unwrap();
        assert!(found.next().is_none(), "more than one {kind}");
        data
    }

    fn read(&self) -> Vec<copilot::Event> {
        let chat = self.session.main_chat().unwrap();
        history(&self.session, chat.turns.iter().cloned(), &chat.unlogged).collect()
    }

    /// Checks that the persisted events equal a later read, in order and with the same parents.
    fn must_read_as_told(&self) {
        let timeless = |event: &copilot::Event| copilot::Event { timestamp: String::new(), ..event.clone() };
        let kept: Vec<_> = self.told.iter().filter(|event| !event.ephemeral).map(timeless).collect();
        let read: Vec<_> = self.read().iter().skip(1).map(timeless).collect();
        assert_eq!(kept, read);
    }
}

#[test]
fn a_streamed_answer_ends_in_a_message_and_idle() {
    let mut scene = Scene::started("hello");
    scene.say("p1", &["You said: ", "hello"]);
    scene.finish();
    assert_eq!(
        scene.kinds(),
        [
            "user.message",
            "assistant.turn_start",
            "(assistant.message_start)",
            "(assistant.message_delta)",
            "(assistant.message_delta)",
            "assistant.message",
            "assistant.turn_end",
            "(session.idle)",
        ]
    );
    assert_eq!(scene.data("user.message"), json!({ "content": "hello", "messageId": "t1" }));
    let message = scene.data("assistant.message");
    assert_eq!(message["content"], "You said: hello");
    assert_eq!(message["toolRequests"], json!([]));
    assert_eq!(message["messageId"], scene.data("assistant.message_start")["messageId"]);
    assert_eq!(scene.data("session.idle"), json!({}));
    scene.must_read_as_told();
}

#[test]
fn an_event_is_written_in_its_envelope() {
    let mut scene = Scene::started("hello");
    scene.finish();
    let read = scene.read();
    assert_eq!(
        serde_json::to_value(&read[0]).unwrap(),
        json!({
            "type": "session.start",
            "data": {
                "sessionId": "s1", "version": 1, "producer": "grove", "copilotVersion": env!("CARGO_PKG_VERSION"),
                "startTime": "1970-01-01T00:00:01.000Z", "selectedModel": "small", "context": { "cwd": "/project" },
            },
            "id": &*project::start_id(&"s1".into()),
            "timestamp": "1970-01-01T00:00:01.000Z",
            "parentId": null,
        })
    );
    let idle = serde_json::to_value(scene.told.last().unwrap()).unwrap();
    assert_eq!(idle["ephemeral"], true);
    assert_eq!(idle["parentId"], *read.last().unwrap().id);
    assert_eq!(serde_json::from_value::<copilot::Event>(idle).unwrap(), *scene.told.last().unwrap());
}

#[test]
fn a_call_takes_the_text_and_the_thought_before_it_along() {
    let mut scene = Scene::started("look");
    scene.think("p1", "A listing helps.");
    scene.say("p2", &["I look."]);
    scene.call("c1", None, "ls -l", Gate::Follows);
    scene.gate("c1");
    scene.resolve(Decision::Approved);
    scene.complete("c1", "a.txt");
    scene.say("p3", &["One file."]);
    scene.finish();
    assert_eq!(
        scene.kinds(),
        [
            "user.message",
            "assistant.turn_start",
            "(assistant.reasoning_delta)",
            "(assistant.message_start)",
            "(assistant.message_delta)",
            "assistant.message",
            "tool.execution_start",
            "(permission.requested)",
            "(permission.completed)",
            "tool.execution_complete",
            "(assistant.message_start)",
            "(assistant.message_delta)",
            "assistant.message",
            "assistant.turn_end",
            "(session.idle)",
        ]
    );
    let message = scene.told.iter().find(|event| event.kind() == "assistant.message").unwrap();
    let message = serde_json::to_value(&message.data).unwrap();
    assert_eq!((&message["content"], &message["reasoningText"]), (&json!("I look."), &json!("A listing helps.")));
    let arguments = json!({ "command": "ls -l" });
    let request =
        json!([{ "toolCallId": "c1", "name": "bash", "arguments": arguments, "type": "function", "toolTitle": "Run" }]);
    assert_eq!(message["toolRequests"], request);
    assert_eq!(scene.data("tool.execution_start")["arguments"], arguments);
    assert_eq!(scene.data("tool.execution_complete")["result"], json!({ "content": "a.txt" }));
    assert_eq!(
        scene.data("permission.requested")["permissionRequest"],
        json!({
            "kind": "shell", "toolCallId": "c1", "intention": "look around", "fullCommandText": "ls",
            "commands": [{ "identifier": "ls", "readOnly": false }], "possiblePaths": [], "possibleUrls": [],
            "hasWriteFileRedirection": false, "canOfferSessionApproval": false,
        })
    );
    assert_eq!(scene.data("permission.requested")["promptRequest"]["kind"], "commands");
    assert_eq!(
        scene.data("permission.completed"),
        json!({ "requestId": "r1", "toolCallId": "c1", "result": { "kind": "approved" }, "decisionSource": "human_response" })
    );
    scene.must_read_as_told();
}

#[test]
fn a_denied_call_is_complete_and_says_so() {
    let mut scene = Scene::started("look");
    scene.call("c1", None, r#"{"command":"ls"}"#, Gate::Follows);
    scene.gate("c1");
    scene.resolve(Decision::Denied);
    scene.finish();
    assert_eq!(scene.data("permission.completed")["result"], json!({ "kind": "denied-interactively-by-user" }));
    let complete = scene.data("tool.execution_complete");
    assert_eq!(complete["success"], false);
    assert_eq!(complete["error"], json!({ "message": "Permission denied.", "code": "denied" }));
    assert_eq!(scene.data("tool.execution_start")["arguments"], json!({ "command": "ls" }));
    scene.must_read_as_told();
}

#[test]
fn a_client_is_asked_to_run_its_call_once_it_may_run() {
    let mut scene = Scene::started("use it");
    scene.call("c1", Some("me"), r#"{"x":5}"#, Gate::Follows);
    scene.gate("c1");
    assert!(scene.told.iter().all(|event| event.kind() != "external_tool.requested"));
    scene.resolve(Decision::Approved);
    assert_eq!(
        scene.data("external_tool.requested"),
        json!({
            "requestId": "c1", "sessionId": "s1", "toolCallId": "c1", "toolName": "bash", "arguments": { "x": 5 },
            "workingDirectory": "/project",
        })
    );
    // A client that joins now is asked as well.
    let mut late = Projector::new(&scene.session, &[]);
    let waiting = late.waiting(Timestamp(5_000));
    assert_eq!(waiting.iter().map(copilot::Event::kind).collect::<Vec<_>>(), ["external_tool.requested"]);
    let result = copilot::decode::tool_result("bash", None, Some("no such x".into()));
    scene.ask(ClientCommand::CompleteClientCall {
        chat: Session::MAIN_CHAT.into(),
        turn: "t1".into(),
        call: "c1".into(),
        result,
        ask: false,
    });
    let kinds = scene.kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["(external_tool.completed)", "tool.execution_complete"]);
    assert_eq!(scene.data("tool.execution_complete")["error"]["message"], "no such x");
}

#[test]
fn output_is_told_by_what_is_new_of_it() {
    let mut scene = Scene::started("run");
    scene.call("c1", None, "make", Gate::None);
    for text in ["one\n", "one\ntwo\n", "other\n"] {
        let output = ToolOutput { text: text.into(), pieces: None, attached: vec![] };
        scene.report(ChatEvent::ToolCallOutput { turn: "t1".into(), call: "c1".into(), output });
    }
    let new = scene.told.iter().filter_map(|event| match &event.data {
        EventData::ToolPartialResult(partial) => Some(partial.partial_output.as_str()),
        _ => None,
    });
    assert_eq!(new.collect::<Vec<_>>(), ["one\n", "two\n", "other\n"]);
}

#[test]
fn a_cancelled_turn_closes_what_is_open_and_is_aborted_and_idle() {
    let mut scene = Scene::started("slow");
    scene.say("p1", &["w1 "]);
    scene.call("c1", None, "sleep", Gate::Follows);
    scene.gate("c1");
    let asked = InputRequest::ask("q1".into(), "Which colour?");
    scene.report(ChatEvent::InputRequested { turn: "t1".into(), request: Box::new(asked) });
    assert_eq!(
        scene.data("user_input.requested"),
        json!({ "requestId": "q1", "question": "Which colour?", "allowFreeform": true })
    );
    let before = scene.told.len();
    scene.ask(ClientCommand::CancelTurn { chat: Session::MAIN_CHAT.into(), turn: "t1".into() });
    assert_eq!(
        scene.kinds()[before..],
        [
            "(permission.completed)",
            "(user_input.completed)",
            "tool.execution_complete",
            "abort",
            "assistant.turn_end",
            "(session.idle)"
        ]
    );
    assert_eq!(scene.data("abort"), json!({ "reason": "user_initiated" }));
    assert_eq!(scene.data("session.idle"), json!({ "aborted": true }));
    assert_eq!(scene.data("tool.execution_complete")["error"]["code"], "interrupted");
    scene.must_read_as_told();
}

#[test]
fn only_the_error_that_ends_a_turn_is_a_session_error() {
    let mut scene = Scene::started("fail");
    let first = Part::Error(ErrorInfo::new("retry", "trying again"));
    scene.report(ChatEvent::PartAdded { turn: "t1".into(), part: first });
    let error = ErrorInfo::new("agentFailed", "gone");
    scene.report(ChatEvent::TurnFailed { turn: "t1".into(), duration: None, error });
    assert_eq!(scene.data("session.warning"), json!({ "warningType": "retry", "message": "trying again" }));
    assert_eq!(scene.data("session.error"), json!({ "errorType": "agentFailed", "message": "gone" }));
    let kinds = scene.kinds();
    assert_eq!(kinds[kinds.len() - 3..], ["session.error", "assistant.turn_end", "(session.idle)"]);
    scene.must_read_as_told();
}

#[test]
fn a_session_is_idle_only_when_nothing_waits() {
    let mut scene = Scene::started("one");
    let message = PendingMessage { id: "t2".into(), message: Message::user("two") };
    scene.ask(ClientCommand::Enqueue { chat: Session::MAIN_CHAT.into(), message });
    scene.finish();
    assert!(scene.told.iter().all(|event| event.kind() != "session.idle"), "{:?}", scene.kinds());
    scene.report(ChatEvent::TurnCompleted { turn: "t2".into(), duration: None });
    assert_eq!(scene.data("session.idle"), json!({}));
    // A stopping host leaves queued messages queued.
    scene.send("t3", "three");
    let message = PendingMessage { id: "t4".into(), message: Message::user("four") };
    scene.ask(ClientCommand::Enqueue { chat: Session::MAIN_CHAT.into(), message });
    let error = ErrorInfo::new("stopped", "the host stops");
    scene.host(HostCommand::StopTurn { chat: Session::MAIN_CHAT.into(), turn: "t3".into(), error });
    assert_eq!(scene.told.iter().filter(|event| event.kind() == "session.idle").count(), 2);
}

#[test]
fn settings_are_told_and_entries_of_the_log_are_kept() {
    let mut scene = Scene::new();
    scene.host(EventReport::Session(SessionEvent::TitleChanged("Trees".into())));
    assert_eq!(scene.data("session.title_changed"), json!({ "title": "Trees" }));
    scene.host(EventReport::Session(SessionEvent::ModelChanged("large".into())));
    assert_eq!(scene.data("session.model_change"), json!({ "previousModel": "small", "newModel": "large" }));
    let entry = |line: &Value| {
        let entries = vec![LogEntry { line: line.to_string().into(), after: None }];
        HostCommand::AddEntries { chat: Session::MAIN_CHAT.into(), entries, resets_agent: false }
    };
    for (number, operation) in ["create", "update", "delete"].into_iter().enumerate() {
        let data = json!({ "infoType": "plan", "message": "The plan was changed.", "operation": operation });
        scene.host(entry(
            &json!({ "type": "custom", "customType": "grove.info", "id": format!("p{number}"), "data": data }),
        ));
    }
    let operations = scene.told.iter().filter_map(|event| match &event.data {
        EventData::PlanChanged(changed) => Some(changed.operation.as_str()),
        _ => None,
    });
    assert_eq!(operations.collect::<Vec<_>>(), ["create", "update", "delete"]);
    let line = json!({
        "type": "compaction", "id": "e1", "parentId": null, "summary": "All of it", "tokensBefore": 70,
        "details": { "checkpointNumber": 2, "checkpointPath": "checkpoints/002-all.md" },
    });
    scene.host(entry(&line));
    assert_eq!(
        scene.data("session.compaction_complete"),
        json!({
            "success": true, "preCompactionTokens": 70, "summaryContent": "All of it", "checkpointNumber": 2,
            "checkpointPath": "checkpoints/002-all.md",
        })
    );
    // Entries of the log are read again.
    let kept: Vec<_> = scene.told.iter().filter(|event| !event.ephemeral).cloned().collect();
    assert_eq!(scene.read()[1..], kept);
    assert_eq!(kept.len(), 4);
    let unsaved = project::persistence_error("disk full");
    let event = scene.projector.aside(Timestamp(9_000), unsaved);
    assert!(event.ephemeral);
    assert_eq!(
        serde_json::to_value(&event.data).unwrap(),
        json!({ "errorType": "persistence", "message": "Failed to persist session events: disk full" })
    );
}

#[test]
fn a_usage_report_says_whose_and_how_full_the_window_is() {
    let mut scene = Scene::started("count");
    let usage = Usage {
        input_tokens: Some(10),
        output_tokens: Some(2),
        context: Some(ContextUsage { used: 12, size: 100 }),
        ..Usage::default()
    };
    scene.report(ChatEvent::UsageReported { turn: "t1".into(), usage });
    assert_eq!(scene.data("assistant.usage"), json!({ "model": "small", "inputTokens": 10, "outputTokens": 2 }));
    assert_eq!(scene.data("session.usage_info")["currentTokens"], 12);
}

#[test]
fn calls_that_ran_side_by_side_are_read_one_after_the_other() {
    let mut scene = Scene::started("both");
    scene.call("c1", None, "a", Gate::None);
    scene.call("c2", None, "b", Gate::None);
    scene.complete("c2", "second");
    scene.complete("c1", "first");
    scene.finish();
    let calls = |events: &[copilot::Event]| -> Vec<String> {
        let of_calls = events.iter().filter_map(|event| match &event.data {
            EventData::ToolStart(start) => Some(format!("{} starts", start.tool_call_id)),
            EventData::ToolComplete(complete) => Some(format!("{} ends", complete.tool_call_id)),
            _ => None,
        });
        of_calls.collect()
    };
    assert_eq!(calls(&scene.told), ["c1 starts", "c2 starts", "c2 ends", "c1 ends"]);
    assert_eq!(calls(&scene.read()), ["c1 starts", "c1 ends", "c2 starts", "c2 ends"]);
}

#[test]
fn a_text_waits_for_the_call_that_is_being_written_behind_it() {
    let mut scene = Scene::started("odd");
    scene.say("p1", &["before"]);
    let call = NewToolCall {
        id: "c1".into(),
        name: "bash".into(),
        display_name: "bash".into(),
        kind: None,
        language: None,
        client: None,
        extra: None,
    };
    scene.report(ChatEvent::ToolCallStarted { turn: "t1".into(), call });
    let input = ChatEvent::ToolCallInputDelta { turn: "t1".into(), call: "c1".into(), content: "{\"a\"".into() };
    scene.report(input);
    assert_eq!(scene.data("assistant.tool_call_delta")["inputDelta"], "{\"a\"");
    scene.say("p2", &["after"]);
    assert!(scene.told.iter().all(|event| event.kind() != "assistant.message"));
    // The call never came: the text is sent all the same, and the last message has the last text.
    scene.finish();
    let said = scene.told.iter().filter_map(|event| match &event.data {
        EventData::AssistantMessage(message) => Some(message.content.as_str()),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["before", "after"]);
    scene.must_read_as_told();
}

#[test]
fn an_event_is_found_again_by_its_id() {
    let mut scene = Scene::started("look");
    scene.say("p1", &["I look."]);
    scene.call("c1", None, "ls", Gate::None);
    scene.complete("c1", "a.txt");
    scene.finish();
    scene.send("t2", "more");
    let turns = || scene.session.main_chat().unwrap().turns.iter().cloned();
    let places: Vec<_> =
        scene.read().iter().map(|event| locate(&scene.session, turns(), &[], &event.id).unwrap()).collect();
    let place = |turn, position| EventPosition { turn, position };
    assert_eq!(
        places,
        [
            place(0, TurnPosition::SessionStart),
            place(0, TurnPosition::UserMessage),
            place(0, TurnPosition::UserMessage),
            place(0, TurnPosition::Part(1)),
            place(0, TurnPosition::Part(1)),
            place(0, TurnPosition::Part(1)),
            place(0, TurnPosition::End),
            place(1, TurnPosition::UserMessage),
            place(1, TurnPosition::UserMessage),
        ]
    );
}
