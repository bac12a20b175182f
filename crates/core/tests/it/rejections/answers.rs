//! Refused answers: to permission requests, to questions, and of clients that run calls.

use super::*;

#[test]
fn a_permission_is_answered_once_and_only_where_it_was_asked() {
    let asked_about = || Scene::reported(asking("c1", "r1"));
    let answered = |decision| asked_about().after(resolve("r1", decision));
    let already = || Rejection::AlreadyAnswered("r1".into());
    let approve = |request| resolve(request, Decision::Approved);
    check(vec![
        client_wants(Scene::ready(), approve("r1"), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE),
        client_wants(
            asked_about(),
            approve("r9"),
            Rejection::UnknownRequest("r9".into()),
            "there is no open request r9",
        ),
        client_wants(answered(Decision::Approved), approve("r1"), already(), "r1 has been answered already"),
        client_wants(answered(Decision::Denied), approve("r1"), already(), "r1 has been answered already"),
        client_wants(
            asked_about().after(cancel(TURN)),
            approve("r1"),
            Rejection::TurnNotActive(TURN.into()),
            NOT_ACTIVE,
        ),
    ]);
}

#[test]
fn a_question_is_answered_once_and_only_while_its_turn_runs() {
    let questioned = || Scene::reported([asked("q1")]);
    let unknown = |request: &str| Rejection::UnknownRequest(request.into());
    check(vec![
        client_wants(Scene::ready(), decline("q1"), unknown("q1"), "there is no open request q1"),
        client_wants(questioned(), decline("q9"), unknown("q9"), "there is no open request q9"),
        client_wants(
            questioned().after(decline("q1")),
            decline("q1"),
            Rejection::AlreadyAnswered("q1".into()),
            "q1 has been answered already",
        ),
        client_wants(questioned().after(cancel(TURN)), decline("q1"), unknown("q1"), "there is no open request q1"),
        client_wants(Scene::reported(asking("c1", "r1")), decline("r1"), unknown("r1"), "there is no open request r1"),
    ]);
}

#[test]
fn a_client_runs_only_its_own_calls_and_only_while_they_run() {
    let mine = || Scene::reported(handed_to("client", "c1"));
    let theirs = || Scene::reported(handed_to("other", "c1"));
    let agents = || Scene::reported(running("c1"));
    let asked_about = || mine().after_report(gated("c1", "r1"));
    let done = || mine().after(complete("c1", false));
    let held = || mine().after(complete("c1", true));
    let givens = [
        (Scene::in_turn(), "is unknown", "tool call c1 is unknown"),
        (theirs(), "belongs to another client", "tool call c1 belongs to another client"),
        (agents(), "is run by the agent", "tool call c1 is run by the agent"),
        (asked_about(), "is not running", "tool call c1 is not running"),
        (done(), "is not running", "tool call c1 is not running"),
        (held(), "is not running", "tool call c1 is not running"),
    ];
    for (given, problem, says) in givens {
        let wants = |command| client_wants(given.clone(), command, tool_call("c1", problem), says);
        check([complete("c1", false), complete("c1", true), report_output("c1", "half")].map(wants).into());
    }
    let over = || mine().after(cancel(TURN));
    let not_active = || Rejection::TurnNotActive(TURN.into());
    check(vec![
        client_wants(over(), complete("c1", false), not_active(), NOT_ACTIVE),
        client_wants(over(), report_output("c1", "half"), not_active(), NOT_ACTIVE),
    ]);
}

#[test]
fn a_result_is_confirmed_only_while_it_waits() {
    let held = || Scene::reported(running("c1")).after_report(result_gated("c1"));
    let confirm = || confirm_result("c1", Decision::Approved);
    let no_result = || tool_call("c1", "has no pending result");
    let says = "tool call c1 has no pending result";
    check(vec![
        client_wants(Scene::in_turn(), confirm(), no_result(), says),
        client_wants(Scene::reported(running("c1")), confirm(), no_result(), says),
        client_wants(Scene::reported(asking("c1", "r1")), confirm(), no_result(), says),
        client_wants(held().after(confirm()), confirm(), no_result(), says),
        client_wants(held().after(cancel(TURN)), confirm(), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE),
    ]);
}

