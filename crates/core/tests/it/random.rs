//! Random runs: commands that mostly fit the state they meet, and events that mostly do not.
//!
//! Plain functions over a small generator, so that a step is one number: a failing run shrinks by losing steps.
//! The tests of `grove-wire` and `grove-tree` include this file as well; it uses nothing but `grove_core` and
//! `serde_json`.

use grove_core::*;

/// The decisions of one step, drawn from one number.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn one_of<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        if from.is_empty() {
            return None;
        }
        let at = self.below(from.len());
        Some(from.swap_remove(at))
    }

    pub(crate) fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(50) { Some(make(self)) } else { None }
    }

    /// A short text, sometimes empty, sometimes with characters that JSON must escape.
    pub(crate) fn text(&mut self) -> String {
        let words = ["", "a", "word ", "two words", "\"quoted\"\n", "naïve 🌲", "</x>", "{\"k\":[]}"];
        self.pick(&words).to_owned()
    }

    /// A known id, or an unknown one.
    fn id(&mut self, prefix: &str) -> String {
        match self.below(12) {
            0 => String::new(),
            1 => "nonsense".to_owned(),
            number => format!("{prefix}{}", [0, 0, 0, 0, 1, 1, 1, 2, 2, 3][number - 2]),
        }
    }
}

/// The models that [`agent`] lists.
pub(crate) const MODELS: [&str; 2] = ["small", "large"];

pub(crate) fn agent() -> AgentInfo {
    let model = |id: &&str| ModelInfo {
        id: ModelId::from(*id),
        name: format!("Model {id}"),
        max_context_window: Some(1_000),
        supports_vision: None,
    };
    AgentInfo {
        provider: "scripted".into(),
        display_name: "Scripted".into(),
        description: "Plays a script".into(),
        models: MODELS.iter().map(model).collect(),
    }
}

pub(crate) fn new_session() -> NewSession {
    NewSession {
        id: "s1".into(),
        uri: "scripted:/s1".into(),
        provider: "scripted".into(),
        model: None,
        working_directories: vec!["/project".into()],
        config: Some(SessionConfig::of(extra("mode", "ask"))),
        store: StoreName::default(),
    }
}

fn extra(name: &str, value: &str) -> Extra {
    Extra::from_iter([(name.to_owned(), value.into())])
}

/// Further data of a dialect: some that a dialect reads, some that it cannot read in this place, or some that no
/// dialect knows.
fn any_extra(dice: &mut Dice) -> Option<Extra> {
    use serde_json::json;
    if !dice.chance(20) {
        return None;
    }
    let text = dice.text();
    let (name, value) = dice.pick(&[
        ("mode", json!(text)),
        ("note", json!(text)),
        ("_meta", json!({"k": text, "turns": []})),
        ("reasonMessage", json!(text)),
        ("userSuggestion", json!({"text": text, "origin": {"kind": "user"}})),
        ("structuredContent", json!({"k": [text]})),
        ("error", json!({"message": text})),
        ("content", json!([{"type": "text", "text": text}])),
        ("pastTenseMessage", json!({"markdown": text})),
        ("title", json!(text)),
        ("outputSchema", json!({"type": "object"})),
        ("annotations", json!({"title": text, "readOnlyHint": true})),
        ("customizations", json!([])),
        ("modelConfig", json!({"effort": text})),
        ("agent", json!({"uri": text})),
        ("attachments", json!([{"type": "simple", "label": text}])),
    ]);
    let value = if dice.chance(90) { value } else { json!(dice.text()) };
    Some(Extra::from_iter([(name.to_owned(), value)]))
}

/// A plausible command on `session` in its current state, and its sender.
pub(crate) fn command(session: &Session, dice: &mut Dice) -> (Command, Actor) {
    let client = Actor::Client(client(dice));
    // Half of the commands go to the main chat.
    let at = if dice.chance(50) { 0 } else { dice.below(session.chats.len()) };
    let chat = &session.chats[at];
    let id = if dice.chance(2) { ChatId::from("elsewhere") } else { chat.id.clone() };
    if dice.chance(8) {
        return (of_the_host(id, chat, dice), Actor::Host);
    }
    match &chat.active {
        Some(active) if dice.chance(70) => (report(id, active, dice), Actor::Agent),
        Some(active) => {
            let command = request(session, id, chat, Some(active), dice);
            let who = if is_denied_by_setting(&command) { Actor::Host } else { client };
            (command, who)
        }
        None if dice.chance(60) => {
            let turn = TurnId::from(format!("{}-turn-{}", chat.id, chat.turns.len()));
            (Command::StartTurn { chat: id, turn, message: message(dice), started_at: claimed(dice) }, client)
        }
        None if dice.chance(30) => (Command::ReportSession(session_event(dice)), Actor::Host),
        None => (request(session, id, chat, None, dice), client),
    }
}

/// True for a denial by a rule: no dialect lets a client send it, only the host decides so.
fn is_denied_by_setting(command: &Command) -> bool {
    match command {
        Command::ResolvePermission { verdict, .. } => {
            verdict.decision == Decision::Denied && verdict.by == ConfirmationReason::Setting
        }
        _ => false,
    }
}

fn directory(dice: &mut Dice) -> String {
    dice.pick(&["/project", "/elsewhere", "/third"]).to_owned()
}

