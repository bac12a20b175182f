//! The Agent Host Protocol: streaming, write-ahead, rejection, several clients, the list.

use std::sync::{Arc, Mutex};

use grove_client::dialect::ahp::{DisposeSession, ResourceState};
use grove_client::{
    Ahp, Client, DispatchError, DispatchOutcome, FrameLog, Options, RequestError, ResourceChange, SessionListHandle,
    Subscription, Unsupported,
};
use grove_host::Config;
use grove_wire::ahp::{
    self, Action, ChatAction, ChatState, ChatToolCallConfirmed, ChatTurnCancelled, ChatTurnStarted,
    CreateSessionParams, ErrorResponsePart, Message, ROOT, ResponsePart, SessionAction, SessionLifecycle, SessionState,
    SessionTitleChanged, ToolCallConfirmationReason, ToolCallState, TurnState, status,
};
use serde_json::json;

use crate::harness::{TestHost, all_answered, options, soon};

pub(crate) const SESSION: &str = "scripted:/s";

/// A session with its main chat, both subscribed.
#[derive(Debug)]
pub(crate) struct SessionWithChat {
    pub(crate) session: Subscription<Ahp>,
    pub(crate) chat: Subscription<Ahp>,
}

pub(crate) async fn create(client: &Client<Ahp>, uri: &str) {
    let params = CreateSessionParams { channel: uri.to_owned(), ..CreateSessionParams::default() };
    client.request(params).await.unwrap();
}

/// Subscribes to an existing session and its main chat.
pub(crate) async fn join(client: &Client<Ahp>, uri: &str) -> SessionWithChat {
    let mut session = client.subscribe(uri).await.unwrap();
    let ready = session.until(|state| (state.session()?.lifecycle == SessionLifecycle::Ready).then_some(()));
    soon("a ready session", ready).await.unwrap();
    let chat = session.read(|state| state.session().unwrap().default_chat.clone()).unwrap();
    let chat = client.subscribe(&chat).await.unwrap();
    SessionWithChat { session, chat }
}

pub(crate) async fn ready(client: &Client<Ahp>, uri: &str) -> SessionWithChat {
    create(client, uri).await;
    join(client, uri).await
}

pub(crate) fn start(turn: &str, text: &str) -> Action {
    Action::Chat(ChatAction::TurnStarted(ChatTurnStarted {
        turn_id: turn.to_owned(),
        started_at: "2026-11-15T00:00:00.000Z".to_owned(),
        message: Message { text: text.to_owned(), ..Message::default() },
        queued_message_id: None,
        meta: None,
    }))
}

pub(crate) fn script(turn: &str, steps: serde_json::Value) -> Action {
    start(turn, &format!("script:{steps}"))
}

pub(crate) fn cancel(turn: &str) -> Action {
    Action::Chat(ChatAction::TurnCancelled(ChatTurnCancelled { turn_id: turn.to_owned(), duration: 1, meta: None }))
}

pub(crate) fn confirm(turn: &str, call: &str, approved: bool) -> Action {
    Action::Chat(ChatAction::ToolCallConfirmed(Box::new(ChatToolCallConfirmed {
        turn_id: turn.to_owned(),
        tool_call_id: call.to_owned(),
        meta: None,
        approved,
        confirmed: approved.then_some(ToolCallConfirmationReason::UserAction),
        reason: (!approved).then_some(ahp::ToolCallCancellationReason::Denied),
        edited_tool_input: None,
        user_suggestion: None,
        reason_message: None,
        selected_option_id: None,
    })))
}

pub(crate) fn title(title: &str) -> Action {
    Action::Session(SessionAction::TitleChanged(SessionTitleChanged { title: title.to_owned() }))
}

/// The call that waits for permission.
pub(crate) fn asked(chat: &ChatState) -> Option<String> {
    chat.active_turn.as_ref()?.response_parts.iter().find_map(|part| match part {
        ResponsePart::ToolCall(part) => match &part.tool_call {
            ToolCallState::PendingConfirmation(call) => Some(call.base.tool_call_id.clone()),
            _ => None,
        },
        _ => None,
    })
}

