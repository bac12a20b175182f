//! Bodies that are too large for the state, and fetching them.

use grove_testkit::Client;
use grove_wire::v1::ResponsePart;
use serde_json::json;

use crate::support::*;

const INLINE: usize = 64 << 10;
const PREVIEW: usize = 4 << 10;

/// The URI, size and type of the only part, which must be a reference.
fn reference(parts: &[ResponsePart]) -> (String, Option<u64>, Option<String>) {
    match parts {
        [ResponsePart::ContentRef { uri, size_hint, mime_type }] => (uri.clone(), *size_hint, mime_type.clone()),
        other => panic!("no reference: {other:?}"),
    }
}

/// Runs a turn with a text part, and returns the part's URI.
async fn text_part(client: &mut Client, turn: &str, text: &str) -> String {
    let turn = client.run_script(S, turn, json!([{"part": {"mimeType": "text/csv", "text": text}}])).await;
    reference(&turn.response_parts).0
}

#[tokio::test]
async fn a_text_up_to_64_kib_is_inline_and_a_longer_one_by_reference() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let fits = "x".repeat(INLINE);
    let turn = client.run_script(S, "t", json!([{"part": {"mimeType": "text/csv", "text": fits}}])).await;
    assert_eq!(turn.response_parts, [ResponsePart::Markdown { content: fits }]);

    let large = "y".repeat(INLINE + 1);
    let turn = client.run_script(S, "u", json!([{"part": {"mimeType": "text/csv", "text": large}}])).await;
    let (uri, size, mime_type) = reference(&turn.response_parts);
    assert_eq!((size, mime_type.as_deref()), (Some(large.len() as u64), Some("text/csv")));
    assert!(uri.strip_prefix("grove-content://s/").is_some_and(|id| !id.is_empty()), "{uri}");
    let content = client.get("fetchContent", json!({"uri": uri})).await;
    assert_eq!(content, json!({"data": large, "encoding": "utf-8", "mimeType": "text/csv"}));
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn bytes_are_by_reference_and_base64_unless_they_are_text() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for (turn, base64, content) in [
        ("t", "/wD+", json!({"data": "/wD+", "encoding": "base64", "mimeType": "image/png"})),
        ("u", "w6RiYw==", json!({"data": "äbc", "encoding": "utf-8", "mimeType": "image/png"})),
    ] {
        let turn = client.run_script(S, turn, json!([{"part": {"mimeType": "image/png", "base64": base64}}])).await;
        let (uri, _, mime_type) = reference(&turn.response_parts);
        assert_eq!(mime_type.as_deref(), Some("image/png"));
        assert_eq!(client.get("fetchContent", json!({"uri": uri})).await, content);
    }
}

#[tokio::test]
async fn a_large_tool_output_is_a_preview_and_a_reference_to_the_whole() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    // An odd number of bytes before the two-byte characters, so that the cut would fall into one.
    let output = format!("a{}", "é".repeat(INLINE));
    client.envelopes.clear();
    let turn = client.run_script(S, "t", json!([{"tool": {"name": "cat", "output": output}}, {"say": "long"}])).await;
    let preview = turn.tool_calls[0].tool_output.clone().unwrap();
    assert_eq!((preview.len(), output.starts_with(&preview)), (PREVIEW - 1, true));
    assert!(turn.tool_calls[0].success);
    let (uri, size) = match &turn.response_parts[..] {
        [ResponsePart::Markdown { content }, ResponsePart::ContentRef { uri, size_hint, .. }] if content == "long" => {
            (uri.clone(), *size_hint)
        }
        other => panic!("no reference: {other:?}"),
    };
    assert_eq!(size, Some(output.len() as u64));
    let content = client.get("fetchContent", json!({"uri": uri})).await;
    assert_eq!((content["data"].as_str(), &content["encoding"]), (Some(output.as_str()), &json!("utf-8")));
    assert_eq!(host.snapshot(S).await, *client.session(S));

    let turn = client.run_script(S, "u", json!([{"tool": {"name": "cat", "output": "z", "repeat": INLINE}}])).await;
    assert_eq!(turn.tool_calls[0].tool_output.as_ref().map(String::len), Some(INLINE), "up to the limit it is inline");
    assert_eq!(turn.response_parts, []);
}

#[tokio::test]
async fn a_tool_output_of_many_megabytes_can_be_fetched_whole() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let turn = client
        .run_script(S, "t", json!([{"tool": {"name": "cat", "output": "0123456789abcdef", "repeat": 1 << 20}}]))
        .await;
    let (uri, size, _) = reference(&turn.response_parts);
    assert_eq!(size, Some(16 << 20));
    let content = client.get("fetchContent", json!({"uri": uri})).await;
    assert!(content["data"].as_str() == Some(&"0123456789abcdef".repeat(1 << 20)), "it is not the whole");
}

#[tokio::test]
async fn content_can_be_fetched_while_its_turn_runs_and_by_anybody() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"part": {"mimeType": "a/b", "base64": "/wA="}}, {"hang": true}])).await;
    client.until(|client| client.session(S).active_turn.as_ref().is_some_and(|a| !a.response_parts.is_empty())).await;
    let (uri, _, _) = reference(&client.active(S).response_parts);
    let mut other = host.client("not-subscribed").await;
    assert_eq!(other.get("fetchContent", json!({"uri": uri})).await["data"], "/wA=");
}

#[tokio::test]
async fn unknown_content_is_32006() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let uri = text_part(&mut client, "t", &"x".repeat(INLINE + 1)).await;
    let hash = uri.rsplit('/').next().unwrap();
    let unknown = [
        "grove-content://s/none-such".to_owned(),
        format!("grove-content://none-such/{hash}"),
        format!("{uri}0"),
        "grove-content://s/../s".to_owned(),
    ];
    for uri in unknown {
        assert_eq!(client.refused("fetchContent", json!({"uri": uri})).await.code, -32006, "{uri}");
    }
}

#[tokio::test]
async fn content_belongs_to_its_session_and_goes_with_it() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.ready_session("scripted:/other").await;
    let uri = text_part(&mut client, "t", &"x".repeat(INLINE + 1)).await;
    let elsewhere = uri.replace("://s/", "://other/");
    assert_eq!(client.refused("fetchContent", json!({"uri": elsewhere})).await.code, -32006);
    client.get("disposeSession", json!({"session": S})).await;
    assert_eq!(client.refused("fetchContent", json!({"uri": uri})).await.code, -32006);
    client.sessions.remove(S);
    client.ready_session(S).await;
    let error = client.refused("fetchContent", json!({"uri": uri})).await;
    assert_eq!(error.code, -32006, "a new session under the old URI does not bring it back");
}