/// Commands that the host gives of its own accord.
fn of_the_host(id: ChatId, of: &Chat, dice: &mut Dice) -> Command {
    match dice.below(14) {
        13 if dice.chance(50) => Command::SetWorkingDirectory(directory(dice)),
        12 | 13 => {
            // Some of the earlier turns, as on another branch.
            let turns = of.turns.iter().take(dice.below(3)).cloned().collect();
            let entries = (0..dice.below(2)).map(|_| LogEntry { line: dice.text().into(), after: None }).collect();
            Command::MoveLeaf {
                chat: id,
                turns,
                older: dice.chance(30),
                entries,
                settings: RestoredSettings::default(),
            }
        }
        0 | 1 => {
            let chat = side_chat(dice);
            let uri = dice.pick(&["ahp-chat:/", "ahp-chat://"]);
            let uri = format!("{uri}{chat}{}", if uri.ends_with("//") { "/c2NyaXB0ZWQ6L3Mx" } else { "" });
            if dice.chance(70) {
                return Command::AddChat { chat, uri };
            }
            let kind = match dice.chance(60) {
                true => OriginKind::Fork,
                false => OriginKind::Side {
                    selection: dice.maybe(|dice| Selection { text: dice.text(), part: dice.maybe(Dice::text) }),
                },
            };
            let turns: Vec<_> = of.turns.iter().take(dice.below(3)).cloned().collect();
            let turn = turns.last().map(|turn| turn.id.clone());
            let log = LogPart {
                boundary: 100,
                extent: LogScope::Branch,
                leaf: Some(dice.text()),
                until: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            };
            let origin = ChatOrigin {
                session: new_session().id,
                store: StoreName::default(),
                chat: id,
                uri: of.uri.clone(),
                turn,
                kind,
                log,
            };
            Command::ForkChat { chat, uri, origin: origin.into(), turns, older: dice.chance(30) }
        }
        2 | 5 | 6 => Command::RemoveChat(if dice.chance(80) { side_chat(dice) } else { id }),
        3 => Command::TakeSteering { chat: id },
        4 => {
            let turn = of.active.as_ref().map_or_else(|| TurnId::from(dice.id("turn-")), |active| active.id.clone());
            Command::StopTurn { chat: id, turn, error: error(dice) }
        }
        9..=11 => Command::ReportSession(session_event(dice)),
        _ => Command::StartQueued { chat: id },
    }
}

fn side_chat(dice: &mut Dice) -> ChatId {
    ChatId::from(dice.pick(&["side", "aside", ""]))
}

fn client(dice: &mut Dice) -> ClientId {
    ClientId::from(dice.pick(&["client", "client", "other"]))
}

/// A start time that a client claims, by any clock.
fn claimed(dice: &mut Dice) -> Option<Timestamp> {
    if dice.chance(20) { Some(Timestamp(dice.below(5_000) as u64)) } else { None }
}

/// A command of a person.
fn request(session: &Session, id: ChatId, chat: &Chat, active: Option<&ActiveTurn>, dice: &mut Dice) -> Command {
    let turn = match active {
        Some(active) if dice.chance(90) => active.id.clone(),
        _ => TurnId::from(dice.id("turn-")),
    };
    let pending = match dice.one_of(chat.queued.iter().map(|queued| queued.id.clone()).collect()) {
        Some(queued) if dice.chance(80) => queued,
        _ => PendingId::from(dice.id("pending-")),
    };
    match dice.below(21) {
        0..=3 => {
            let asked = active.map_or_else(Vec::new, open_permissions);
            let (question, verdict) = match dice.one_of(asked) {
                Some((call, request)) if dice.chance(90) => {
                    let verdict = verdict(&request, dice);
                    let question = match dice.chance(50) {
                        true => PermissionTarget::Request(request.id),
                        false => PermissionTarget::OfToolCall(call),
                    };
                    (question, verdict)
                }
                _ => {
                    let request = permission(request_id(chat, active, dice), dice);
                    let verdict = verdict(&request, dice);
                    (PermissionTarget::Request(request.id), verdict)
                }
            };
            Command::ResolvePermission { chat: id, turn, question, verdict }
        }
        4 => {
            let request = request_id(chat, active, dice);
            let outcome = dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined, InputOutcome::Cancelled]);
            Command::AnswerInput { chat: id, request, outcome, answers: answers(dice) }
        }
        14 | 15 => {
            let request = request_id(chat, active, dice);
            let question = question_id(dice);
            Command::DraftAnswer { chat: id, request, question, answer: dice.maybe(answer) }
        }
        16 => {
            let call = some_call(active, dice, |status| matches!(status, ToolCallStatus::PendingResultConfirmation(_)));
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            Command::ConfirmResult { chat: id, turn, call, decision }
        }
        17 => {
            let call = some_call(active, dice, |status| *status == ToolCallStatus::Running);
            match dice.chance(50) {
                true => Command::ReportClientOutput { chat: id, turn, call, output: output(dice) },
                false => {
                    let ask = dice.chance(50);
                    Command::CompleteClientCall { chat: id, turn, call, result: result(dice), ask }
                }
            }
        }
        18 => match dice.below(5) {
            4 => Command::RenameChat { chat: id, title: dice.text() },
            3 => Command::ChangePermissions(permissions_change(dice)),
            0 => Command::SetChatRead { chat: id, read: dice.chance(80) },
            1 => Command::SetChatArchived { chat: id, archived: dice.chance(50) },
            _ => Command::ChangeConfig { values: any_extra(dice).unwrap_or_default(), replace: dice.chance(50) },
        },
        13 | 20 => match dice.chance(60) {
            true => Command::SetActiveClient(active_client(dice)),
            false => Command::RemoveActiveClient(client(dice)),
        },
        5 => Command::CancelTurn { chat: id, turn },
        6 => Command::ChangeModel(model(dice)),
        7 => match dice.below(3) {
            0 => Command::ChangeTitle(dice.text()),
            1 => Command::SetRead(!session.is_read),
            _ => Command::SetArchived(!session.is_archived),
        },
        8 => Command::SetSteering { chat: id, message: pending_message(pending, dice) },
        9 => Command::RemoveSteering { chat: id, id: pending },
        10 | 11 => {
            let fresh = PendingId::from(format!("pending-{}", dice.below(50)));
            Command::Enqueue { chat: id, message: pending_message(fresh, dice) }
        }
        12 => match dice.below(4) {
            0 => Command::Dequeue { chat: id, id: pending },
            1 | 2 => {
                let mut order: Vec<PendingId> = chat.queued.iter().map(|queued| queued.id.clone()).collect();
                order.reverse();
                order.truncate(1 + dice.below(order.len()));
                Command::ReorderQueue { chat: id, order }
            }
            _ => Command::SetDraft { chat: id, draft: dice.maybe(message) },
        },
        _ => Command::StartTurn { chat: id, turn, message: message(dice), started_at: claimed(dice) },
    }
}

