//! Random runs: commands that mostly fit the state they meet, and events that mostly do not.
//!
//! Plain functions over a small generator, so that a step is one number: a failing run shrinks by losing steps.
//! The tests of `grove-wire` include this file as well; it uses nothing but `grove_core`.

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

    /// A short text, sometimes empty, sometimes with what JSON must escape.
    pub(crate) fn text(&mut self) -> String {
        let words = ["", "a", "word ", "two words", "\"quoted\"\n", "naïve 🌲", "</x>", "{\"k\":[]}"];
        self.pick(&words).to_owned()
    }

    /// An id that somebody has, or a strange one.
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
    }
}

/// Something that somebody might want of `session` as it is now, and who that is.
pub(crate) fn command(session: &Session, dice: &mut Dice) -> (Command, Who) {
    let client = Who::Client("client".into());
    let at = dice.below(session.chats.len());
    let chat = &session.chats[at];
    let id = if dice.chance(2) { ChatId::from("elsewhere") } else { chat.id.clone() };
    match &chat.active {
        Some(active) if dice.chance(70) => (report(id, active, dice), Who::Agent),
        Some(active) => (request(session, id, chat, Some(active), dice), client),
        None if dice.chance(60) => {
            let turn = TurnId::from(format!("{}-turn-{}", chat.id, chat.turns.len()));
            (Command::StartTurn { chat: id, turn, message: message(dice) }, client)
        }
        None if dice.chance(30) => (Command::ReportSession(session_event(dice)), Who::Host),
        None => (request(session, id, chat, None, dice), client),
    }
}

/// What a person does.
fn request(session: &Session, id: ChatId, chat: &Chat, active: Option<&ActiveTurn>, dice: &mut Dice) -> Command {
    let turn = match active {
        Some(active) if dice.chance(90) => active.id.clone(),
        _ => TurnId::from(dice.id("turn-")),
    };
    let pending = match dice.one_of(chat.queued.iter().map(|queued| queued.id.clone()).collect()) {
        Some(queued) if dice.chance(80) => queued,
        _ => PendingId::from(dice.id("pending-")),
    };
    match dice.below(14) {
        0..=3 => {
            let asked = active.map_or_else(Vec::new, open_permissions);
            let request = match dice.one_of(asked) {
                Some(request) if dice.chance(90) => request,
                _ => request_id(chat, active, dice),
            };
            let decision = dice.pick(&[Decision::Approved, Decision::Approved, Decision::Denied]);
            Command::ResolvePermission { chat: id, turn, request, decision }
        }
        4 => {
            let request = request_id(chat, active, dice);
            Command::AnswerInput { chat: id, request, response: response(dice) }
        }
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
        12 => match dice.below(3) {
            0 => Command::Dequeue { chat: id, id: pending },
            1 => {
                let mut order: Vec<PendingId> = chat.queued.iter().map(|queued| queued.id.clone()).collect();
                order.reverse();
                order.truncate(dice.below(order.len() + 1));
                Command::ReorderQueue { chat: id, order }
            }
            _ => Command::SetDraft { chat: id, draft: dice.maybe(message) },
        },
        _ => Command::StartTurn { chat: id, turn, message: message(dice) },
    }
}

fn open_permissions(active: &ActiveTurn) -> Vec<RequestId> {
    let asked = |part: &Part| match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => Some(request.id.clone()),
            _ => None,
        },
        _ => None,
    };
    active.parts().iter().filter_map(asked).collect()
}

