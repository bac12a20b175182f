//! Decoding of answers and prompts of the Copilot SDK's clients.

use grove_core::*;
use grove_wire::copilot::decode;
use grove_wire::copilot::methods::{Attachment, HandleToolCallParams, UserInputResponse};
use grove_wire::copilot::project;
use serde_json::{Value, json};

fn option(id: &str, allows: bool, lasting: bool) -> PermissionOption {
    PermissionOption { id: id.into(), label: id.into(), allows, lasting }
}

fn request(options: Vec<PermissionOption>) -> PermissionRequest {
    PermissionRequest {
        id: "r1".into(),
        kind: PermissionKind::Write,
        path: Some("/a".into()),
        full_command_text: None,
        intention: None,
        title: None,
        options,
        edits: vec![],
        editable: false,
    }
}

fn verdict(decision: Value, request: &PermissionRequest) -> Result<Verdict, String> {
    decode::verdict(serde_json::from_value(decision).unwrap(), request)
}

#[test]
fn every_kind_of_decision_is_a_yes_or_a_no() {
    let plain = request(vec![]);
    let rich = request(vec![
        option("always", true, true),
        option("once", true, false),
        option("never", false, true),
        option("no", false, false),
    ]);
    let yes = ["approve-once", "approved"];
    let lasting = [
        "approve-for-session",
        "approve-for-location",
        "approve-permanently",
        "approved-for-session",
        "approved-for-location",
    ];
    let no = [
        "reject",
        "user-not-available",
        "cancelled",
        "denied-by-rules",
        "denied-no-approval-rule-and-could-not-request-from-user",
        "denied-interactively-by-user",
        "denied-by-content-exclusion-policy",
        "denied-by-permission-request-hook",
    ];
    for (kinds, decision, chosen) in [
        (&yes[..], Decision::Approved, "once"),
        (&lasting[..], Decision::Approved, "always"),
        (&no[..], Decision::Denied, "no"),
    ] {
        for kind in kinds {
            // Further members of a decision may have any form.
            let said = json!({ "kind": kind, "approval": { "kind": "read" }, "rules": [1], "interrupt": true });
            let verdict = |request| self::verdict(said.clone(), request).unwrap();
            assert_eq!((verdict(&plain).decision, verdict(&plain).option), (decision, None), "{kind}");
            assert_eq!(verdict(&rich).option.as_deref(), Some(chosen), "{kind}");
            assert_eq!(verdict(&plain).skipped, *kind == "cancelled");
        }
    }
    let unknown = verdict(json!({ "kind": "approve-maybe" }), &plain).unwrap_err();
    assert!(unknown.contains("\"approve-maybe\""), "{unknown}");
}

#[test]
fn a_yes_that_is_not_meant_to_last_never_takes_a_lasting_option() {
    let always = request(vec![option("always", true, true)]);
    assert_eq!(verdict(json!({ "kind": "approve-once" }), &always).unwrap().option, None);
}

#[test]
fn what_a_person_says_to_a_no_is_kept() {
    let said = verdict(json!({ "kind": "reject", "feedback": "use ls" }), &request(vec![])).unwrap();
    assert_eq!(said.extra.unwrap()["reasonMessage"], "use ls");
}