impl SessionWithChat {
    /// Waits until the optimistic state of the chat fulfils a condition.
    pub(crate) async fn until(&mut self, what: &str, done: impl Fn(&ChatState) -> bool) {
        soon(what, self.chat.until(|state| done(state.chat()?).then_some(()))).await.unwrap();
    }

    pub(crate) async fn turn_end(&mut self, turn: &str) {
        self.until("a turn's end", |chat| chat.turns.iter().any(|done| done.id == turn)).await;
    }

    pub(crate) fn shown(&self) -> ChatState {
        self.chat.read(|state| state.chat().unwrap().clone())
    }

    pub(crate) fn confirmed(&self) -> ChatState {
        self.chat.read_confirmed(|state, _| state.chat().unwrap().clone())
    }

    pub(crate) fn session_state(&self) -> SessionState {
        self.session.read_confirmed(|state, _| state.session().unwrap().clone())
    }

    /// Law 1: the confirmed state equals the host's. For an idle chat.
    pub(crate) async fn must_agree(&self) {
        all_answered(|| self.session.pending() + self.chat.pending()).await;
        for subscription in [&self.session, &self.chat] {
            let client = subscription.client();
            let params = json!({"channel": subscription.resource()});
            let fresh = client.request_raw("subscribe", &params);
            let fresh: ahp::SubscribeResult = soon("a snapshot", fresh).await.unwrap();
            let fresh = fresh.snapshot.unwrap();
            let kept = subscription.read_confirmed(|state, _| state.clone());
            assert_eq!(comparable(kept), comparable(fresh.state), "{}", client.client_id());
        }
    }
}

/// A state without values that no action of its channel carries, which may be outdated: a chat's title, which is sent
/// on the session's channel.
fn comparable(mut state: ResourceState) -> ResourceState {
    if let ResourceState::Chat(chat) = &mut state {
        chat.title.clear();
    }
    state
}

/// The text of a response.
pub(crate) fn text(parts: &[ResponsePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ResponsePart::Markdown(part) => Some(part.content.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn an_own_turn_is_seen_at_once_and_confirmed_by_its_echo() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    assert_eq!(client.server().unwrap().version.to_string(), "1.0.0");
    let mut talk = ready(&client, SESSION).await;

    host.front.let_up(false);
    let sent = talk.chat.dispatch(script("t1", json!([{"say": "hello", "chunks": 3}]))).unwrap();
    assert_eq!(sent.client_seq, 1);
    let shown = talk.shown();
    assert_eq!(shown.active_turn.unwrap().id, "t1");
    assert_eq!(shown.status & status::ACTIVITY, status::IN_PROGRESS);
    assert_eq!(talk.confirmed().active_turn, None, "the host knows nothing of it");
    assert_eq!(talk.chat.pending(), 1);

    host.front.let_up(true);
    let DispatchOutcome::Confirmed(seq) = soon("an echo", sent.into_future()).await else { panic!("it is taken") };
    assert!(talk.chat.read_confirmed(|_, at| at) >= seq, "an outcome is told when its effect is there");
    talk.turn_end("t1").await;
    assert_eq!(talk.chat.pending(), 0);
    let turn = talk.confirmed().turns.remove(0);
    assert_eq!((turn.state, text(&turn.response_parts).as_str()), (TurnState::Complete, "hello"));
    talk.must_agree().await;
}

#[tokio::test]
async fn a_refused_action_is_reverted_with_the_hosts_reason_and_what_stands_on_it_is_shown_without() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.ahp("a").await, host.ahp("b").await);
    let mut talk = ready(&client, SESSION).await;
    let mut theirs = join(&other, SESSION).await;

    // Two turns at a time: the host accepts one of them.
    host.front.let_up(false);
    let mine = talk.chat.dispatch(script("mine", json!([{"hang": true}]))).unwrap();
    let his = theirs.chat.dispatch(script("his", json!([{"hang": true}]))).unwrap();
    assert_eq!(theirs.shown().active_turn.unwrap().id, "his");
    host.front.let_up(true);
    let outcomes = [soon("an answer", mine.into_future()).await, soon("an answer", his.into_future()).await];
    let taken = outcomes.iter().filter(|outcome| matches!(outcome, DispatchOutcome::Confirmed(_))).count();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, DispatchOutcome::Rejected(_))).count();
    assert_eq!((taken, refused), (1, 1), "{outcomes:?}");
    talk.until("the turn", |chat| chat.active_turn.is_some()).await;
    theirs.until("the turn", |chat| chat.active_turn.is_some()).await;
    let running = talk.shown().active_turn.unwrap().id;
    assert_eq!(running, theirs.shown().active_turn.unwrap().id, "everybody sees the one that the host took");

    // An action that was sent after a rejected one stays, on top of the confirmed state.
    host.front.let_up(false);
    let refused = talk.chat.dispatch(cancel("no such turn")).unwrap();
    let cancelled = talk.chat.dispatch(cancel(&running)).unwrap();
    assert!(talk.shown().active_turn.is_none());
    assert!(talk.confirmed().active_turn.is_some());
    host.front.let_up(true);
    assert!(matches!(soon("a refusal", refused.into_future()).await, DispatchOutcome::Rejected(_)));
    assert!(matches!(soon("an echo", cancelled.into_future()).await, DispatchOutcome::Confirmed(_)));
    assert!(talk.shown().active_turn.is_none());
    theirs.turn_end(&running).await;
    talk.must_agree().await;
    theirs.must_agree().await;
}

