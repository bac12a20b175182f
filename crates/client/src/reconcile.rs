//! Write-ahead reconciliation of one resource. Pure: no connection, no clock.
//!
//! The host's order decides. The pending actions of this client are applied on top of it: `optimistic = confirmed +
//! pending`. An echo moves an action from the pending ones into the confirmed state, a rejection removes it, and
//! actions of other clients change the confirmed state below the pending ones.

use std::collections::VecDeque;

use crate::dialect::Model;

/// A resource in its confirmed state, and with the pending actions applied.
pub struct ReconciledState<M: Model> {
    confirmed: M::ResourceState,
    /// The sequence number of the confirmed state.
    seq: u64,
    pending: VecDeque<PendingAction<M::Action>>,
    /// Computed on demand, and only if something is pending.
    ///
    /// So a stream of foreign actions causes no copies between reads, and none at all while nothing is pending.
    optimistic: Option<M::ResourceState>,
}

/// A sent action without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAction<A> {
    pub client_seq: u64,
    pub action: A,
}

/// The effect of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// It changed the confirmed state.
    Changed,
    /// The confirmed state contained it already.
    AlreadyKnown,
}

impl<M: Model> ReconciledState<M> {
    /// A resource without pending actions.
    pub fn new(confirmed: M::ResourceState, seq: u64) -> Self {
        Self { confirmed, seq, pending: VecDeque::new(), optimistic: None }
    }

    /// The confirmed state.
    pub fn confirmed(&self) -> &M::ResourceState {
        &self.confirmed
    }

    /// The sequence number of [`confirmed`](Self::confirmed).
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The pending actions, oldest first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &PendingAction<M::Action>> {
        self.pending.iter()
    }

    /// The confirmed state with all pending actions applied.
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

    /// Adds a sent action of this client.
    pub fn dispatched(&mut self, client_seq: u64, action: M::Action) {
        if let Some(optimistic) = &mut self.optimistic {
            M::reduce(optimistic, &action);
        }
        self.pending.push_back(PendingAction { client_seq, action });
    }

    /// Applies an action of the host. `own` is its `clientSeq` if this client dispatched it.
    ///
    /// Then it is no longer pending, and the host's version of it is applied, which may contain more than was sent.
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

    /// Removes an action that the host rejected, or accepted without an echo. Returns whether it was pending.
    pub fn settle(&mut self, client_seq: u64) -> bool {
        // Answers arrive in the order of the requests, except from hosts that reject at once, so it is nearly always
        // the first.
        let Some(at) = self.pending.iter().position(|pending| pending.client_seq == client_seq) else { return false };
        self.pending.remove(at);
        self.optimistic = None;
        true
    }

    /// Replaces the confirmed state on the same connection.
    ///
    /// Answers before the snapshot were handled before it, so the pending actions stay pending.
    pub fn replace(&mut self, state: M::ResourceState, seq: u64) {
        self.confirmed = state;
        self.seq = seq;
        self.optimistic = None;
    }

    /// Removes all pending actions, since the connection for their answers is gone.
    pub fn give_up(&mut self) -> Vec<PendingAction<M::Action>> {
        self.optimistic = None;
        self.pending.drain(..).collect()
    }
}

impl<M: Model> std::fmt::Debug for ReconciledState<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { confirmed, seq, pending, optimistic: _ } = self;
        let mut shown = f.debug_struct("ReconciledState");
        shown.field("seq", seq).field("confirmed", confirmed).field("pending", pending).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// A list of numbers, which shows the order of actions.
    #[derive(Debug)]
    struct AppendModel;

    #[derive(Clone, Debug)]
    enum Act {
        Push(u8),
        Double,
        /// Applies only in some states, like most actions of a session.
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
        /// The host accepts a pending action; its version may contain more than was sent.
        Echo(prop::sample::Index, Option<Act>),
        Reject(prop::sample::Index),
        Foreign(Act),
        /// An action that a snapshot contained already.
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
            3 => (index(), prop::option::of(act())).prop_map(|(which, echo)| ReconcileStep::Echo(which, echo)),
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
            // The same in the simplest way.
            let (mut confirmed, mut pending, mut seq, mut sent) = (vec![1], Vec::<(u64, Act)>::new(), 5, 0);
            for step in steps {
                match step {
                    ReconcileStep::Dispatch(act) => {
                        sent += 1;
                        row.dispatched(sent, act.clone());
                        pending.push((sent, act));
                    }
                    ReconcileStep::Echo(which, echo) if !pending.is_empty() => {
                        let (client_seq, act) = pending.remove(which.index(pending.len()));
                        let act = echo.unwrap_or(act);
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
                // Cloned before it is read, so that the lazy computation is tested, too.
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
        assert_eq!(copies(), 1, "once, however often it is read and however much is added");
        heavy.take(200, Some(1), &1_000);
        heavy.take(201, Some(2), &1_000);
        assert_eq!(heavy.optimistic().0, 2_199);
        assert_eq!(copies(), 1, "nothing is pending any more");
    }
}