#[test]
fn a_tools_result_is_a_text_an_object_or_an_error() {
    let result = |params: Value| {
        let params: HandleToolCallParams = serde_json::from_value(params).unwrap();
        let result = decode::tool_result("my_tool", params.result, params.error);
        (result.success, result.output.unwrap())
    };
    let call = |more: Value| {
        let mut params = json!({ "sessionId": "s", "requestId": "r" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        result(params)
    };
    assert_eq!(call(json!({ "result": "x=5" })), (true, "x=5".into()));
    assert_eq!(call(json!({ "result": { "textResultForLlm": "ok", "resultType": "success" } })), (true, "ok".into()));
    for kind in ["failure", "rejected", "denied", "error", "timeout"] {
        let failed = call(json!({ "result": { "textResultForLlm": "bad", "resultType": kind } }));
        assert_eq!(failed, (false, "bad".into()), "{kind}");
    }
    let without_text = json!({ "result": { "textResultForLlm": "", "resultType": "failure", "error": "why" } });
    assert_eq!(call(without_text), (false, "why".into()));
    assert_eq!(call(json!({ "result": { "contents": [{ "type": "text", "text": "seen" }] } })), (true, "seen".into()));
    assert_eq!(call(json!({ "error": "broke" })), (false, "broke".into()));
    assert_eq!(call(json!({ "result": [1, 2] })), (true, "[1,2]".into()));
    assert_eq!(call(json!({})), (true, String::new()));
}

#[test]
fn a_prompt_keeps_what_it_points_at_and_what_it_carries() {
    let attachments = json!([
        { "type": "file", "path": "/a b.rs", "displayName": "a b.rs", "lineRange": { "start": 1, "end": 2 } },
        { "type": "directory", "path": "/src", "displayName": "src" },
        { "type": "selection", "filePath": "/c.rs", "displayName": "c.rs", "text": "fn c()",
          "selection": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 6 } } },
        { "type": "blob", "data": "AAEC", "mimeType": "image/png", "displayName": "shot" },
        { "type": "github_url", "url": "https://github.com/a/b" },
    ]);
    let attachments: Vec<Attachment> = serde_json::from_value(attachments).unwrap();
    let message = decode::message("look".into(), attachments.clone());
    assert_eq!((message.text.as_str(), message.origin), ("look", MessageOrigin::User));
    let paths: Vec<_> = message.attachments.iter().map(|attachment| attachment.path.as_str()).collect();
    assert_eq!(paths, ["/a b.rs", "/src"]);
    let said = grove_wire::ahp::project::message(&message).attachments.unwrap();
    assert_eq!(said.len(), 5);
    let carried = grove_wire::ahp::embedded::embedded_content(&message, 0).unwrap();
    assert!(carried.iter().any(|carried| carried.bytes == [0, 1, 2]), "{carried:?}");
    let told = |text: &str| said.iter().any(|attachment| serde_json::to_string(attachment).unwrap().contains(text));
    assert!(told("fn c()") && told("https://github.com/a/b"));
    // If everything is modelled, nothing is kept twice.
    let plain = decode::message("look".into(), attachments[1..2].to_vec());
    assert_eq!((plain.attachments.len(), plain.extra), (1, None));
    // What core does not model is kept for readers, without the bytes.
    let extra = message.extra.unwrap();
    let kept = &extra["copilot"]["attachments"];
    assert_eq!(kept[0]["lineRange"], json!({ "start": 1, "end": 2 }));
    assert_eq!((kept[3]["displayName"].as_str(), kept[3].get("data")), (Some("shot"), None));
}

#[test]
fn a_question_is_answered_in_the_shape_of_its_kind() {
    let choice =
        |id: &str, label: &str| Choice { id: id.into(), label: label.into(), description: None, recommended: false };
    let options = vec![choice("r", "Red"), choice("b", "Blue")];
    let question = |kind| Question { id: "q".into(), title: None, message: "Which?".into(), required: true, kind };
    let answer = |kind: &QuestionKind, text: &str| {
        let response = UserInputResponse { answer: text.into(), was_freeform: Some(false) };
        match decode::answer(&question(kind.clone()), &response) {
            Ok(Answer::Submitted(value)) => Ok(value),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    let text = QuestionKind::Text { format: None, min: None, max: None, default: None };
    assert_eq!(answer(&text, " any "), Ok(AnswerValue::Text(" any ".into())));
    let number = QuestionKind::Number { whole: true, min: None, max: None, default: None };
    assert_eq!(answer(&number, "42"), Ok(AnswerValue::Number(42.into())));
    assert!(answer(&number, "many").is_err());
    let yes_or_no = QuestionKind::YesOrNo { default: None };
    assert_eq!(answer(&yes_or_no, "yes"), Ok(AnswerValue::YesOrNo(true)));
    assert!(answer(&yes_or_no, "perhaps").is_err());
    let one = QuestionKind::One { options: options.clone(), freeform: false };
    assert_eq!(answer(&one, "Blue"), Ok(AnswerValue::One { id: "b".into(), freeform: vec![] }));
    assert!(answer(&one, "Green").unwrap_err().contains("Red, Blue"));
    let open = QuestionKind::One { options: options.clone(), freeform: true };
    assert_eq!(answer(&open, "Green"), Ok(AnswerValue::One { id: String::new(), freeform: vec!["Green".into()] }));
    let several = QuestionKind::Several { options, freeform: false, min: None, max: None };
    let both = AnswerValue::Several { ids: vec!["b".into(), "r".into()], freeform: vec![] };
    assert_eq!(answer(&several, "Blue, Red"), Ok(both));

    let mut asked = InputRequest::ask("r1".into(), "ignored");
    asked.questions = vec![question(one)];
    asked.message = Some("A colour.".into());
    let shown = project::user_input(&"s1".into(), &asked, asked.questions.first());
    assert_eq!(shown.question, "A colour.\n\nWhich?");
    assert_eq!(shown.choices, Some(vec!["Red".to_owned(), "Blue".to_owned()]));
    assert_eq!(shown.allow_freeform, Some(false));
}