#[tokio::test]
async fn a_foreign_action_is_taken_under_what_is_pending() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    let steps = json!([{"say": "words that take their time", "chunks": 26, "delayMs": 10}, {"hang": true}]);
    talk.chat.dispatch(script("t1", steps)).unwrap().await;

    // Messages of this client are held up; the agent's arrive.
    host.front.let_up(false);
    let draft = Message { text: "mine".to_owned(), ..Message::default() };
    let draft = ChatAction::DraftChanged(ahp::ChatDraftChanged { draft: Some(draft) });
    let sent = talk.chat.dispatch(Action::Chat(draft)).unwrap();
    talk.until("all the words", |chat| {
        chat.active_turn.as_ref().is_some_and(|turn| text(&turn.response_parts) == "words that take their time")
    })
    .await;
    let shown = talk.shown();
    assert_eq!((shown.draft.unwrap().text.as_str(), talk.chat.pending()), ("mine", 1));
    assert_eq!(talk.confirmed().draft, None);
    host.front.let_up(true);
    assert!(matches!(soon("an echo", sent.into_future()).await, DispatchOutcome::Confirmed(_)));
    assert_eq!(talk.confirmed().draft.unwrap().text, "mine");
    talk.must_agree().await;
}

#[tokio::test]
async fn two_clients_are_in_step_and_either_answers() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.ahp("a").await, host.ahp("b").await);
    let mut talk = ready(&client, SESSION).await;
    let mut theirs = join(&other, SESSION).await;
    let steps = json!([{"say": "before"}, {"tool": {"name": "sh", "input": "ls", "output": "out",
        "permission": "shell"}}, {"say": " after", "chunks": 3}]);
    theirs.chat.dispatch(script("t1", steps)).unwrap();
    talk.until("a question", |chat| asked(chat).is_some()).await;
    let needed = talk.session.until(|state| state.session()?.input_needed.clone());
    assert_eq!(soon("the session to wait", needed).await.unwrap().len(), 1);
    let call = asked(&talk.shown()).unwrap();

    host.front.let_up(false);
    let answered = talk.chat.dispatch(confirm("t1", &call, true)).unwrap();
    assert_eq!(asked(&talk.shown()), None, "its effect is seen");
    assert!(asked(&talk.confirmed()).is_some());
    host.front.let_up(true);
    assert!(matches!(soon("an echo", answered.into_future()).await, DispatchOutcome::Confirmed(_)));
    talk.turn_end("t1").await;
    theirs.turn_end("t1").await;
    assert_eq!(talk.confirmed(), theirs.confirmed());
    assert_eq!(text(&talk.confirmed().turns[0].response_parts), "before after");
    talk.must_agree().await;
    theirs.must_agree().await;
}

#[tokio::test]
async fn an_action_that_changes_nothing_is_answered_all_the_same() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let talk = ready(&client, SESSION).await;
    let first = talk.session.dispatch(title("Same")).unwrap();
    assert!(matches!(soon("an echo", first.into_future()).await, DispatchOutcome::Confirmed(_)));
    let again = talk.session.dispatch(title("Same")).unwrap();
    assert!(matches!(soon("an echo", again.into_future()).await, DispatchOutcome::Confirmed(_)));
    assert_eq!(talk.session.pending(), 0, "its echo retires it");
    assert_eq!(talk.session_state().title, "Same");
    talk.must_agree().await;
}

