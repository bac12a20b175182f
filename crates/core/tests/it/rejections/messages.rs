//! Refused messages, models and turns.

use super::*;

#[test]
fn a_turn_starts_only_in_a_usable_idle_chat_under_a_new_id_with_a_known_model() {
    let finished = Scene::reported([ended()]);
    check(vec![
        client_wants(Scene::failed(), start(TURN), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), start("t2"), Rejection::TurnInProgress(TURN.into()), IN_PROGRESS),
        client_wants(
            finished,
            start(TURN),
            Rejection::DuplicateTurn(TURN.into()),
            "turn t1 exists already: choose another id",
        ),
        client_wants(Scene::ready(), start(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(Scene::ready(), start_with(of_agent()), Rejection::OnlyUserMessages, ONLY_USER),
        client_wants(Scene::ready(), start_with(with_model("huge")), unknown_model(), UNKNOWN_MODEL),
    ]);
}

#[test]
fn a_message_has_a_text_or_an_attachment() {
    const EMPTY: &str = "the message is empty: write a text or attach something";
    let pending = |text: &str| PendingMessage { id: "p1".into(), message: Message::user(text) };
    let cases = ["", " \n\t "].into_iter().flat_map(|text| {
        let message = pending(text);
        [
            client_wants(Scene::ready(), start_with(Message::user(text)), Rejection::EmptyMessage, EMPTY),
            client_wants(
                Scene::in_turn(),
                ClientCommand::Enqueue { chat: main(), message: message.clone() },
                Rejection::EmptyMessage,
                EMPTY,
            ),
            client_wants(
                Scene::in_turn(),
                ClientCommand::SetSteering { chat: main(), message },
                Rejection::EmptyMessage,
                EMPTY,
            ),
        ]
    });
    check(cases.collect());
    let attachment = Attachment { kind: AttachmentKind::File, path: "file:///a".into(), display_name: None };
    let attached = Message { attachments: vec![attachment], ..Message::user("") };
    assert!(Scene::ready().act(start_with(attached)).is_ok());
    // A draft may be empty: the person is about to write it.
    assert!(Scene::ready().act(ClientCommand::SetDraft { chat: main(), draft: Some(Message::user("")) }).is_ok());
}

#[test]
fn a_turn_is_cancelled_once_and_only_while_it_runs() {
    let not_active = || Rejection::TurnNotActive(TURN.into());
    check(vec![
        client_wants(Scene::ready(), cancel(TURN), not_active(), NOT_ACTIVE),
        client_wants(Scene::in_turn().after(cancel(TURN)), cancel(TURN), not_active(), NOT_ACTIVE),
        client_wants(
            Scene::in_turn(),
            cancel("t9"),
            Rejection::TurnNotActive("t9".into()),
            "turn t9 is not the active turn",
        ),
    ]);
}

#[test]
fn a_model_is_one_that_the_agent_lists() {
    check(vec![
        client_wants(Scene::ready(), ClientCommand::ChangeModel("huge".into()), unknown_model(), UNKNOWN_MODEL),
        client_wants(Scene::failed(), ClientCommand::ChangeModel("small".into()), creation_failed(), CREATION_FAILED),
        client_wants(
            Scene::in_turn(),
            ClientCommand::Enqueue {
                chat: main(),
                message: PendingMessage { id: "p1".into(), message: with_model("huge") },
            },
            unknown_model(),
            UNKNOWN_MODEL,
        ),
    ]);
}

#[test]
fn an_agent_that_has_not_told_its_models_may_have_any() {
    let mut silent = Scene::ready();
    silent.agent.models.clear();
    silent.act(ClientCommand::ChangeModel("small".into())).unwrap();
}

#[test]
fn without_an_agent_no_model_is_known() {
    let mut session = Scene::ready().session;
    let change = Command::Client(client(), ClientCommand::ChangeModel("small".into()));
    let refused = advance(&mut session, None, change, Timestamp(9));
    assert!(matches!(refused, Err(Rejection::UnknownModel { .. })));
}

#[test]
fn messages_wait_only_in_a_usable_session_within_bounds_and_in_the_name_of_a_person() {
    let unknown = || Rejection::UnknownPending("p9".into());
    let from_agent = || PendingMessage { id: "p1".into(), message: of_agent() };
    let full = (0..MAX_QUEUED).fold(Scene::in_turn(), |mut scene, number| {
        let chat = scene.session.chat_mut(&main()).unwrap();
        chat.queued.push(pending(&format!("p{number}"), "later"));
        scene
    });
    let no_such = "there is no queued message p9";
    check(vec![
        client_wants(Scene::failed(), enqueue("p1"), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), enqueue(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(full, enqueue("one-more"), Rejection::QueueFull, "1000 messages are queued already"),
        client_wants(
            Scene::in_turn(),
            ClientCommand::Enqueue { chat: main(), message: from_agent() },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::ready(),
            ClientCommand::SetDraft { chat: main(), draft: Some(of_agent()) },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::in_turn(),
            ClientCommand::SetSteering { chat: main(), message: from_agent() },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::failed(),
            ClientCommand::SetSteering { chat: main(), message: pending("p1", "left") },
            creation_failed(),
            CREATION_FAILED,
        ),
        client_wants(
            Scene::in_turn(),
            ClientCommand::RemoveSteering { chat: main(), id: "p9".into() },
            unknown(),
            no_such,
        ),
        client_wants(
            Scene::in_turn().after(ClientCommand::SetSteering { chat: main(), message: pending("p1", "left") }),
            ClientCommand::RemoveSteering { chat: main(), id: "p9".into() },
            unknown(),
            no_such,
        ),
        client_wants(Scene::in_turn(), ClientCommand::Dequeue { chat: main(), id: "p9".into() }, unknown(), no_such),
        client_wants(
            Scene::in_turn().after(enqueue("p1")),
            ClientCommand::ReorderQueue { chat: main(), order: vec!["p1".into(), "p9".into()] },
            unknown(),
            no_such,
        ),
    ]);
}
