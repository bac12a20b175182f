//! Turns in the Agent Host Protocol: streaming, tools and their permissions, questions, queued messages.

use grove_testkit::ahp::{Client, markdown, message};
use grove_wire::ahp::{
    ChatState, Method, ResponsePart, SessionInputRequest, ToolCallCancellationReason, ToolCallConfirmationReason,
    ToolCallState, ToolInput, Turn, TurnState, status,
};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::run::BackgroundCommand;
use crate::support::*;

fn call_of(turn: &Turn) -> &ToolCallState {
    let mut calls = turn.response_parts.iter().filter_map(|part| match part {
        ResponsePart::ToolCall(part) => Some(&part.tool_call),
        _ => None,
    });
    calls.next_back().unwrap()
}

fn confirmed(approved: bool, more: Value) -> Value {
    let mut action =
        json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "t-call-0", "approved": approved});
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

/// The call that waits for a person, once its request is complete.
async fn waits(client: &mut Client) -> ToolCallState {
    let asked = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(call) if call.confirmation_title.is_some());
    client.call_that(CHAT, asked).await
}

#[tokio::test]
async fn a_turn_streams_its_parts_in_their_order() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let script = json!([
        {"reason": "hm"}, {"say": "one two three", "chunks": 3}, {"tool": {"name": "ls", "input": "-a", "output": "x y"}},
        {"say": "done"}, {"usage": {"inputTokens": 3, "outputTokens": 5}},
    ]);
    let turn = client.run_script(CHAT, "t", script).await;
    let kinds: Vec<Value> =
        turn.response_parts.iter().map(|part| serde_json::to_value(part).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds, ["reasoning", "markdown", "toolCall", "markdown"]);
    assert_eq!(markdown(&turn.response_parts), "one two threedone");
    assert_eq!((turn.state, turn.started_at.as_deref()), (TurnState::Complete, Some("2026-10-10T10:00:00.000Z")));
    let usage = turn.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(3), Some(5)));
    assert!(turn.duration.unwrap() >= 0);
    match call_of(&turn) {
        ToolCallState::Completed(call) => {
            assert!(call.result.success);
            assert_eq!(call.confirmed, ToolCallConfirmationReason::NotNeeded, "nobody had to be asked");
            assert_eq!(call.parameters.tool_input, Some(ToolInput::Inline("-a".into())));
            assert_eq!(serde_json::to_value(&call.result.content).unwrap(), json!([{"type": "text", "text": "x y"}]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        client.kinds(CHAT),
        [
            "chat/turnStarted",
            "chat/responsePart",
            "chat/reasoning",
            "chat/responsePart",
            "chat/delta",
            "chat/delta",
            "chat/delta",
            "chat/toolCallStart",
            "chat/toolCallReady",
            "chat/toolCallComplete",
            "chat/responsePart",
            "chat/delta",
            "chat/usage",
            "chat/turnComplete",
        ]
    );
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_turn_ends_in_error_or_by_cancelling_with_what_it_had() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let turn = client.run_script(CHAT, "t", json!([{"say": "so far"}, {"fail": "on purpose"}])).await;
    assert_eq!((turn.state, markdown(&turn.response_parts).as_str()), (TurnState::Error, "so far"));
    assert!(
        matches!(turn.response_parts.last(), Some(ResponsePart::Error(part)) if part.error.message.contains("on purpose"))
    );
    client.until(|client| client.session(S).chats[0].status & status::ACTIVITY == status::ERROR).await;
    client.must_agree_on_all().await;

    let hanging = json!([{"say": "again"}, {"tool": {"name": "sh", "permission": "shell"}}]);
    client.script(CHAT, "u", hanging).await;
    waits(&mut client).await;
    assert_eq!(client.chat(CHAT).status & status::ACTIVITY, status::INPUT_NEEDED);
    let seq = client.dispatch(CHAT, json!({"type": "chat/turnCancelled", "turnId": "u", "duration": 5})).await;
    assert_eq!(client.answer_to(seq).await.rejection_reason, None);
    let turn = client.turn_end(CHAT, "u").await;
    assert_eq!((turn.state, markdown(&turn.response_parts).as_str()), (TurnState::Cancelled, "again"));
    assert!(
        matches!(call_of(&turn), ToolCallState::Cancelled(call) if call.reason == ToolCallCancellationReason::Skipped)
    );
    client.until(|client| client.session(S).input_needed.is_none()).await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn how_long_a_call_ran_is_told_with_its_end_and_by_every_later_host() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let tool = json!({"name": "sh", "input": "make", "output": "made", "permission": "shell"});
    client.script(CHAT, "t", json!([{"tool": tool}])).await;
    waits(&mut client).await;
    client.dispatch(CHAT, confirmed(true, json!({}))).await;
    client.turn_end(CHAT, "t").await;
    let call = |client: &Client| {
        let turn = serde_json::to_value(&client.chat(CHAT).turns[0]).unwrap();
        turn["responseParts"].as_array().unwrap().iter().find(|part| part["kind"] == "toolCall").unwrap()["toolCall"]
            .clone()
    };
    let told = call(&client)["_meta"].clone();
    assert!(told["ranMs"].is_u64() && told["toolKind"] == "terminal", "{told}");
    client.must_agree_on_all().await;
    // A later client cannot have measured it.
    let host = host.stop().serve(&[]);
    let mut later = host.ahp_connect("later").await;
    later.initialize(&[CHAT]).await;
    assert_eq!(call(&later)["_meta"], told);
    let shown = host.place.run(&["show", "s", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let parts = shown["turns"][0]["parts"].as_array().unwrap();
    let shown = parts.iter().find_map(|part| part.get("toolCall")).unwrap();
    assert_eq!(shown["ranMs"], told["ranMs"], "{shown}");
    let mut beside = BackgroundCommand::start(&host.place, &["attach", "s"]);
    let words = beside.until("Ran sh");
    assert!(words.contains(" ms)") || words.contains(" s)"), "{words}");
    assert_eq!(host.place.run(&["rm", "--yes", "s"]).code, Some(0));
    beside.until("was removed");
    assert_eq!(beside.end().0, Some(0));
}

#[tokio::test]
async fn a_permission_is_asked_with_its_options_and_given_with_one_and_another_input() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let tool = json!({
        "name": "sh", "input": "rm x", "output": "gone", "permission": "shell", "editable": true,
        "options": [
            {"id": "once", "label": "Once", "allows": true}, {"id": "never", "label": "Never", "allows": false},
        ],
    });
    client.script(CHAT, "t", json!([{"tool": tool}])).await;
    let asked = serde_json::to_value(waits(&mut client).await).unwrap();
    assert_eq!(
        (&asked["editable"], &asked["toolInput"], &asked["intention"]),
        (&json!(true), &json!("rm x"), &json!("Run sh"))
    );
    let option = |id: &str, label: &str, kind: &str| json!({"id": id, "label": label, "kind": kind});
    assert_eq!(asked["options"], json!([option("once", "Once", "approve"), option("never", "Never", "deny")]));
    assert_eq!(
        (&asked["confirmationTitle"], &asked["invocationMessage"]),
        (&json!("Run this command?"), &json!("Running sh"))
    );

    for (action, why) in [
        (confirmed(true, json!({"selectedOptionId": "never"})), "option"),
        (confirmed(false, json!({"selectedOptionId": "once"})), "option"),
        (confirmed(true, json!({"selectedOptionId": "other"})), "option"),
        (confirmed(true, json!({"confirmed": "because"})), "because"),
    ] {
        let reason = client.rejected(CHAT, action).await;
        assert!(reason.contains(why), "{reason}");
    }
    let yes = json!({"confirmed": "user-action", "selectedOptionId": "once", "editedToolInput": "rm y"});
    client.dispatch(CHAT, confirmed(true, yes)).await;
    let turn = client.turn_end(CHAT, "t").await;
    match call_of(&turn) {
        ToolCallState::Completed(call) => {
            assert_eq!(call.confirmed, ToolCallConfirmationReason::UserAction);
            assert_eq!(call.selected_option.as_ref().unwrap().id, "once");
            assert_eq!(call.parameters.tool_input, Some(ToolInput::Inline("rm y".into())));
        }
        other => panic!("{other:?}"),
    }
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_permission_that_is_denied_or_skipped_says_why() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    for (reason, wanted) in
        [("denied", ToolCallCancellationReason::Denied), ("skipped", ToolCallCancellationReason::Skipped)]
    {
        let turn = format!("t-{reason}");
        client.script(CHAT, &turn, json!([{"tool": {"name": "sh", "permission": "write", "input": "/x"}}])).await;
        waits(&mut client).await;
        client
            .dispatch(
                CHAT,
                json!({
                    "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": format!("{turn}-call-0"),
                    "approved": false, "reason": reason, "reasonMessage": {"markdown": "*no*"},
                    "userSuggestion": message("do it otherwise"),
                }),
            )
            .await;
        let turn = client.turn_end(CHAT, &turn).await;
        match call_of(&turn) {
            ToolCallState::Cancelled(call) => {
                assert_eq!(call.reason, wanted);
                let said = serde_json::to_value(call).unwrap();
                assert_eq!(said["reasonMessage"], json!({"markdown": "*no*"}));
                assert_eq!(said["userSuggestion"]["text"], "do it otherwise");
            }
            other => panic!("{other:?}"),
        }
        client.must_agree_on_all().await;
    }
    // A chat's title is sent on the session's channel.
    let title = client.session(S).chats[0].title.clone();
    assert!(title.starts_with("script:["), "{title}");
    let seen = ChatState { title, ..client.chat(CHAT).clone() };
    let host = host.stop().serve(&[]);
    let mut client = host.ahp_subscriber("b").await;
    assert_eq!(*client.chat(CHAT), seen, "what a person said is there after a restart");
    client.must_agree_on_all().await;
}

async fn set_tools(client: &mut Client, tools: &[&str]) {
    let id = client.client_id.clone();
    client.dispatch(S, json!({"type": "session/activeClientSet", "activeClient": active_client(&id, tools)})).await;
    client.until(|client| client.session(S).active_clients.iter().any(|active| active.client_id == id)).await;
}

fn complete(more: Value) -> Value {
    let result = json!({
        "success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "a tree"}],
        "structuredContent": {"trees": 1},
    });
    let mut action =
        json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "t-call-0", "result": result});
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

#[tokio::test]
async fn a_client_runs_the_tools_that_it_offers_and_nobody_else_does() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_subscriber("b").await;
    set_tools(&mut client, &["look"]).await;
    other.script(CHAT, "t", json!([{"clientTool": {"name": "look", "input": {"at": "x"}}}])).await;
    client.call_that(CHAT, |call| matches!(call, ToolCallState::Running(_))).await;
    client.until(|client| client.session(S).input_needed.is_some()).await;
    match &client.session(S).input_needed.as_ref().unwrap()[..] {
        [SessionInputRequest::ToolClientExecution(request)] => assert_eq!(request.client_id, "a"),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.chat(CHAT).status & status::ACTIVITY, status::IN_PROGRESS, "no person is asked");
    let output = json!({
        "type": "chat/toolCallContentChanged", "turnId": "t", "toolCallId": "t-call-0",
        "content": [{"type": "text", "text": "looking"}],
    });
    for action in [complete(json!({})), output.clone()] {
        let reason = other.rejected(CHAT, action).await;
        assert!(reason.contains("another client"), "{reason}");
    }
    let reason = other.rejected(S, json!({"type": "session/activeClientRemoved", "clientId": "a"})).await;
    assert!(reason.contains("host"), "{reason}");
    client.dispatch(CHAT, output).await;
    other.call_that(CHAT, |call| matches!(call, ToolCallState::Running(call) if call.content.is_some())).await;
    other.barrier().await;
    other.must_agree_on_all().await;
    client.dispatch(CHAT, complete(json!({}))).await;
    let turn = other.turn_end(CHAT, "t").await;
    assert_eq!(markdown(&turn.response_parts), "look gave: a tree\n");
    let result = serde_json::to_value(call_of(&turn)).unwrap();
    assert_eq!((&result["structuredContent"], &result["contributor"]["clientId"]), (&json!({"trees": 1}), &json!("a")));
    client.turn_end(CHAT, "t").await;
    client.dispatch(S, json!({"type": "session/activeClientRemoved", "clientId": "a"})).await;
    client.until(|client| client.session(S).active_clients.is_empty()).await;
    client.must_agree_on_all().await;
    let turn = client.run_script(CHAT, "u", json!([{"clientTool": {"name": "look"}}])).await;
    assert_eq!(turn.state, TurnState::Error, "nobody offers it any more");
}

#[tokio::test]
async fn a_result_that_is_to_be_confirmed_waits_for_a_person() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    set_tools(&mut client, &["look"]).await;
    for approved in [true, false] {
        let turn = format!("t-{approved}");
        client.script(CHAT, &turn, json!([{"clientTool": {"name": "look"}}])).await;
        client.call_that(CHAT, |call| matches!(call, ToolCallState::Running(_))).await;
        let call = format!("{turn}-call-0");
        let done = complete(json!({"turnId": turn, "toolCallId": call, "requiresResultConfirmation": true}));
        client.dispatch(CHAT, done.clone()).await;
        client.call_that(CHAT, |call| matches!(call, ToolCallState::PendingResultConfirmation(_))).await;
        client.until(|client| client.session(S).chats[0].status & status::ACTIVITY == status::INPUT_NEEDED).await;
        assert!(client.rejected(CHAT, done).await.contains("not running"));
        client.must_agree_on_all().await;
        let confirm = json!({
            "type": "chat/toolCallResultConfirmed", "turnId": turn, "toolCallId": call, "approved": approved,
        });
        client.dispatch(CHAT, confirm).await;
        let turn = client.turn_end(CHAT, &turn).await;
        match (approved, call_of(&turn)) {
            (true, ToolCallState::Completed(_)) => assert_eq!(markdown(&turn.response_parts), "look gave: a tree\n"),
            (false, ToolCallState::Cancelled(call)) => {
                assert_eq!(call.reason, ToolCallCancellationReason::ResultDenied);
                assert_eq!(markdown(&turn.response_parts), "look gave: \n");
            }
            (_, other) => panic!("{other:?}"),
        }
        client.must_agree_on_all().await;
    }
}