#[tokio::test]
async fn a_follower_sees_every_change_from_the_state_it_began_at() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    let (mut replayed, mut changes) = talk.chat.follow(Clone::clone);
    talk.chat.dispatch(script("t1", json!([{"say": "one two three", "chunks": 13}, {"reason": "why"}]))).unwrap();
    talk.turn_end("t1").await;
    let mut own = 0;
    while replayed != talk.chat.read_confirmed(|state, _| state.clone()) {
        let Some(ResourceChange::Action(applied)) = soon("a change", changes.next()).await else {
            panic!("only actions")
        };
        own += usize::from(applied.own);
        <Ahp as grove_client::Model>::reduce(&mut replayed, &applied.action);
    }
    assert_eq!(own, 1);
}

#[tokio::test]
async fn a_turn_that_fails_says_why() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    talk.chat.dispatch(script("t1", json!([{"say": "so far"}, {"fail": "no more"}]))).unwrap();
    talk.turn_end("t1").await;
    let turn = talk.confirmed().turns.remove(0);
    assert_eq!(turn.state, TurnState::Error);
    let Some(ResponsePart::Error(ErrorResponsePart { error, .. })) = turn.response_parts.last() else { panic!() };
    assert_eq!(error.message, "no more");
    talk.must_agree().await;
}

#[tokio::test]
async fn what_the_host_cannot_take_is_not_sent() {
    let host = TestHost::on_tcp(Config::default()).await;
    let frames = Arc::new(Mutex::new(String::new()));
    let seen = frames.clone();
    let log = FrameLog::new(move |_, frame| seen.lock().unwrap().push_str(frame));
    let client = Client::connect(host.endpoint(), Ahp::default(), Options { log: Some(log), ..options("a") });
    let client = client.await.unwrap();
    let talk = ready(&client, SESSION).await;
    let refused = talk.session.dispatch(start("xyzzy", ""));
    assert!(matches!(refused, Err(DispatchError::Unsupported(Unsupported::ByResource { .. }))));
    let ready = Action::Session(SessionAction::Ready(ahp::SessionReady {}));
    let refused = talk.session.dispatch(ready);
    assert!(matches!(refused, Err(DispatchError::Unsupported(Unsupported::ByClients { .. }))));
    assert_eq!(talk.session.pending(), 0);
    assert!(!frames.lock().unwrap().contains("xyzzy"));

    let unknown = client.subscribe("scripted:/nowhere").await.unwrap_err();
    let RequestError::Refused { method, error } = unknown else { panic!("{unknown}") };
    assert_eq!((method.as_str(), error.code), ("subscribe", ahp::error_code::SESSION_NOT_FOUND));
}

#[tokio::test]
async fn a_session_that_is_disposed_takes_its_chats_along() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.ahp("a").await, host.ahp("b").await);
    let talk = ready(&client, SESSION).await;
    let theirs = join(&other, SESSION).await;
    client.request(DisposeSession { channel: SESSION.to_owned() }).await.unwrap();
    for mut subscription in [talk.session, talk.chat, theirs.session, theirs.chat] {
        soon("its end", async {
            while !subscription.is_gone() {
                subscription.changed().await.unwrap();
            }
        })
        .await;
        assert!(matches!(subscription.dispatch(title("late")), Err(DispatchError::Gone(_))));
    }
}

#[tokio::test]
async fn a_chat_that_is_disposed_is_gone() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let talk = ready(&client, SESSION).await;
    let side = "ahp-chat:/side";
    let create = ahp::CreateChatParams {
        channel: SESSION.to_owned(),
        chat: side.to_owned(),
        ..ahp::CreateChatParams::default()
    };
    client.request(create).await.unwrap();
    let mut chat = client.subscribe(side).await.unwrap();
    assert!(chat.read(|state| state.chat().is_some()));
    client.request(grove_client::dialect::ahp::DisposeChat { channel: side.to_owned() }).await.unwrap();
    soon("its end", async {
        while !chat.is_gone() {
            chat.changed().await.unwrap();
        }
    })
    .await;
    assert!(!talk.chat.is_gone() && !talk.session.is_gone());
}

