//! Write-ahead reconciliation of one resource. Pure: no connection, no clock.
//!
//! The host's order is the truth. What this client dispatched and the host has not answered lies on top of it:
//! `optimistic = confirmed + pending`. An echo moves an action from the pending ones into the confirmed state, a
//! rejection takes it away, and whatever comes from elsewhere changes what the pending ones stand on.

use std::collections::VecDeque;

use crate::dialect::Model;

/// A resource as the host has it, and as it will be if the host takes what is pending.
pub struct ReconciledState<M: Model> {
    confirmed: M::ResourceState,
    /// The number up to which the confirmed state is.
    seq: u64,
    pending: VecDeque<PendingAction<M::Action>>,
    /// Only where something is pending, and only once somebody looked since the last change: a stream of foreign
    /// actions costs no copies while nobody looks, and none at all while nothing is pending.
    optimistic: Option<M::ResourceState>,
}

/// An action that was sent and not answered.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAction<A> {
    pub client_seq: u64,
    pub action: A,
}

/// What an action of the host's order did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// It changed the confirmed state.
    Changed,
    /// The confirmed state had it already.
    AlreadyKnown,
}

impl<M: Model> ReconciledState<M> {
    /// A resource of which nothing is pending.
    pub fn new(confirmed: M::ResourceState, seq: u64) -> Self {
        Self { confirmed, seq, pending: VecDeque::new(), optimistic: None }
    }

    /// The last state that the host has said.
    pub fn confirmed(&self) -> &M::ResourceState {
        &self.confirmed
    }

    /// The number up to which [`confirmed`](Self::confirmed) is.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What the host has not answered, oldest first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &PendingAction<M::Action>> {
        self.pending.iter()
    }

    /// The confirmed state with everything pending on top.
    pub fn optimistic(&mut self) -> &M::ResourceState {
        if self.pending.is_empty() {
            return &self.confirmed;
        }
        self.optimistic.get_or_insert_with(|| {
            let mut state = self.confirmed.clone();
            self.pending.iter().for_each(|pending| M::reduce(&mut state, &pending.action));
            state
        })
    }

    /// An action of this client is on its way.
    pub fn dispatched(&mut self, client_seq: u64, action: M::Action) {
        if let Some(optimistic) = &mut self.optimistic {
            M::reduce(optimistic, &action);
        }
        self.pending.push_back(PendingAction { client_seq, action });
    }

    /// An action of the host's order. `own` is its `clientSeq` where this client dispatched it: then it is pending no
    /// more, and what the host says of it counts, which may be more than was sent.
    pub fn take(&mut self, server_seq: u64, own: Option<u64>, action: &M::Action) -> ApplyOutcome {
        if let Some(client_seq) = own {
            self.settle(client_seq);
        }
        if server_seq <= self.seq {
            return ApplyOutcome::AlreadyKnown;
        }
        self.seq = server_seq;
        M::reduce(&mut self.confirmed, action);
        self.optimistic = None;
        ApplyOutcome::Changed
    }

    /// The host refused an action of this client, or took it without a word: its effect is gone. Gives whether it was
    /// pending.
    pub fn settle(&mut self, client_seq: u64) -> bool {
        // Answers come in the order of the questions but for hosts that refuse at once, so it is nearly always the
        // first.
        let Some(at) = self.pending.iter().position(|pending| pending.client_seq == client_seq) else { return false };
        self.pending.remove(at);
        self.optimistic = None;
        true
    }

    /// The host's state afresh, on the same connection. An answer that came before it had its place before it, so
    /// what is pending still is.
    pub fn replace(&mut self, state: M::ResourceState, seq: u64) {
        self.confirmed = state;
        self.seq = seq;
        self.optimistic = None;
    }

    /// Gives up everything that is pending: the connection that its answers would have come on is gone.
    pub fn give_up(&mut self) -> Vec<PendingAction<M::Action>> {
        self.optimistic = None;
        self.pending.drain(..).collect()
    }
}