fn questions() -> Value {
    let question = |id: &str, required: bool, kind: Value| json!({"id": id, "title": id, "message": format!("{id}?"), "required": required, "kind": kind});
    let options = json!([
        {"id": "a", "label": "A", "description": "first", "recommended": true},
        {"id": "b", "label": "B", "recommended": false},
    ]);
    json!({"message": "Some questions", "questions": [
        question("text", true, json!({"text": {"min": 1, "max": 9, "default": "d"}})),
        question("number", false, json!({"number": {"whole": false, "min": 0.5, "max": 9}})),
        question("integer", true, json!({"number": {"whole": true, "default": 3}})),
        question("boolean", false, json!({"yesOrNo": {"default": true}})),
        question("one", true, json!({"one": {"options": options, "freeform": false}})),
        question("several", false, json!({"several": {"options": options, "freeform": true, "min": 1}})),
    ]})
}

#[tokio::test]
async fn questions_of_every_kind_are_asked_drafted_and_answered() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_subscriber("b").await;
    client.script(CHAT, "t", json!([{"ask": questions()}, {"say": "thanks"}])).await;
    other.until(|client| client.session(S).input_needed.is_some()).await;
    let needed = serde_json::to_value(other.session(S).input_needed.as_ref().unwrap()).unwrap();
    let kinds: Vec<_> =
        needed[0]["request"]["questions"].as_array().unwrap().iter().map(|question| question["kind"].clone()).collect();
    assert_eq!(kinds, ["text", "number", "integer", "boolean", "single-select", "multi-select"]);
    assert_eq!(needed[0]["request"]["message"], "Some questions");

    let request = "t-ask-0";
    let submitted = |value: Value| json!({"state": "submitted", "value": value});
    let answers = [
        ("text", submitted(json!({"kind": "text", "value": "word"}))),
        ("number", submitted(json!({"kind": "number", "value": 1.5}))),
        ("integer", submitted(json!({"kind": "number", "value": 7}))),
        ("boolean", submitted(json!({"kind": "boolean", "value": false}))),
        ("one", submitted(json!({"kind": "selected", "value": "b"}))),
        ("several", submitted(json!({"kind": "selected-many", "value": ["a", "b"], "freeformValues": ["c"]}))),
    ];
    let draft = |question: &str, answer: Value| {
        json!({
            "type": "chat/inputAnswerChanged", "requestId": request, "questionId": question, "answer": answer,
        })
    };
    client.dispatch(CHAT, draft("text", json!({"state": "draft", "value": {"kind": "text", "value": "wo"}}))).await;
    for (question, answer) in &answers[1..] {
        client.dispatch(CHAT, draft(question, answer.clone())).await;
    }
    client
        .dispatch(CHAT, json!({"type": "chat/inputAnswerChanged", "requestId": request, "questionId": "number"}))
        .await;
    let skipped = json!({"state": "skipped", "freeformValues": ["no idea"]});
    let seq = client.dispatch(CHAT, draft("boolean", skipped.clone())).await;
    client.answer_to(seq).await;
    let drafted = |client: &Client| {
        let parts = &client.active(CHAT).response_parts;
        parts.iter().find_map(|part| match part {
            ResponsePart::InputRequest(part) => part.request.answers.clone(),
            _ => None,
        })
    };
    other.until(|other| drafted(other).is_some_and(|answers| answers.len() == 5)).await;
    other.barrier().await;
    assert_eq!(serde_json::to_value(drafted(&other).unwrap()["boolean"].clone()).unwrap(), skipped);
    other.must_agree_on_all().await;

    let done = |answers: Value, response: &str| json!({"type": "chat/inputCompleted", "requestId": request, "response": response, "answers": answers});
    let reason = client.rejected(CHAT, done(json!({}), "accept")).await;
    assert!(reason.contains("text must be answered"), "a draft is no answer: {reason}");
    let reason = client.rejected(CHAT, done(json!({"else": answers[0].1}), "accept")).await;
    assert!(reason.contains("else"), "{reason}");
    let reason = other.rejected(CHAT, draft("else", answers[0].1.clone())).await;
    assert!(reason.contains("else"), "{reason}");
    other.dispatch(CHAT, done(json!({"text": answers[0].1}), "accept")).await;
    let turn = client.turn_end(CHAT, "t").await;
    let part = serde_json::to_value(&turn.response_parts[0]).unwrap();
    assert_eq!(part["response"], "accept");
    assert_eq!(part["request"]["answers"]["text"], answers[0].1);
    assert_eq!(part["request"]["answers"]["several"], answers[5].1);
    client.must_agree_on_all().await;
    let again = client.rejected(CHAT, done(json!({}), "decline")).await;
    assert!(again.contains(request), "{again}");
}