#[tokio::test]
async fn a_watch_on_files_tells_those_who_follow() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let folder = std::env::temp_dir().join(format!("grove-client-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let uri = format!("file://{}", folder.canonicalize().unwrap().display());
    // Clients may browse the folder of a session.
    let create = CreateSessionParams {
        channel: SESSION.to_owned(),
        working_directories: Some(vec![uri.clone()]),
        ..CreateSessionParams::default()
    };
    client.request(create).await.unwrap();
    let watch = ahp::CreateResourceWatchParams { channel: ROOT.to_owned(), uri, ..Default::default() };
    let watch = client.request(watch).await.unwrap().channel;
    let watched = client.subscribe(&watch).await.unwrap();
    assert!(watched.read(|state| matches!(state, ResourceState::ResourceWatch(_))));
    let ((), mut changes) = watched.follow(|_| ());
    std::fs::write(folder.join("new.txt"), "x").unwrap();
    let Some(ResourceChange::Action(applied)) = soon("a change", changes.next()).await else { panic!("an action") };
    let Action::ResourceWatch(ahp::ResourceWatchAction::Changed(changed)) = &applied.action else { panic!() };
    assert!(changed.changes.items.iter().any(|change| change.uri.ends_with("/new.txt")), "{changed:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn until_listed(sessions: &mut SessionListHandle<Ahp>, wanted: &[&str]) {
    let listed = sessions.until(|list| {
        let mut listed: Vec<&str> = list.iter().map(|row| row.resource.as_str()).collect();
        listed.sort_unstable();
        (list.is_fetched() && listed == wanted).then_some(())
    });
    soon("the list", listed).await.unwrap();
}

#[tokio::test]
async fn the_list_is_fetched_in_pages_kept_by_notifications_and_fetched_again_after_a_reconnect() {
    let host = TestHost::on_tcp(Config::default()).await;
    let other = host.ahp("b").await;
    for number in 1..=5 {
        create(&other, &format!("scripted:/{number}")).await;
    }
    let dialect = Ahp { list_page: Some(2), ..Ahp::default() };
    let client = Client::connect(host.endpoint(), dialect, options("a")).await.unwrap();
    let mut sessions = client.sessions();
    until_listed(&mut sessions, &["scripted:/1", "scripted:/2", "scripted:/3", "scripted:/4", "scripted:/5"]).await;
    other.request(DisposeSession { channel: "scripted:/2".to_owned() }).await.unwrap();
    let mut theirs = ready(&other, "scripted:/6").await;
    until_listed(&mut sessions, &["scripted:/1", "scripted:/3", "scripted:/4", "scripted:/5", "scripted:/6"]).await;

    // Changes of a row are announced, too.
    theirs.chat.dispatch(script("t1", json!([{"title": "A title"}, {"hang": true}]))).unwrap();
    let changed = sessions.until(|list| {
        let row = list.get("scripted:/6")?;
        (row.title == "A title" && row.status & status::ACTIVITY == status::IN_PROGRESS).then_some(())
    });
    soon("a changed row", changed).await.unwrap();
    theirs.chat.dispatch(cancel("t1")).unwrap();
    theirs.turn_end("t1").await;
    let idle =
        sessions.until(|list| (list.get("scripted:/6")?.status & status::ACTIVITY == status::IDLE).then_some(()));
    soon("a changed row", idle).await.unwrap();
    assert_eq!(sessions.read(|list| list.fetched()), 1);

    // Changes during the disconnection are not announced again: the list is fetched.
    host.front.let_down(false);
    let dispose = tokio::spawn({
        let other = other.clone();
        async move { other.request(DisposeSession { channel: "scripted:/1".to_owned() }).await }
    });
    soon("a disposed session", async {
        while host.host.status().await.unwrap().sessions != 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    host.front.cut();
    host.front.let_down(true);
    until_listed(&mut sessions, &["scripted:/3", "scripted:/4", "scripted:/5", "scripted:/6"]).await;
    assert!(sessions.read(|list| list.fetched()) >= 2);
    dispose.abort();
    soon("the list", sessions.refresh()).await.unwrap();
}