/// What an agent reports of a running turn: mostly what fits it.
fn report(chat: ChatId, active: &ActiveTurn, dice: &mut Dice) -> Command {
    let turn = if dice.chance(98) { active.id.clone() } else { TurnId::from(dice.id("turn-")) };
    let event = match dice.below(40) {
        0 => ChatEvent::TurnCompleted { turn },
        1 => ChatEvent::TurnFailed { turn, error: error(dice) },
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
                call: new_call(id, dice),
                invocation_message: dice.text(),
                input: dice.maybe(Dice::text),
                gate: dice.pick(&[Gate::None, Gate::Follows]),
            }
        }
        25..=28 => {
            let fits = |status: &ToolCallStatus| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running);
            let call = call_id(active, dice, fits);
            let id = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::ToolCallGated { turn, call, request: permission(id, dice) }
        }
        29..=31 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallCompleted { turn, call, result: result(dice) }
        }
        32 | 33 => {
            let call = call_id(active, dice, |status| *status == ToolCallStatus::Running);
            ChatEvent::ToolCallResultGated { turn, call, result: result(dice) }
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
        _ => {
            let request = RequestId::from(format!("{chat}-request-{}", dice.below(60)));
            ChatEvent::InputRequested { turn, request, question: dice.text() }
        }
    };
    Command::Report { chat, event }
}