#[tokio::test]
async fn a_question_may_be_declined_or_cancelled_without_answers() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    for response in ["decline", "cancel"] {
        client.script(CHAT, response, json!([{"ask": "really?"}])).await;
        client.until(|client| client.session(S).input_needed.is_some()).await;
        let request = format!("{response}-ask-0");
        client.dispatch(CHAT, json!({"type": "chat/inputCompleted", "requestId": request, "response": response})).await;
        let turn = client.turn_end(CHAT, response).await;
        assert_eq!(serde_json::to_value(&turn.response_parts[0]).unwrap()["response"], response);
        client.must_agree_on_all().await;
    }
}

#[tokio::test]
async fn what_a_session_needs_is_answered_by_a_client_that_is_not_subscribed_to_the_chat() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_connect("b").await;
    other.initialize(&[S]).await;
    client.script(CHAT, "t", json!([{"tool": {"name": "sh", "permission": "shell"}}, {"ask": "really?"}])).await;
    other.until(|other| other.session(S).input_needed.is_some()).await;
    let needed = serde_json::to_value(other.session(S).input_needed.as_ref().unwrap()).unwrap();
    let (chat, call) = (needed[0]["chat"].as_str().unwrap(), &needed[0]["toolCall"]);
    assert_eq!(
        (needed[0]["kind"].as_str(), call["status"].as_str()),
        (Some("toolConfirmation"), Some("pending-confirmation"))
    );
    other
        .dispatch(
            chat,
            json!({
                "type": "chat/toolCallConfirmed", "turnId": needed[0]["turnId"], "toolCallId": call["toolCallId"],
                "approved": true, "confirmed": "user-action",
            }),
        )
        .await;
    let asks = |other: &Client| {
        let needed = other.session(S).input_needed.as_deref().unwrap_or_default();
        matches!(needed, [SessionInputRequest::ChatInput(_)])
    };
    other.until(asks).await;
    other.dispatch(chat, json!({"type": "chat/inputCompleted", "requestId": "t-ask-1", "response": "decline"})).await;
    client.turn_end(CHAT, "t").await;
    other.until(|other| other.session(S).input_needed.is_none()).await;
    other.must_agree(S).await;
}