fn open_permissions(active: &ActiveTurn) -> Vec<(ToolCallId, PermissionRequest)> {
    let asked = |part: &Part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => Some((call.id.clone(), request.clone())),
            _ => None,
        },
        _ => None,
    };
    active.parts().iter().filter_map(asked).collect()
}

/// An answer to `request`: mostly a valid one.
fn verdict(request: &PermissionRequest, dice: &mut Dice) -> Verdict {
    let decision = dice.pick(&[Decision::Approved, Decision::Approved, Decision::Denied]);
    let fits = |option: &&PermissionOption| option.allows == (decision == Decision::Approved);
    let option = request.options.iter().find(fits).map(|option| option.id.clone());
    Verdict {
        option: if dice.chance(90) { option } else { Some(dice.id("option-")) },
        edited_input: if request.editable || dice.chance(5) { dice.maybe(Dice::text) } else { None },
        skipped: decision == Decision::Denied && dice.chance(50),
        by: dice.pick(&[ConfirmationReason::Person, ConfirmationReason::Setting]),
        extra: any_extra(dice),
        ..decision.into()
    }
}

/// An agent's report on a running turn: mostly one that fits.
fn report(chat: ChatId, active: &ActiveTurn, dice: &mut Dice) -> Command {
    let turn = if dice.chance(98) { active.id.clone() } else { TurnId::from(dice.id("turn-")) };
    let event = match dice.below(47) {
        0 => ChatEvent::TurnCompleted { turn, duration: None },
        1 => ChatEvent::TurnFailed { turn, duration: dice.maybe(|_| 5), error: error(dice) },
        2 => chat_event(dice),
        3..=6 => ChatEvent::PartAdded { turn, part: whole_or_new_part(active, dice) },
        7..=12 => {
            let part = part_id(active, dice, |part| matches!(part, Part::Text(_)));
            ChatEvent::TextDelta { turn, part, content: dice.text() }
        }
        13..=15 => {
            let part = part_id(active, dice, |part| matches!(part, Part::Reasoning { .. }));
            ChatEvent::ReasoningDelta { turn, part, content: dice.text() }
        }
        16..=18 => {
            let id = ToolCallId::from(format!("call-{}", active.parts().len()));
            ChatEvent::ToolCallStarted { turn, call: new_call(id, dice) }
        }
        19 | 20 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Streaming);
            ChatEvent::ToolCallInputDelta { turn, call, content: dice.text() }
        }
        21..=24 => {
            let id = call_id(active, dice, |status| *status == ToolCallStatus::Streaming);
            ChatEvent::ToolCallReady {
                turn,
                call: match active.tool_call(&id) {
                    Some(begun) if dice.chance(95) => as_it_began(begun, dice),
                    _ => new_call(id, dice),
                },
                invocation_message: dice.text(),
                input: dice.maybe(Dice::text),
                gate: dice.pick(&[Gate::None, Gate::Follows]),
            }
        }
        25..=28 => {
            let fits = |status: &ToolCallStatus| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running);
            let call = call_id(active, dice, fits);
            let id = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::ToolCallGated { turn, gated: gated(call, id, dice) }
        }
        29 | 45 | 46 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallOutput { turn, call, output: output(dice) }
        }
        30 | 31 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallCompleted { turn, call, result: result(dice), run: None }
        }
        32 | 33 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallResultGated { turn, call, result: result(dice), run: None }
        }
        34 | 35 => {
            let fits = |status: &ToolCallStatus| matches!(status, ToolCallStatus::PendingResultConfirmation(_));
            ChatEvent::ToolCallResultConfirmed {
                turn,
                call: call_id(active, dice, fits),
                result: result(dice),
                decision: dice.pick(&[Decision::Approved, Decision::Denied]),
            }
        }
        36 | 37 => ChatEvent::UsageReported { turn, usage: usage(dice) },
        38..=40 => {
            let id = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            let call = match active.tool_call(&id) {
                Some(begun) if dice.chance(95) => as_it_began(begun, dice),
                _ => new_call(id, dice),
            };
            ChatEvent::ToolCallRestated { turn, restated: restated(call, dice) }
        }
        41 | 42 => ChatEvent::ActivityChanged(dice.maybe(Dice::text)),
        43 => ChatEvent::AgentSessionChanged(dice.maybe(Dice::text)),
        _ => {
            let id = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::InputRequested { turn, request: Box::new(input_request(id, dice)) }
        }
    };
    Command::Report { chat, event }
}