impl<M: Model> std::fmt::Debug for ReconciledState<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { confirmed, seq, pending, optimistic: _ } = self;
        let mut shown = f.debug_struct("Reconciled");
        shown.field("seq", seq).field("confirmed", confirmed).field("pending", pending).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// Numbers in a row; what order they came in shows.
    #[derive(Debug)]
    struct AppendModel;

    #[derive(Clone, Debug)]
    enum Act {
        Push(u8),
        Double,
        /// Only where it fits, as most actions of a session.
        PopIf(u8),
    }

    impl Model for AppendModel {
        type ResourceState = Vec<u8>;
        type Action = Act;

        fn reduce(state: &mut Vec<u8>, action: &Act) {
            match action {
                Act::Push(number) => state.push(*number),
                Act::Double => state.iter_mut().for_each(|number| *number = number.wrapping_mul(2)),
                Act::PopIf(number) => {
                    state.pop_if(|last| last == number);
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum ReconcileStep {
        Dispatch(Act),
        /// The host takes one of those that are pending; it may say more of it than was sent.
        Echo(prop::sample::Index, Option<Act>),
        Reject(prop::sample::Index),
        Foreign(Act),
        /// Something that a snapshot had already.
        Old(Act),
        Snapshot(Vec<u8>),
        Reconnect,
        Look,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![(0..4u8).prop_map(Act::Push), Just(Act::Double), (0..4u8).prop_map(Act::PopIf)]
    }

    fn step() -> impl Strategy<Value = ReconcileStep> {
        let index = any::<prop::sample::Index>;
        prop_oneof![
            4 => act().prop_map(ReconcileStep::Dispatch),
            3 => (index(), prop::option::of(act())).prop_map(|(which, said)| ReconcileStep::Echo(which, said)),
            2 => index().prop_map(ReconcileStep::Reject),
            4 => act().prop_map(ReconcileStep::Foreign),
            1 => act().prop_map(ReconcileStep::Old),
            1 => prop::collection::vec(0..4u8, 0..4).prop_map(ReconcileStep::Snapshot),
            1 => Just(ReconcileStep::Reconnect),
            3 => Just(ReconcileStep::Look),
        ]
    }

    proptest! {
        #[test]
        fn the_optimistic_state_is_always_the_confirmed_one_with_everything_pending_folded_in(
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let mut row = ReconciledState::<AppendModel>::new(vec![1], 5);
            // The same, in the plainest way.
            let (mut confirmed, mut pending, mut seq, mut sent) = (vec![1], Vec::<(u64, Act)>::new(), 5, 0);
            for step in steps {
                match step {
                    ReconcileStep::Dispatch(act) => {
                        sent += 1;
                        row.dispatched(sent, act.clone());
                        pending.push((sent, act));
                    }
                    ReconcileStep::Echo(which, said) if !pending.is_empty() => {
                        let (client_seq, act) = pending.remove(which.index(pending.len()));
                        let act = said.unwrap_or(act);
                        seq += 1;
                        prop_assert_eq!(row.take(seq, Some(client_seq), &act), ApplyOutcome::Changed);
                        AppendModel::reduce(&mut confirmed, &act);
                    }
                    ReconcileStep::Reject(which) if !pending.is_empty() => {
                        let (client_seq, _) = pending.remove(which.index(pending.len()));
                        prop_assert!(row.settle(client_seq));
                        prop_assert!(!row.settle(client_seq), "once");
                    }
                    ReconcileStep::Foreign(act) => {
                        seq += 2;
                        prop_assert_eq!(row.take(seq, None, &act), ApplyOutcome::Changed);
                        AppendModel::reduce(&mut confirmed, &act);
                    }
                    ReconcileStep::Old(act) => prop_assert_eq!(row.take(seq, None, &act), ApplyOutcome::AlreadyKnown),
                    ReconcileStep::Snapshot(state) => {
                        seq += 3;
                        row.replace(state.clone(), seq);
                        confirmed = state;
                    }
                    ReconcileStep::Reconnect => {
                        let lost: Vec<u64> = row.give_up().into_iter().map(|lost| lost.client_seq).collect();
                        prop_assert_eq!(lost, pending.drain(..).map(|(client_seq, _)| client_seq).collect::<Vec<_>>());
                    }
                    ReconcileStep::Look => {
                        row.optimistic();
                    }
                    ReconcileStep::Echo(..) | ReconcileStep::Reject(_) => {}
                }
                // Cloned before it is looked at, so that what is computed late is put to the test too.
                prop_assert_eq!(row.confirmed(), &confirmed);
                prop_assert_eq!(row.seq(), seq);
                let mut folded = confirmed.clone();
                pending.iter().for_each(|(_, act)| AppendModel::reduce(&mut folded, act));
                let mut looked = ReconciledState::<AppendModel> {
                    confirmed: row.confirmed.clone(),
                    seq: row.seq,
                    pending: row.pending.clone(),
                    optimistic: row.optimistic.clone(),
                };
                prop_assert_eq!(looked.optimistic(), &folded);
            }
        }
    }

    /// A state that counts its copies.
    #[derive(Debug, Default, PartialEq)]
    struct Heavy(u64);

    static COPIES: AtomicUsize = AtomicUsize::new(0);

    impl Clone for Heavy {
        fn clone(&self) -> Self {
            COPIES.fetch_add(1, Ordering::SeqCst);
            Self(self.0)
        }
    }

    impl Model for Heavy {
        type ResourceState = Heavy;
        type Action = u64;

        fn reduce(state: &mut Heavy, action: &u64) {
            state.0 += action;
        }
    }

    #[test]
    fn a_state_is_copied_only_when_somebody_looks_while_something_is_pending() {
        let copies = || COPIES.load(Ordering::SeqCst);
        let mut heavy = ReconciledState::<Heavy>::new(Heavy(0), 0);
        for seq in 1..100 {
            heavy.take(seq, None, &1);
            assert_eq!(heavy.optimistic().0, seq);
        }
        assert_eq!(copies(), 0, "nothing is pending");
        heavy.dispatched(1, 1_000);
        (100..200).for_each(|seq| assert_eq!(heavy.take(seq, None, &1), ApplyOutcome::Changed));
        assert_eq!(copies(), 0, "nobody looks");
        assert_eq!(heavy.optimistic().0, 1_199);
        assert_eq!(heavy.optimistic().0, 1_199);
        heavy.dispatched(2, 1_000);
        assert_eq!(heavy.optimistic().0, 2_199);
        assert_eq!(copies(), 1, "once, however often it is looked at and however much is added");
        heavy.take(200, Some(1), &1_000);
        heavy.take(201, Some(2), &1_000);
        assert_eq!(heavy.optimistic().0, 2_199);
        assert_eq!(copies(), 1, "nothing is pending any more");
    }
}
