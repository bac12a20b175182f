//! The example of an embedded host, with a custom agent.

use grove_client::{Ahp, Client, Endpoint, Options};
use grove_wire::ahp::ROOT;

use crate::ahp::{ready, start, text};
use crate::harness::soon;

#[allow(dead_code, unreachable_pub, reason = "the test does what its `main` does, and looks at what comes of it")]
#[path = "../../../server/examples/embed.rs"]
mod embed;

#[tokio::test]
async fn an_embedded_host_has_its_own_agent_which_answers() {
    let (address, token) = embed::start().await.unwrap();
    let endpoint = Endpoint::tcp(&address, Some(&token)).unwrap();
    let client = soon("a connection", Client::connect(endpoint, Ahp::default(), Options::default())).await.unwrap();
    let root = client.subscribe(ROOT).await.unwrap();
    let agents: Vec<String> =
        root.read(|state| state.root().unwrap().agents.iter().map(|agent| agent.provider.clone()).collect());
    assert_eq!(agents, ["echo"]);
    let mut talk = ready(&client, "echo:/1").await;
    talk.chat.dispatch(start("t1", "hello")).unwrap();
    talk.turn_end("t1").await;
    assert_eq!(text(&talk.confirmed().turns[0].response_parts), "hello hello");
    talk.must_agree().await;
}