fn whole_or_new_part(active: &ActiveTurn, dice: &mut Dice) -> Part {
    let id = PartId::from(format!("part-{}", active.parts().len()));
    match dice.below(16) {
        0..=3 => {
            let content = if dice.chance(80) { String::new() } else { dice.text() };
            Part::Text(TextPart { id, content, delivery: Delivery::Streamed })
        }
        4 | 5 => Part::Text(TextPart { id, content: dice.text(), delivery: Delivery::Whole }),
        6..=8 => Part::Reasoning { id, content: if dice.chance(80) { String::new() } else { dice.text() } },
        9 | 10 => Part::Content(content(dice)),
        11 | 12 => Part::Plan(plan(dice)),
        13 => Part::Notice(dice.text()),
        14 => Part::Error(error(dice)),
        _ => any_part(dice),
    }
}

/// Mostly the newest part of the wanted kind.
fn part_id(active: &ActiveTurn, dice: &mut Dice, fits: fn(&Part) -> bool) -> PartId {
    let id = |part: &Part| match part {
        Part::Text(text) => Some(text.id.clone()),
        Part::Reasoning { id, .. } => Some(id.clone()),
        _ => None,
    };
    let newest = active.parts().iter().rev().find(|part| fits(part)).and_then(id);
    match newest {
        Some(newest) if dice.chance(80) => newest,
        _ => dice
            .one_of(active.parts().iter().filter_map(id).collect())
            .unwrap_or_else(|| PartId::from(dice.id("part-"))),
    }
}

fn call_id(active: &ActiveTurn, dice: &mut Dice, fits: impl Fn(&ToolCallStatus) -> bool) -> ToolCallId {
    let call = |part: &Part| match part {
        Part::ToolCall(call) if fits(&call.status) => Some(call.id.clone()),
        _ => None,
    };
    match dice.one_of(active.parts().iter().filter_map(call).collect()) {
        Some(call) if dice.chance(95) => call,
        _ => ToolCallId::from(dice.id("call-")),
    }
}

fn some_call(active: Option<&ActiveTurn>, dice: &mut Dice, fits: fn(&ToolCallStatus) -> bool) -> ToolCallId {
    match active {
        Some(active) => call_id(active, dice, fits),
        None => ToolCallId::from(dice.id("call-")),
    }
}

fn request_id(chat: &Chat, active: Option<&ActiveTurn>, dice: &mut Dice) -> RequestId {
    let asked = |part: &Part| match part {
        Part::InputRequest(input) => Some(input.id.clone()),
        _ => None,
    };
    let known = active.map_or_else(Vec::new, |active| active.parts().iter().filter_map(asked).collect());
    match dice.one_of(known) {
        Some(request) if dice.chance(90) => request,
        _ => RequestId::from(format!("{}-request-{}", chat.id, dice.below(60))),
    }
}

/// Any event at all: of the root, of sessions that may not exist, of chats that may not exist.
pub(crate) fn event(dice: &mut Dice) -> Event {
    let at = Timestamp(dice.below(1_000) as u64);
    let session = SessionId::from(dice.pick(&["s1", "s1", "s1", "s1", "s2", "", "nowhere"]));
    let change = match dice.below(20) {
        0 => Change::Root(RootEvent::AgentsChanged(if dice.chance(50) { vec![agent()] } else { vec![] })),
        1 => Change::Root(RootEvent::ActiveSessionsChanged(dice.below(9) as u32)),
        2 if dice.chance(20) => Change::Session(session, SessionEvent::Removed),
        2 | 3 => Change::Session(session.clone(), created(session, dice)),
        4..=6 => Change::Session(session, session_event(dice)),
        _ => {
            let chat = ChatId::from(dice.pick(&["main", "main", "main", "main", "side", ""]));
            Change::Chat(session, chat, chat_event(dice))
        }
    };
    Event { at, change }
}

fn created(id: SessionId, dice: &mut Dice) -> SessionEvent {
    SessionEvent::Created(Box::new(NewSession { id, model: dice.maybe(model), ..new_session() }))
}

/// Any event of a session itself, except that it is added or removed.
pub(crate) fn session_event(dice: &mut Dice) -> SessionEvent {
    match dice.below(30) {
        29 => SessionEvent::CheckoutChanged(Box::new(checkout(dice))),
        28 if dice.chance(50) => SessionEvent::Moved(StoreName::from(dice.pick(&["local", "other"]))),
        28 => SessionEvent::WorkingDirectoryChanged { previous: dice.maybe(directory), directory: directory(dice) },
        0 | 27 => SessionEvent::CreationFailed(error(dice)),
        1 => SessionEvent::ChatRowChanged(chat_row(dice)),
        20 => match dice.chance(60) {
            true => SessionEvent::ChatAdded(chat_row(dice)),
            false => SessionEvent::ChatRemoved(ChatId::from(dice.pick(&["main", "side"]))),
        },
        21 => SessionEvent::ActiveClientSet(active_client(dice)),
        22 => SessionEvent::ActiveClientRemoved(client(dice)),
        23 => SessionEvent::ConfigChanged { values: any_extra(dice).unwrap_or_default(), replace: dice.chance(50) },
        24..=26 => SessionEvent::DetailsChanged(Box::new(details(dice))),
        2 => SessionEvent::InputNeededSet(InputNeeded {
            request: RequestId::from(dice.id("request-")),
            chat: ChatId::from("main"),
            turn: TurnId::from(dice.id("turn-")),
            about: match dice.below(3) {
                0 => InputSubject::ToolConfirmation(Box::new(any_call(dice))),
                1 => InputSubject::ClientExecution(Box::new(any_call(dice))),
                _ => InputSubject::Question(Box::new(any_input_request(dice))),
            },
        }),
        3 => SessionEvent::InputNeededRemoved {
            chat: ChatId::from("main"),
            request: RequestId::from(dice.id("request-")),
        },
        4 => SessionEvent::Listed,
        5..=9 => SessionEvent::Ready,
        10..=12 => SessionEvent::TitleChanged(dice.text().into()),
        13..=15 => SessionEvent::ModelChanged(model(dice)),
        16 | 17 => SessionEvent::ReadChanged(dice.chance(50)),
        _ => SessionEvent::ArchivedChanged(dice.chance(50)),
    }
}

