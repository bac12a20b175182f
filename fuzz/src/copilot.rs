//! The fuzz bodies of the Copilot SDK's protocol.

use std::fmt::Debug;

use grove_core::{InputRequest, PermissionKind, PermissionRequest};
use grove_wire::copilot::framing::{Decoder, frame};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::{Event, decode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The maximum length of a body here.
const MAX_BODY: usize = 1_000;

/// Any bytes as a stream of frames, complete and cut everywhere: both give the same, and frames survive a round trip.
pub fn copilot_frames(data: &[u8]) {
    let (whole, ended) = frames(&[data]);
    let pieces: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(frames(&pieces), (whole.clone(), ended));
    let again: Vec<u8> = whole.iter().flat_map(|body| frame(body)).collect();
    assert_eq!(frames(&[&again]), (whole, true));
}

/// The bodies in a stream, and whether it could be read to its end.
fn frames(pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let mut decoder = Decoder::new(MAX_BODY);
    let mut bodies = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(body)) => bodies.push(body),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (bodies, false);
                }
            }
        }
    }
    (bodies, true)
}

macro_rules! read_as {
    ($text:expr, $($kind:ty),* $(,)?) => {
        0 $(+ usize::from(reread::<$kind>($text).is_some()))*
    };
}

/// Any text, line by line, as the params of every method and as an event: it is parsed or refused.
///
/// It survives a round trip, and a client's answer has a meaning or is refused.
pub fn copilot(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        copilot_shapes(line);
    }
}

/// The number of shapes that a text can be parsed as.
pub fn copilot_shapes(text: &str) -> usize {
    if let Some(answer) = reread::<HandlePermissionParams>(text) {
        let _ = decode::verdict(answer.result, &permission());
    }
    if let Some(answer) = reread::<HandleToolCallParams>(text) {
        decode::tool_result("tool", answer.result, answer.error);
    }
    if let Some(sent) = reread::<SendParams>(text) {
        decode::message(sent.prompt, sent.attachments.unwrap_or_default());
    }
    if let Some(answer) = reread::<HandleUserInputParams>(text) {
        let asked = InputRequest::ask("r".into(), "why?");
        asked.questions.iter().for_each(|question| drop(decode::answer(question, &answer.response)));
    }
    read_as!(
        text,
        Event,
        ConnectParams,
        PingParams,
        OpenParams,
        SendParams,
        AbortParams,
        SessionParams,
        ShutdownParams,
        ListParams,
        ForkParams,
        NameSetParams,
        SwitchModelParams,
        SetModeParams,
        UpdateOptionsParams,
        PlanUpdateParams,
        WorkspacePathParams,
        CreateFileParams,
        CreateDirectoryParams,
        RemovePathParams,
        RenamePathParams,
        SaveLargePasteParams,
        ReadCheckpointParams,
        ReadEventsParams,
        RegisterInterestParams,
        ReleaseInterestParams,
        CompactParams,
        TruncateParams,
        RewindParams,
        HandlePermissionParams,
        HandleToolCallParams,
        HandleUserInputParams,
    )
}

fn reread<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) -> Option<T> {
    let read: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&read).expect("what was read can be written");
    assert_eq!(serde_json::from_str::<T>(&written).ok().as_ref(), Some(&read), "{written}");
    Some(read)
}

fn permission() -> PermissionRequest {
    PermissionRequest {
        id: "r".into(),
        kind: PermissionKind::Shell,
        path: None,
        full_command_text: None,
        intention: None,
        title: None,
        options: vec![],
        edits: vec![],
        editable: false,
    }
}
