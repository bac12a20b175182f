//! The source of a session's title, and which title stays.

use grove_core::*;

use crate::scene::{Scene, main, start};

fn agent_says(scene: &mut Scene, title: &str) -> Vec<Change> {
    let title = SessionTitle::new(title, TitleSource::Agent);
    scene.by(Command::Agent(EventReport::Session(SessionEvent::TitleChanged(title)))).unwrap()
}

fn end(scene: &mut Scene, turn: &str) {
    scene.report(ChatEvent::TurnCompleted { turn: turn.into(), duration: None }).unwrap();
}

fn prompt(turn: &str, text: &str) -> ClientCommand {
    ClientCommand::StartTurn { chat: main(), turn: turn.into(), message: Message::user(text), started_at: None }
}

fn known_as(name: Option<&str>) -> ChatEvent {
    ChatEvent::AgentSessionChanged(name.map(str::to_owned))
}

#[test]
fn every_way_to_a_title_normalises_it() {
    let mut scene = Scene::ready();
    scene.act(ClientCommand::ChangeTitle(" A\nname ".into())).unwrap();
    assert_eq!(scene.session.title, "A name");
    assert_eq!(scene.chat().title, "A name");
    assert!(scene.act(ClientCommand::ChangeTitle("A name".into())).unwrap().is_empty(), "it is called so already");
    scene.act(ClientCommand::RenameChat { chat: main(), title: "\tOther\t".into() }).unwrap();
    assert_eq!(scene.session.title, "Other");
    scene.host(HostCommand::AddChat { chat: "side".into(), uri: "x:/side".into() }).unwrap();
    scene.act(ClientCommand::RenameChat { chat: "side".into(), title: " Side\r\n".into() }).unwrap();
    assert_eq!(scene.session.chat(&"side".into()).unwrap().title, "Side");
    scene.act(ClientCommand::ChangeTitle(" ".into())).unwrap();
    assert_eq!((scene.session.title.as_str(), scene.session.title_source), (Session::UNTITLED, TitleSource::None));
    agent_says(&mut scene, "By the agent\n");
    assert_eq!(scene.session.title, "By the agent");
    assert!(agent_says(&mut scene, "  ").is_empty(), "an agent takes no title away");
}

#[test]
fn a_client_that_sends_another_spelling_of_the_title_is_told_the_title() {
    let mut scene = Scene::ready().after(ClientCommand::ChangeTitle("A name".into()));
    let told = scene.act(ClientCommand::ChangeTitle("A name  ".into())).unwrap();
    let [Change::Session(_, SessionEvent::TitleChanged(title)), ..] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(title.text(), "A name");
    scene.host(HostCommand::AddChat { chat: "side".into(), uri: "x:/side".into() }).unwrap();
    for (sent, is_told) in [("Side", true), ("Side", false), (" Side", true)] {
        let told = scene.act(ClientCommand::RenameChat { chat: "side".into(), title: sent.into() }).unwrap();
        assert_eq!(!told.is_empty(), is_told, "{sent:?}: {told:?}");
        assert_eq!(scene.session.chat(&"side".into()).unwrap().title, "Side");
    }
}

#[test]
fn the_first_prompt_names_a_session_and_later_ones_do_not() {
    let mut scene = Scene::ready();
    let changes = scene.act(prompt("t1", "\n Fix it \nnow")).unwrap();
    assert!(matches!(changes[0], Change::Chat(..)), "the turn comes first");
    assert_eq!((scene.session.title.as_str(), scene.session.title_source), ("Fix it", TitleSource::Prompt));
    end(&mut scene, "t1");
    scene.act(prompt("t2", "And now that")).unwrap();
    assert_eq!(scene.session.title, "Fix it");
    let mut named = Scene::ready().after(ClientCommand::ChangeTitle("Mine".into()));
    named.act(prompt("t1", "Fix it")).unwrap();
    assert_eq!(named.session.title, "Mine");
    // A prompt that is only a file gives no title.
    let attachment = Attachment { kind: AttachmentKind::File, path: "file:///a".into(), display_name: None };
    let message = Message { attachments: vec![attachment], ..Message::user(" \n ") };
    let mut silent = Scene::ready();
    silent.act(ClientCommand::StartTurn { chat: main(), turn: "t1".into(), message, started_at: None }).unwrap();
    assert_eq!((silent.session.title.as_str(), silent.session.title_source), (Session::UNTITLED, TitleSource::None));
}

#[test]
fn an_agents_title_replaces_a_prompts_and_never_a_persons() {
    let mut scene = Scene::ready().after(start("t1"));
    agent_says(&mut scene, "By the agent");
    assert_eq!(scene.session.title, "By the agent");
    agent_says(&mut scene, "By the agent, later");
    assert_eq!(scene.session.title, "By the agent, later");
    // Giving the same title means to keep it.
    assert!(!scene.act(ClientCommand::ChangeTitle("By the agent, later".into())).unwrap().is_empty());
    assert!(agent_says(&mut scene, "By the agent, again").is_empty());
    assert_eq!(scene.session.title, "By the agent, later");
}

#[test]
fn an_agent_that_was_told_the_past_does_not_name_the_session_after_that() {
    let mut scene = Scene::ready().after(prompt("t1", "Fix it"));
    scene.report(known_as(Some("first"))).unwrap();
    agent_says(&mut scene, "A fix");
    end(&mut scene, "t1");
    // As after a compaction.
    scene.host(HostCommand::AddEntries { chat: main(), entries: vec![], resets_agent: true }).unwrap();
    scene.act(prompt("t2", "And that")).unwrap();
    scene.report(known_as(Some("second"))).unwrap();
    assert!(agent_says(&mut scene, "This session is being continued").is_empty());
    assert_eq!(scene.session.title, "A fix");
}