fn details(dice: &mut Dice) -> SessionDetails {
    let command =
        |dice: &mut Dice| AgentCommand { name: dice.text(), description: dice.text(), hint: dice.maybe(Dice::text) };
    let remembered = |dice: &mut Dice| RememberedPermission {
        kind: permission_kind(dice),
        about: dice.text(),
        option: option("option-0".to_owned(), dice),
    };
    SessionDetails {
        settings: dice.maybe(settings),
        commands: (0..dice.below(3)).map(|_| command(dice)).collect(),
        remembered: (0..dice.below(3)).map(|_| remembered(dice)).collect(),
        permissions: dice.maybe(permissions),
        warnings: (0..dice.below(3)).map(|_| dice.text()).collect(),
        unsaved: dice.maybe(Dice::text),
        moved_to: dice.maybe(remote_session),
        moved_from: dice.maybe(remote_session),
        imported_from: dice.maybe(|dice| ImportSource { source: dice.text(), source_id: dice.text() }),
        workspace: dice.maybe(|dice| WorkspaceDetails {
            plan: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            files: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            checkpoints: dice.below(3) as u32,
        }),
    }
}

fn checkout(dice: &mut Dice) -> Checkout {
    Checkout {
        root: dice.maybe(Dice::text),
        worktree_of: dice.maybe(Dice::text),
        branch: dice.maybe(Dice::text),
        own_pull_request: dice.maybe(Dice::text),
        ..Checkout::default()
    }
}

fn remote_session(dice: &mut Dice) -> RemoteSession {
    RemoteSession { host: dice.text(), address: Some(dice.text()), session: dice.text(), stamp: dice.text() }
}

fn permissions(dice: &mut Dice) -> Permissions {
    Permissions {
        allow_all: dice.chance(50),
        approved: rules(dice),
        denied: rules(dice),
        directories: (0..dice.below(2)).map(|_| dice.text()).collect(),
        primary: dice.maybe(Dice::text),
    }
}

fn rules(dice: &mut Dice) -> Vec<PermissionRule> {
    let rule = |dice: &mut Dice| PermissionRule { kind: permission_kind(dice), argument: dice.maybe(Dice::text) };
    (0..dice.below(3)).map(|_| rule(dice)).collect()
}

fn permissions_change(dice: &mut Dice) -> PermissionsChange {
    match dice.below(5) {
        0 => PermissionsChange::Configure {
            allow_all: dice.maybe(|dice| dice.chance(50)),
            approved: dice.maybe(rules),
            denied: dice.maybe(rules),
            directories: None,
        },
        1 => PermissionsChange::Rules { add: rules(dice), remove: rules(dice), remove_all: dice.chance(20) },
        2 => PermissionsChange::AddDirectory(dice.text()),
        3 => PermissionsChange::Primary(dice.text()),
        _ => PermissionsChange::Forget,
    }
}

/// An agent's schema of settings, or something that is no schema.
fn settings(dice: &mut Dice) -> Extra {
    let choices = serde_json::json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "title": dice.text(), "enum": ["ask", "code"], "default": "ask"},
            "fast": {"type": "boolean", "title": dice.text(), "description": dice.text()},
        },
        "required": ["mode"],
    });
    match choices {
        serde_json::Value::Object(schema) if dice.chance(80) => schema,
        _ => any_extra(dice).unwrap_or_default(),
    }
}

fn chat_row(dice: &mut Dice) -> ChatRow {
    ChatRow {
        chat: ChatId::from(dice.pick(&["main", "side"])),
        uri: dice.maybe(Dice::text),
        title: normalized_title(&dice.text()).unwrap_or_default(),
        origin: None,
        status: dice.pick(&[ChatStatus::Idle, ChatStatus::InProgress, ChatStatus::InputNeeded, ChatStatus::Error]),
        is_read: dice.chance(50),
        is_archived: dice.chance(50),
        modified_at: Timestamp(dice.below(1_000) as u64),
        touched_at: Timestamp(dice.below(1_000) as u64),
    }
}

fn active_client(dice: &mut Dice) -> ActiveClient {
    let tool = |dice: &mut Dice| ClientTool {
        name: dice.text(),
        description: dice.maybe(Dice::text),
        input_schema: dice.maybe(|_| serde_json::json!({"type": "object"})),
        extra: any_extra(dice),
    };
    ActiveClient {
        client: client(dice),
        display_name: dice.maybe(Dice::text),
        tools: (0..dice.below(3)).map(|_| tool(dice)).collect(),
        extra: any_extra(dice),
    }
}

