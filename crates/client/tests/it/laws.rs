//! Law 1 on the client: whatever clients do, and wherever their connections are cut, everyone converges, and every
//! dispatched action gets an outcome.

use std::time::Duration;

use grove_client::{DispatchHandle, Subscription, V1};
use grove_host::{Config, Limits};
use grove_wire::v1::SessionChange;
use proptest::prelude::*;

use crate::harness::{TestHost, confirmed, must_agree, ready_session, script, soon, until};
use crate::steps::{Step, settle, step, steps};

const URI: &str = "scripted:/s";

/// Dispatches the action of a step, if it is possible now.
fn act(session: &Subscription<V1>, turn: usize, step: &Step) -> Option<DispatchHandle> {
    let active = session.read(|state| state.session().unwrap().active_turn.clone());
    let change = match step {
        Step::Start { script: which, .. } => script(&format!("t{turn}"), steps(*which)),
        Step::Cancel { .. } => SessionChange::TurnCancelled { turn_id: active?.id },
        Step::Answer { approved, .. } => {
            let active = active?;
            let request_id = active.pending_permissions.keys().next()?.clone();
            SessionChange::PermissionResolved { turn_id: active.id, request_id, approved: *approved, policy_rule: None }
        }
        Step::Set { plain: known, .. } => {
            let model = if *known { "scripted/slow-start" } else { "nothing" };
            SessionChange::ModelChanged { model: model.to_owned() }
        }
        Step::Pass { .. } | Step::Up(_) | Step::Down(_) | Step::Cut | Step::Restart => return None,
    };
    session.dispatch(change).ok()
}

async fn converge(steps: Vec<Step>, replay: usize) {
    let config = || Config { limits: Limits { replay_actions: replay, ..Limits::default() }, ..Config::default() };
    let mut host = TestHost::in_memory(config()).await;
    let first = host.client_in_memory("a").await;
    let second = host.client_in_memory("b").await;
    let mut sessions = vec![ready_session(&first, URI).await, second.subscribe(URI).await.unwrap()];
    let mut sent = Vec::new();
    for (turn, step) in steps.iter().enumerate() {
        match step.client() {
            Some(client) => sent.extend(act(&sessions[client], turn, step)),
            None => step.befall(&mut host, &config).await,
        }
    }
    settle(&host, sent).await;
    for session in &mut sessions {
        soon("a connection", session.client().connected()).await.unwrap();
    }
    // An endless turn is cancelled, so that states can be compared.
    soon("rest", async {
        while let Some(active) = sessions[0].read_confirmed(|s, _| s.session().unwrap().active_turn.clone()) {
            let cancel = SessionChange::TurnCancelled { turn_id: active.id };
            sessions[0].dispatch(cancel).unwrap().await;
            // A paused clock stands still while no task sleeps.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    for session in &mut sessions {
        until(session, "rest", |state| state.active_turn.is_none()).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for session in &sessions {
        must_agree(session).await;
        assert_eq!(session.pending(), 0);
        assert_eq!(session.read(|state| state.session().unwrap().clone()), confirmed(session));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn clients_that_are_cut_off_held_up_and_restarted_under_converge(
        steps in prop::collection::vec(step(), 1..40),
        replay in prop_oneof![Just(3usize), Just(10_000)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converge(steps, replay));
    }
}