fn pending(kind: &str, id: &str, steps: Value) -> Value {
    json!({
        "type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message(&format!("script:{steps}")),
    })
}

fn queued_ids(client: &Client) -> Vec<&str> {
    client.chat(CHAT).queued_messages.iter().flatten().map(|message| message.id.as_str()).collect()
}

#[tokio::test]
async fn queued_messages_become_turns_in_their_order_and_may_be_changed_until_then() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.script(CHAT, "t", json!([{"ask": "go on?"}])).await;
    for (id, text) in [("z", "first"), ("a", "second"), ("c", "third"), ("d", "fourth")] {
        client.dispatch(CHAT, pending("queued", id, json!([{"say": text}]))).await;
    }
    client.dispatch(CHAT, pending("queued", "a", json!([{"say": "changed"}]))).await;
    client.dispatch(CHAT, json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "d"})).await;
    let seq = client.dispatch(CHAT, json!({"type": "chat/queuedMessagesReordered", "order": ["c"]})).await;
    client.answer_to(seq).await;
    assert_eq!(queued_ids(&client), ["c", "z", "a"], "those that are not named stay as they were among themselves");
    client.must_agree_on_all().await;
    let unknown = json!({"type": "chat/queuedMessagesReordered", "order": ["c", "d"]});
    assert!(client.rejected(CHAT, unknown).await.contains('d'));
    for kind in ["queued", "steering"] {
        let gone = json!({"type": "chat/pendingMessageRemoved", "kind": kind, "id": "d"});
        assert!(client.rejected(CHAT, gone).await.contains('d'));
    }
    client.dispatch(CHAT, json!({"type": "chat/inputCompleted", "requestId": "t-ask-0", "response": "decline"})).await;
    let last = client.turn_end(CHAT, "a").await;
    assert_eq!(markdown(&last.response_parts), "changed");
    let turns: Vec<&str> = client.chat(CHAT).turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(turns, ["t", "c", "z", "a"]);
    let kinds = client.kinds(CHAT);
    let ended = kinds.iter().position(|kind| *kind == "chat/turnComplete").unwrap();
    assert_eq!(kinds[ended + 1..ended + 3], ["chat/pendingMessageRemoved", "chat/turnStarted"]);
    client.barrier().await;
    client.must_agree_on_all().await;
    // If nothing runs, a queued message starts at once.
    client.dispatch(CHAT, pending("queued", "now", json!([{"say": "at once"}]))).await;
    client.turn_end(CHAT, "now").await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_message_steers_the_running_turn() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.script(CHAT, "t", json!([{"ask": "go on?"}, {"say": "end"}])).await;
    client.until(|client| client.session(S).input_needed.is_some()).await;
    let steer = json!({"type": "chat/pendingMessageSet", "kind": "steering", "id": "m", "message": message("faster")});
    client.dispatch(CHAT, steer).await;
    client.until(|client| client.kinds(CHAT).contains(&"chat/pendingMessageRemoved")).await;
    assert_eq!(client.chat(CHAT).steering_message, None, "the agent has taken it");
    client.dispatch(CHAT, json!({"type": "chat/inputCompleted", "requestId": "t-ask-0", "response": "decline"})).await;
    let turn = client.turn_end(CHAT, "t").await;
    assert_eq!(markdown(&turn.response_parts), "You say: faster\nend");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn queued_messages_and_drafts_wait_for_the_hosts_return() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.script(CHAT, "t", json!([{"hang": true}])).await;
    client.dispatch(CHAT, pending("queued", "q1", json!([{"say": "after all"}]))).await;
    client.dispatch(CHAT, pending("queued", "q2", json!([{"say": "and this"}]))).await;
    let draft = json!({"text": "half a", "origin": {"kind": "user"}, "_meta": {"caret": 6}});
    let seq = client.dispatch(CHAT, json!({"type": "chat/draftChanged", "draft": draft})).await;
    client.answer_to(seq).await;
    assert_eq!(serde_json::to_value(&client.chat(CHAT).draft).unwrap(), draft);
    let host = host.stop().serve(&[]);
    assert_eq!(host.ahp_reconnect(&mut client).await, grove_testkit::ahp::ReconnectOutcome::Replay { missing: vec![] });
    let last = client.turn_end(CHAT, "q2").await;
    assert_eq!(markdown(&last.response_parts), "and this");
    let turns: Vec<_> = client.chat(CHAT).turns.iter().map(|turn| (turn.id.as_str(), turn.state)).collect();
    assert_eq!(turns, [("t", TurnState::Error), ("q1", TurnState::Complete), ("q2", TurnState::Complete)]);
    assert_eq!(serde_json::to_value(&client.chat(CHAT).draft).unwrap(), draft);
    client.barrier().await;
    client.must_agree_on_all().await;
    let seq = client.dispatch(CHAT, json!({"type": "chat/draftChanged"})).await;
    client.answer_to(seq).await;
    assert_eq!(client.chat(CHAT).draft, None);
}