/// Any event of a chat, with ids from a small pool: some of them hit.
pub(crate) fn chat_event(dice: &mut Dice) -> ChatEvent {
    let turn = TurnId::from(dice.pick(&["turn-0", "turn-0", "turn-0", "turn-1", ""]));
    let part = PartId::from(dice.id("part-"));
    let call = ToolCallId::from(dice.id("call-"));
    let request = RequestId::from(dice.id("request-"));
    let pending = PendingId::from(dice.id("pending-"));
    match dice.below(32) {
        0..=2 => {
            let (started_at, queued) = (claimed(dice), dice.maybe(|_| pending));
            ChatEvent::TurnStarted { turn, message: message(dice), started_at, queued }
        }
        3..=5 => ChatEvent::PartAdded { turn, part: any_part(dice) },
        6 => ChatEvent::TextDelta { turn, part, content: dice.text() },
        7 => ChatEvent::ReasoningDelta { turn, part, content: dice.text() },
        8 => ChatEvent::ToolCallStarted { turn, call: new_call(call, dice) },
        9 => ChatEvent::ToolCallInputDelta { turn, call, content: dice.text() },
        10 => ChatEvent::ToolCallReady {
            turn,
            call: new_call(call, dice),
            invocation_message: dice.text(),
            input: dice.maybe(Dice::text),
            gate: dice.pick(&[Gate::None, Gate::Follows]),
        },
        11 => ChatEvent::ToolCallGated { turn, gated: gated(call, request, dice) },
        12 | 13 => {
            let verdict = verdict(&permission(request.clone(), dice), dice);
            ChatEvent::ToolCallConfirmed { turn, call, request, verdict }
        }
        14 => ChatEvent::ToolCallCompleted { turn, call, result: result(dice), run: None },
        15 => ChatEvent::ToolCallResultGated { turn, call, result: result(dice), run: None },
        16 => {
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            ChatEvent::ToolCallResultConfirmed { turn, call, result: result(dice), decision }
        }
        17 => ChatEvent::UsageReported { turn, usage: usage(dice) },
        18 => ChatEvent::InputRequested { turn, request: Box::new(input_request(request, dice)) },
        19 => {
            let outcome = dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined, InputOutcome::Cancelled]);
            ChatEvent::InputAnswered { turn, request, outcome, answers: answers(dice) }
        }
        20 => {
            let duration = dice.maybe(|dice| dice.below(1_000) as u64);
            match dice.below(3) {
                0 => ChatEvent::TurnCompleted { turn, duration },
                1 => ChatEvent::TurnCancelled { turn, duration },
                _ => ChatEvent::TurnFailed { turn, duration, error: error(dice) },
            }
        }
        25 => ChatEvent::ToolCallOutput { turn, call, output: output(dice) },
        26 => ChatEvent::InputAnswerChanged { turn, request, question: question_id(dice), answer: dice.maybe(answer) },
        27 => match dice.below(3) {
            0 => ChatEvent::ChatReadChanged(dice.chance(50)),
            1 => ChatEvent::ChatArchivedChanged(dice.chance(50)),
            _ => ChatEvent::ChatTitleChanged(normalized_title(&dice.text()).unwrap_or_default()),
        },
        21 => ChatEvent::SteeringSet(pending_message(pending, dice)),
        22 => ChatEvent::SteeringRemoved(pending),
        23 => ChatEvent::QueuedSet(pending_message(pending, dice)),
        24 => match dice.below(2) {
            0 => ChatEvent::QueuedRemoved(pending),
            _ => ChatEvent::QueueReordered((0..dice.below(4)).map(|_| PendingId::from(dice.id("pending-"))).collect()),
        },
        28 => ChatEvent::ToolCallRestated { turn, restated: restated(new_call(call, dice), dice) },
        29 => ChatEvent::ActivityChanged(dice.maybe(Dice::text)),
        30 => ChatEvent::AgentSessionChanged(dice.maybe(Dice::text)),
        _ => ChatEvent::DraftChanged(dice.maybe(message)),
    }
}

/// Any part, in any state, reachable or not.
fn any_part(dice: &mut Dice) -> Part {
    let id = PartId::from(dice.id("part-"));
    match dice.below(9) {
        0 => {
            let delivery = dice.pick(&[Delivery::Streamed, Delivery::Whole]);
            Part::Text(TextPart { id, content: dice.text(), delivery })
        }
        1 => Part::Reasoning { id, content: dice.text() },
        2 | 3 => Part::ToolCall(Box::new(any_call(dice))),
        4 => Part::Content(content(dice)),
        5 => Part::Error(error(dice)),
        6 => Part::Plan(plan(dice)),
        7 => Part::Notice(dice.text()),
        _ => Part::InputRequest(any_input_request(dice)),
    }
}