#[test]
fn a_verdict_takes_an_option_that_fits_it_and_edits_only_what_may_be_edited() {
    let with_options = || Scene::reported(asking_with_options("c1", "r1"));
    let plain = || Scene::reported(asking("c1", "r1"));
    let choose = |decision: Decision, option: &str| {
        resolve_with("r1", Verdict { option: Some(option.into()), ..decision.into() })
    };
    let unknown = |option: &str| Rejection::UnknownOption(option.into());
    let edited = Verdict { edited_input: Some("rm".into()), ..Decision::Approved.into() };
    check(vec![
        client_wants(
            with_options(),
            choose(Decision::Approved, "never"),
            unknown("never"),
            "never is none of the options",
        ),
        client_wants(
            with_options(),
            choose(Decision::Denied, "always"),
            unknown("always"),
            "always is none of the options",
        ),
        client_wants(
            with_options(),
            choose(Decision::Approved, "maybe"),
            unknown("maybe"),
            "maybe is none of the options",
        ),
        client_wants(plain(), choose(Decision::Approved, "always"), unknown("always"), "always is none of the options"),
        client_wants(
            plain(),
            resolve_with("r1", edited),
            tool_call("c1", "does not accept an edited input"),
            "tool call c1 does not accept an edited input",
        ),
    ]);
}

#[test]
fn a_permission_named_by_its_call_is_answered_only_while_that_call_waits() {
    let approve = |call| resolve_about(call, Decision::Approved);
    let waits_not = || tool_call("c1", "does not wait for an answer");
    let says = "tool call c1 does not wait for an answer";
    let answered = Scene::reported(asking("c1", "r1")).after(approve("c1"));
    let held = Scene::reported(running("c1")).after_report(result_gated("c1"));
    check(vec![
        client_wants(Scene::in_turn(), approve("c9"), tool_call("c9", "is unknown"), "tool call c9 is unknown"),
        client_wants(Scene::reported(running("c1")), approve("c1"), waits_not(), says),
        client_wants(answered, approve("c1"), waits_not(), says),
        client_wants(held, approve("c1"), waits_not(), says),
    ]);
}

#[test]
fn an_answer_belongs_to_a_question_and_what_is_required_is_answered() {
    let questioned = || Scene::reported([asked("q1")]);
    let accept = |answers| answer("q1", InputOutcome::Accepted, answers);
    let stray = || Answers::from([("other".into(), Answer::text("this"))]);
    let unknown = || Rejection::UnknownQuestion("other".into());
    let no_question = "there is no question other in this request";
    let unanswered = || Rejection::Unanswered(QUESTION.into());
    let answer_first = "question answer must be answered first";
    let skipped = Answer::Skipped { freeform: vec![] };
    let answer_error = || Answers::from([(QUESTION.into(), Answer::Submitted(AnswerValue::YesOrNo(true)))]);
    let of_another_kind = || {
        let why = "has the wrong type: a text is required".to_owned();
        Rejection::InvalidAnswer { question: QUESTION.into(), why }
    };
    let does_not_fit = "the answer to question answer does not fit: it has the wrong type: a text is required";
    let submitted = || Some(Answer::Submitted(AnswerValue::YesOrNo(true)));
    check(vec![
        client_wants(questioned(), accept(answer_error()), of_another_kind(), does_not_fit),
        client_wants(questioned(), draft_answer("q1", QUESTION, submitted()), of_another_kind(), does_not_fit),
        client_wants(questioned(), accept(stray()), unknown(), no_question),
        client_wants(questioned(), answer("q1", InputOutcome::Declined, stray()), unknown(), no_question),
        client_wants(questioned(), draft_answer("q1", "other", Some(draft("th"))), unknown(), no_question),
        client_wants(questioned(), accept(Answers::new()), unanswered(), answer_first),
        client_wants(questioned(), accept(answers(draft("th"))), unanswered(), answer_first),
        client_wants(questioned(), accept(answers(skipped)), unanswered(), answer_first),
        client_wants(
            questioned().after(draft_answer("q1", QUESTION, Some(draft("th")))),
            accept(Answers::new()),
            unanswered(),
            answer_first,
        ),
        client_wants(
            questioned().after(draft_answer("q1", QUESTION, Some(Answer::text("this")))),
            accept(answers(draft("no, th"))),
            unanswered(),
            answer_first,
        ),
        client_wants(
            questioned().after(decline("q1")),
            draft_answer("q1", QUESTION, None),
            Rejection::AlreadyAnswered("q1".into()),
            "q1 has been answered already",
        ),
        client_wants(
            Scene::in_turn(),
            draft_answer("q1", QUESTION, None),
            Rejection::UnknownRequest("q1".into()),
            "there is no open request q1",
        ),
    ]);
}