#[tokio::test]
async fn older_turns_come_by_cursors_to_whoever_asks() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    for n in 0..7 {
        client.run_script(CHAT, &format!("t{n}"), json!([{"say": n.to_string()}])).await;
    }
    let whole: Vec<Turn> = client.chat(CHAT).turns.clone();
    client.barrier().await;
    let mut other = host.ahp("b").await;
    for turns in [3, 1, 0, 7, 100] {
        other.subscribe_with(json!({"channel": CHAT, "view": {"turns": turns}})).await.unwrap();
        assert_eq!(other.chat(CHAT).turns, whole[whole.len().saturating_sub(turns)..]);
        assert_eq!(other.chat(CHAT).turns_next_cursor.is_some(), turns < 7);
        while let Some(cursor) = other.chat(CHAT).turns_next_cursor.clone() {
            let told = client.envelopes.len();
            other.get(Method::FetchTurns, json!({"channel": CHAT, "cursor": cursor})).await;
            client.barrier().await;
            assert_eq!(client.envelopes.len(), told, "nobody else hears of it");
        }
        assert_eq!(other.chat(CHAT).turns, whole);
        other.must_agree(CHAT).await;
    }
    let error = other.refused(Method::FetchTurns, json!({"channel": CHAT, "cursor": "none-such"})).await;
    assert_eq!(error.code, -32602);
    other.get(Method::FetchTurns, json!({"channel": CHAT})).await;
    for channel in [S, "ahp-chat:/none"] {
        assert_eq!(other.refused(Method::FetchTurns, json!({"channel": channel, "cursor": "t3"})).await.code, -32008);
    }
}

#[tokio::test]
async fn older_turns_come_from_the_log_where_they_are_not_held() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let long = "x".repeat(200_000);
    for n in 0..60 {
        client.run_script(CHAT, &format!("t{n}"), json!([{"say": format!("{n} {long}")}])).await;
    }
    let whole: Vec<Turn> = client.chat(CHAT).turns.clone();
    let host = host.stop().serve(&[]);
    let mut client = host.ahp_subscriber("b").await;
    let held = client.chat(CHAT).turns.len();
    assert!(held < whole.len(), "not all are in a snapshot: {held}");
    let mut fetched = 0;
    while let Some(cursor) = client.chat(CHAT).turns_next_cursor.clone() {
        client.get(Method::FetchTurns, json!({"channel": CHAT, "cursor": cursor})).await;
        fetched += 1;
    }
    assert!(fetched > 0);
    assert!(client.chat(CHAT).turns == whole, "all of them, in their order");
    client.run_script(CHAT, "u", json!([{"say": "goes on"}])).await;
    client.must_agree_on_all().await;
}