fn any_call(dice: &mut Dice) -> ToolCall {
    let option = option("option-0".to_owned(), dice);
    ToolCall {
        id: ToolCallId::from(dice.id("call-")),
        name: "tool".into(),
        display_name: "Tool".into(),
        kind: dice.maybe(tool_kind),
        language: None,
        invocation_message: dice.text(),
        intention: dice.maybe(Dice::text),
        client: if dice.chance(25) { Some(client(dice)) } else { None },
        input: None,
        confirmed: dice.maybe(|dice| Confirmation {
            by: dice.pick(&[ConfirmationReason::NotNeeded, ConfirmationReason::Person, ConfirmationReason::Setting]),
            option: dice.maybe(|_| option.clone()),
        }),
        output: dice.maybe(output),
        status: match dice.below(9) {
            0 => ToolCallStatus::Streaming,
            1 => ToolCallStatus::Ready,
            2 | 7 | 8 => ToolCallStatus::PendingConfirmation(permission(RequestId::from(dice.id("request-")), dice)),
            3 => ToolCallStatus::Running,
            4 => ToolCallStatus::PendingResultConfirmation(result(dice)),
            5 => ToolCallStatus::Completed(result(dice)),
            _ => ToolCallStatus::Cancelled(Cancellation {
                reason: dice.pick(&[CancelReason::Denied, CancelReason::Skipped, CancelReason::ResultDenied]),
                option: dice.maybe(|_| option.clone()),
                extra: any_extra(dice),
            }),
        },
        ready_rank: dice.maybe(|dice| dice.below(3) as u32),
        announced: None,
        extra: any_extra(dice),
        running_since: None,
        ran_ms: dice.maybe(|dice| dice.below(100_000) as u64),
    }
}

fn any_input_request(dice: &mut Dice) -> InputRequest {
    let request = input_request(RequestId::from(dice.id("request-")), dice);
    let outcome = dice.maybe(|dice| dice.pick(&[InputOutcome::Accepted, InputOutcome::Declined]));
    InputRequest { answers: answers(dice), outcome, ..request }
}

pub(crate) fn message(dice: &mut Dice) -> Message {
    Message {
        text: dice.text(),
        attachments: (0..dice.below(3))
            .map(|_| Attachment {
                kind: dice.pick(&[AttachmentKind::File, AttachmentKind::Directory, AttachmentKind::Selection]),
                path: dice.text(),
                display_name: dice.maybe(Dice::text),
            })
            .collect(),
        origin: if dice.chance(95) { MessageOrigin::User } else { MessageOrigin::Automation },
        model: if dice.chance(10) { Some(model(dice)) } else { None },
        extra: any_extra(dice),
    }
}

fn pending_message(id: PendingId, dice: &mut Dice) -> PendingMessage {
    PendingMessage { id, message: message(dice) }
}

fn model(dice: &mut Dice) -> ModelId {
    ModelId::from(dice.pick(&[MODELS[0], MODELS[0], MODELS[1], MODELS[1], "unheard-of"]))
}

fn new_call(id: ToolCallId, dice: &mut Dice) -> NewToolCall {
    NewToolCall {
        id,
        name: dice.text(),
        display_name: dice.text(),
        kind: dice.maybe(tool_kind),
        language: dice.maybe(Dice::text),
        client: if dice.chance(25) { Some(client(dice)) } else { None },
        extra: any_extra(dice),
    }
}

fn tool_kind(dice: &mut Dice) -> ToolKind {
    dice.pick(&[
        ToolKind::Terminal,
        ToolKind::Terminal,
        ToolKind::Terminal,
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Move,
        ToolKind::Search,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::SwitchMode,
    ])
}

/// The start of a call, repeated; its agent may add or change data.
fn as_it_began(call: &ToolCall, dice: &mut Dice) -> NewToolCall {
    NewToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        display_name: call.display_name.clone(),
        kind: call.kind,
        language: call.language.clone(),
        client: call.client.clone(),
        extra: any_extra(dice),
    }
}

/// A call with a new description.
fn restated(call: NewToolCall, dice: &mut Dice) -> Box<InvocationUpdate> {
    Box::new(InvocationUpdate {
        call,
        invocation_message: dice.text(),
        input: dice.maybe(Dice::text),
        confirmed: dice.pick(&[ConfirmationReason::NotNeeded, ConfirmationReason::Person, ConfirmationReason::Setting]),
    })
}

fn plan(dice: &mut Dice) -> Vec<PlanEntry> {
    let entry = |dice: &mut Dice| PlanEntry {
        content: dice.text(),
        priority: dice.pick(&[PlanPriority::High, PlanPriority::Medium, PlanPriority::Low]),
        status: dice.pick(&[PlanStatus::Pending, PlanStatus::InProgress, PlanStatus::Completed]),
    };
    (0..dice.below(4)).map(|_| entry(dice)).collect()
}

fn permission_kind(dice: &mut Dice) -> PermissionKind {
    dice.pick(&[
        PermissionKind::Shell,
        PermissionKind::Write,
        PermissionKind::Mcp,
        PermissionKind::Read,
        PermissionKind::Url,
    ])
}

fn option(id: String, dice: &mut Dice) -> PermissionOption {
    PermissionOption { id, label: dice.text(), allows: dice.chance(60), lasting: dice.chance(40) }
}

fn permission(id: RequestId, dice: &mut Dice) -> PermissionRequest {
    PermissionRequest {
        id,
        kind: permission_kind(dice),
        path: dice.maybe(Dice::text),
        full_command_text: dice.maybe(Dice::text),
        intention: dice.maybe(Dice::text),
        title: dice.maybe(Dice::text),
        options: (0..dice.below(4)).map(|number| option(format!("option-{number}"), dice)).collect(),
        edits: edits(dice),
        editable: dice.chance(40),
    }
}

/// A question about a call, which sometimes describes the call differently than before.
fn gated(call: ToolCallId, request: RequestId, dice: &mut Dice) -> Box<ToolCallGate> {
    Box::new(ToolCallGate {
        call,
        request: permission(request, dice),
        invocation_message: if dice.chance(30) { Some(dice.text()) } else { None },
        input: if dice.chance(30) { Some(dice.text()) } else { None },
    })
}