fn whole_or_new_part(active: &ActiveTurn, dice: &mut Dice) -> Part {
    let id = PartId::from(format!("part-{}", active.parts().len()));
    match dice.below(12) {
        0..=3 => {
            let content = if dice.chance(80) { String::new() } else { dice.text() };
            Part::Text(TextPart { id, content, delivery: Delivery::Streamed })
        }
        4 | 5 => Part::Text(TextPart { id, content: dice.text(), delivery: Delivery::Whole }),
        6..=8 => Part::Reasoning { id, content: if dice.chance(80) { String::new() } else { dice.text() } },
        9 | 10 => Part::Content(content(dice)),
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

/// Anything that may be said of a session itself, except that it comes or goes.
pub(crate) fn session_event(dice: &mut Dice) -> SessionEvent {
    match dice.below(20) {
        0 => SessionEvent::CreationFailed(error(dice)),
        1 => SessionEvent::ChatRowChanged(ChatRow {
            chat: ChatId::from(dice.pick(&["main", "side"])),
            title: dice.text(),
            status: dice.pick(&[ChatStatus::Idle, ChatStatus::InProgress, ChatStatus::InputNeeded, ChatStatus::Error]),
            modified_at: Timestamp(dice.below(1_000) as u64),
        }),
        2 => SessionEvent::InputNeededSet(InputNeeded {
            request: RequestId::from(dice.id("request-")),
            chat: ChatId::from("main"),
            turn: TurnId::from(dice.id("turn-")),
            about: match dice.maybe(|dice| ToolCallId::from(dice.id("call-"))) {
                Some(call) => InputSubject::ToolConfirmation(call),
                None => InputSubject::Question,
            },
        }),
        3 => SessionEvent::InputNeededRemoved(RequestId::from(dice.id("request-"))),
        4 => SessionEvent::Listed,
        5..=9 => SessionEvent::Ready,
        10..=12 => SessionEvent::TitleChanged(dice.text()),
        13..=15 => SessionEvent::ModelChanged(model(dice)),
        16 | 17 => SessionEvent::ReadChanged(dice.chance(50)),
        _ => SessionEvent::ArchivedChanged(dice.chance(50)),
    }
}

/// Any event of a chat, with ids from a small pool: some of them hit.
pub(crate) fn chat_event(dice: &mut Dice) -> ChatEvent {
    let turn = TurnId::from(dice.pick(&["turn-0", "turn-0", "turn-0", "turn-1", ""]));
    let part = PartId::from(dice.id("part-"));
    let call = ToolCallId::from(dice.id("call-"));
    let request = RequestId::from(dice.id("request-"));
    let pending = PendingId::from(dice.id("pending-"));
    match dice.below(26) {
        0..=2 => ChatEvent::TurnStarted { turn, message: message(dice) },
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
        11 => ChatEvent::ToolCallGated { turn, call, request: permission(request, dice) },
        12 | 13 => {
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            ChatEvent::ToolCallConfirmed { turn, call, request, decision }
        }
        14 => ChatEvent::ToolCallCompleted { turn, call, result: result(dice) },
        15 => ChatEvent::ToolCallResultGated { turn, call, result: result(dice) },
        16 => {
            let decision = dice.pick(&[Decision::Approved, Decision::Denied]);
            ChatEvent::ToolCallResultConfirmed { turn, call, result: result(dice), decision }
        }
        17 => ChatEvent::UsageReported { turn, usage: usage(dice) },
        18 => ChatEvent::InputRequested { turn, request, question: dice.text() },
        19 => ChatEvent::InputAnswered { turn, request, response: response(dice) },
        20 => match dice.below(3) {
            0 => ChatEvent::TurnCompleted { turn },
            1 => ChatEvent::TurnCancelled { turn },
            _ => ChatEvent::TurnFailed { turn, error: error(dice) },
        },
        21 => ChatEvent::SteeringSet(pending_message(pending, dice)),
        22 => ChatEvent::SteeringRemoved(pending),
        23 => ChatEvent::QueuedSet(pending_message(pending, dice)),
        24 => match dice.below(2) {
            0 => ChatEvent::QueuedRemoved(pending),
            _ => ChatEvent::QueueReordered((0..dice.below(4)).map(|_| PendingId::from(dice.id("pending-"))).collect()),
        },
        _ => ChatEvent::DraftChanged(dice.maybe(message)),
    }
}

/// Any part, in any state, whether it could come about in that way or not.
fn any_part(dice: &mut Dice) -> Part {
    let id = PartId::from(dice.id("part-"));
    match dice.below(7) {
        0 => {
            let delivery = dice.pick(&[Delivery::Streamed, Delivery::Whole]);
            Part::Text(TextPart { id, content: dice.text(), delivery })
        }
        1 => Part::Reasoning { id, content: dice.text() },
        2 | 3 => Part::ToolCall(Box::new(ToolCall {
            id: ToolCallId::from(dice.id("call-")),
            name: "tool".into(),
            display_name: "Tool".into(),
            kind: None,
            language: None,
            invocation_message: dice.text(),
            input: None,
            status: match dice.below(9) {
                0 => ToolCallStatus::Streaming,
                1 => ToolCallStatus::Ready,
                2 | 7 | 8 => {
                    ToolCallStatus::PendingConfirmation(permission(RequestId::from(dice.id("request-")), dice))
                }
                3 => ToolCallStatus::Running,
                4 => ToolCallStatus::PendingResultConfirmation(result(dice)),
                5 => ToolCallStatus::Completed(result(dice)),
                _ => ToolCallStatus::Cancelled(dice.pick(&[CancelReason::Denied, CancelReason::ResultDenied])),
            },
            ready_rank: dice.maybe(|dice| dice.below(3) as u32),
        })),
        4 => Part::Content(content(dice)),
        5 => Part::Error(error(dice)),
        _ => Part::InputRequest(InputRequest {
            id: RequestId::from(dice.id("request-")),
            question: dice.text(),
            response: dice.maybe(response),
        }),
    }
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
        kind: dice.maybe(|_| ToolKind::Terminal),
        language: dice.maybe(Dice::text),
    }
}

fn permission(id: RequestId, dice: &mut Dice) -> PermissionRequest {
    PermissionRequest {
        id,
        kind: dice.pick(&[
            PermissionKind::Shell,
            PermissionKind::Write,
            PermissionKind::Mcp,
            PermissionKind::Read,
            PermissionKind::Url,
        ]),
        path: dice.maybe(Dice::text),
        full_command_text: dice.maybe(Dice::text),
        intention: dice.maybe(Dice::text),
    }
}

fn result(dice: &mut Dice) -> ToolResult {
    ToolResult { success: dice.chance(70), past_tense_message: dice.text(), output: dice.maybe(Dice::text) }
}

fn usage(dice: &mut Dice) -> Usage {
    Usage {
        input_tokens: dice.maybe(|dice| dice.below(500) as u64),
        output_tokens: dice.maybe(|dice| dice.below(500) as u64),
        model: dice.maybe(model),
        cache_read_tokens: dice.maybe(|dice| dice.below(500) as u64),
    }
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

fn response(dice: &mut Dice) -> InputResponse {
    match dice.below(3) {
        0 => InputResponse::Accept { text: dice.text() },
        1 => InputResponse::Decline,
        _ => InputResponse::Cancel,
    }
}