fn result(dice: &mut Dice) -> ToolResult {
    ToolResult {
        success: dice.chance(70),
        past_tense_message: dice.text(),
        output: dice.maybe(Dice::text),
        attached: attached(dice),
        extra: any_extra(dice),
    }
}

fn edits(dice: &mut Dice) -> Vec<FileChange> {
    let edit = |attached| match attached {
        ToolAttachment::Edit(change) => Some(change),
        ToolAttachment::Content(_) => None,
    };
    attached(dice).into_iter().filter_map(edit).collect()
}

fn attached(dice: &mut Dice) -> Vec<ToolAttachment> {
    let one = |dice: &mut Dice| match dice.chance(50) {
        true => ToolAttachment::Content(content(dice)),
        false => ToolAttachment::Edit(FileChange {
            path: dice.pick(&["/project/a file.rs", "b.rs", "", "file:///c"]).to_owned(),
            before: dice.maybe(content),
            after: dice.maybe(content),
            added: dice.below(9) as u64,
            removed: dice.below(9) as u64,
        }),
    };
    if dice.chance(50) { Vec::new() } else { (0..=dice.below(2)).map(|_| one(dice)).collect() }
}

fn output(dice: &mut Dice) -> ToolOutput {
    let piece = |dice: &mut Dice| match dice.chance(50) {
        true => dice.text().into(),
        false => serde_json::json!({"type": "text", "text": dice.text()}),
    };
    ToolOutput {
        text: dice.text(),
        pieces: dice.maybe(|dice| vec![piece(dice), piece(dice)]),
        attached: attached(dice),
    }
}

fn usage(dice: &mut Dice) -> Usage {
    Usage {
        input_tokens: dice.maybe(|dice| dice.below(500) as u64),
        output_tokens: dice.maybe(|dice| dice.below(500) as u64),
        model: dice.maybe(model),
        cache_read_tokens: dice.maybe(|dice| dice.below(500) as u64),
        cache_write_tokens: dice.maybe(|dice| dice.below(500) as u64),
        reasoning_tokens: dice.maybe(|dice| dice.below(500) as u64),
        context: dice.maybe(|dice| ContextUsage { used: dice.below(500) as u64, size: 1_000 }),
        cost: dice.maybe(cost),
    }
}

fn cost(dice: &mut Dice) -> Cost {
    let amounts = [Number::from(0), Number::from(7), Number::from(u64::MAX)];
    let fraction = Number::from_f64(dice.below(9_999) as f64 / 10_000.0);
    let amount = fraction.filter(|_| dice.chance(60)).unwrap_or_else(|| dice.pick(&amounts));
    Cost { amount, currency: dice.pick(&["USD", "USD", "EUR", ""]).to_owned() }
}

fn content(dice: &mut Dice) -> ContentRef {
    ContentRef {
        id: ContentId::from(format!("sha-{}", dice.below(9))),
        size: dice.below(1 << 20) as u64,
        mime_type: dice.maybe(|_| "text/plain".to_owned()),
    }
}

fn error(dice: &mut Dice) -> ErrorInfo {
    ErrorInfo { kind: "agent".into(), message: dice.text(), stack: dice.maybe(Dice::text) }
}

fn question_id(dice: &mut Dice) -> QuestionId {
    QuestionId::from(dice.pick(&["question-0", "question-0", "question-1", "nonsense"]))
}

fn input_request(id: RequestId, dice: &mut Dice) -> InputRequest {
    let questions = (0..dice.below(3)).map(|number| question(number, dice)).collect();
    InputRequest {
        message: dice.maybe(Dice::text),
        url: dice.maybe(Dice::text),
        questions,
        ..InputRequest::ask(id, "")
    }
}

fn question(number: usize, dice: &mut Dice) -> Question {
    let options = || {
        let recommended = [true, false].into_iter();
        let choice = |recommended| Choice {
            id: format!("choice-{recommended}"),
            label: "This".into(),
            description: None,
            recommended,
        };
        recommended.map(choice).collect()
    };
    Question {
        id: QuestionId::from(format!("question-{number}")),
        title: dice.maybe(Dice::text),
        message: dice.text(),
        required: dice.chance(50),
        kind: match dice.below(5) {
            0 => QuestionKind::Text { format: None, min: None, max: Some(9), default: dice.maybe(Dice::text) },
            1 => QuestionKind::Number { whole: dice.chance(50), min: None, max: Some(9.into()), default: None },
            2 => QuestionKind::YesOrNo { default: dice.maybe(|dice| dice.chance(50)) },
            3 => QuestionKind::One { options: options(), freeform: dice.chance(50) },
            _ => QuestionKind::Several { options: options(), freeform: dice.chance(50), min: Some(1), max: None },
        },
    }
}

fn answers(dice: &mut Dice) -> Answers {
    (0..dice.below(3)).map(|_| (question_id(dice), answer(dice))).collect()
}

fn answer(dice: &mut Dice) -> Answer {
    let freeform = (0..dice.below(2)).map(|_| dice.text()).collect();
    let value = match dice.below(5) {
        0 => AnswerValue::Text(dice.text()),
        1 => AnswerValue::Number(Number::from(dice.below(9))),
        2 => AnswerValue::YesOrNo(dice.chance(50)),
        3 => AnswerValue::One { id: "choice-true".into(), freeform },
        _ => AnswerValue::Several { ids: vec!["choice-true".into(), "choice-false".into()], freeform },
    };
    match dice.below(4) {
        0 => Answer::Draft(value),
        1 => Answer::Skipped { freeform: vec![dice.text()] },
        _ => Answer::Submitted(value),
    }
}
