//! The bounds of connections and tokens, on a clock that the tests set.

use std::sync::atomic::{AtomicU64, Ordering};

use grove_core::Timestamp;

use super::*;
use crate::env::Task;

#[derive(Clone, Debug, Default)]
struct SetClock(Arc<AtomicU64>);

impl SetClock {
    fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _time: Duration) -> Task {
        Box::pin(std::future::ready(()))
    }
}

struct Scene {
    table: UsageTable,
    limits: Limits,
    clock: SetClock,
}

impl Scene {
    fn new(limits: Limits) -> Self {
        Self { table: UsageTable::default(), limits, clock: SetClock::default() }
    }

    fn connection(&self, token: &str) -> ConnectionUsage {
        self.table.connection(&token.into(), &self.limits, Arc::new(self.clock.clone()))
    }

    fn pending(&self, address: [u8; 4]) -> ConnectionUsage {
        self.table.pending_connection(Some(address.into()), &self.limits, Arc::new(self.clock.clone()))
    }
}

fn limit(refused: Result<UsageSlot, LimitReached>) -> Option<&'static str> {
    refused.err().map(|reached| reached.limit)
}

#[test]
fn a_connection_beyond_its_rate_uses_the_pool_of_its_token_and_then_waits() {
    let scene = Scene::new(Limits {
        requests: Rate { per_second: 10, burst: 20 },
        token_requests: Rate { per_second: 1, burst: 30 },
        bytes: Rate { per_second: 1_000, burst: 1_000 },
        token_bytes: Rate { per_second: 1, burst: 1_000 },
        ..Limits::default()
    });
    let (greedy, modest) = (scene.connection("phone"), scene.connection("phone"));
    let waits: Vec<_> = (0..51).map(|_| greedy.count_messages(1)).collect();
    assert!(waits[..50].iter().all(Duration::is_zero), "its own burst and the pool: {waits:?}");
    assert_eq!(waits[50], Duration::from_millis(100));
    assert!((0..20).all(|_| modest.count_messages(1).is_zero()), "another connection has its own burst");
    assert!(!modest.count_messages(1).is_zero(), "the pool is empty");
    let other_token = scene.connection("laptop");
    assert!((0..50).all(|_| other_token.count_messages(1).is_zero()), "another token has a pool of its own");
    assert_eq!((greedy.count_bytes(2_000), greedy.count_bytes(500)), (Duration::ZERO, Duration::from_millis(500)));
    // A batch is counted as a whole, and its sender pays for it with time.
    scene.clock.advance(60_000);
    assert_eq!(greedy.count_messages(1_000), Duration::from_secs(98));
    scene.clock.advance(98_000);
    assert_eq!(greedy.count_messages(0), Duration::ZERO);
}

#[test]
fn a_new_connection_brings_no_new_pool() {
    let none = Rate { per_second: 0, burst: 0 };
    let scene = Scene::new(Limits { requests: none, token_requests: Rate { burst: 5, ..none }, ..Limits::default() });
    let waits = (0..7).map(|_| scene.connection("phone").count_messages(1).is_zero());
    assert_eq!(waits.collect::<Vec<_>>(), [true, true, true, true, true, false, false]);
}

#[test]
fn a_connection_counts_for_its_address_until_it_logs_in() {
    let none = Rate { per_second: 0, burst: 0 };
    let scene = Scene::new(Limits { requests: none, token_requests: Rate { burst: 2, ..none }, ..Limits::default() });
    let (first, second, other) =
        (scene.pending([10, 0, 0, 1]), scene.pending([10, 0, 0, 1]), scene.pending([10, 0, 0, 2]));
    assert_eq!([&first, &first, &second, &other].map(|one| one.count_messages(1).is_zero()), [true, true, false, true]);
    let host = scene.connection(HOST_TOKEN_NAME);
    assert!(host.count_messages(1).is_zero(), "connections without a token use nothing of the host's");
    scene.table.log_in(&other, &HOST_TOKEN_NAME.into(), &scene.limits);
    assert!(other.count_messages(1).is_zero() && !host.count_messages(1).is_zero(), "both use the pool of the token");
    (0..5_000_u32).for_each(|address| drop(scene.pending(address.to_be_bytes())));
    assert!(lock(&scene.table.addresses).len() <= MAX_ADDRESSES);
}

#[test]
fn subscriptions_are_counted_by_token_until_they_end() {
    let scene = Scene::new(Limits { token_subscriptions: 2, ..Limits::default() });
    let (one, other) = (scene.connection("phone"), scene.connection("phone"));
    let (first, _second) = (one.subscription().unwrap(), other.subscription().unwrap());
    assert_eq!(limit(one.subscription()), Some("token-subscriptions"));
    assert_eq!(limit(scene.connection("laptop").subscription()), None);
    drop(first);
    assert_eq!(limit(other.subscription()), None);
}

#[test]
fn unanswered_requests_are_counted_by_token() {
    let scene = Scene::new(Limits { token_open_requests: 2, ..Limits::default() });
    let (one, other) = (scene.connection("phone"), scene.connection("phone"));
    let first = one.request(CallCost::Small).unwrap();
    let _second = other.request(CallCost::Small).unwrap();
    let refused = one.request(CallCost::Small).unwrap_err();
    assert_eq!((refused.limit, refused.retry_after), ("token-open-requests", Some(RETRY_AFTER)));
    drop(first);
    assert_eq!(limit(other.request(CallCost::Small)), None);
}

#[test]
fn large_calls_are_counted_by_connection_and_by_token() {
    let scene = Scene::new(Limits { large_calls: 2, token_large_calls: 3, ..Limits::default() });
    let (one, other) = (scene.connection("phone"), scene.connection("phone"));
    let held = [one.request(CallCost::Large).unwrap(), one.request(CallCost::Start).unwrap()];
    assert_eq!(limit(one.request(CallCost::Large)), Some("large-calls"));
    assert_eq!(limit(one.request(CallCost::Small)), None, "other requests go on");
    let third = other.request(CallCost::Large).unwrap();
    assert_eq!(limit(other.request(CallCost::Large)), Some("token-large-calls"));
    drop((held, third));
    // A refused request gives back what it has taken.
    let again = [one.request(CallCost::Large).unwrap(), one.request(CallCost::Large).unwrap()];
    assert_eq!(again.len(), 2);
}

#[test]
fn new_sessions_come_at_a_rate() {
    let scene = Scene::new(Limits { token_starts: Rate { per_second: 2, burst: 3 }, ..Limits::default() });
    let connection = scene.connection("phone");
    for _ in 0..3 {
        connection.request(CallCost::Start).unwrap();
    }
    let refused = scene.connection("phone").request(CallCost::Start).unwrap_err();
    assert_eq!((refused.limit, refused.retry_after), ("token-starts", Some(Duration::from_millis(500))));
    scene.clock.advance(500);
    assert_eq!(limit(connection.request(CallCost::Start)), None);
}

#[test]
fn a_part_of_the_host_itself_has_no_bounds() {
    let usage = ConnectionUsage::unbounded();
    assert!((0..100_000).all(|_| usage.count_messages(1_000).is_zero() && usage.count_bytes(usize::MAX).is_zero()));
    assert_eq!((limit(usage.subscription()), limit(usage.request(CallCost::Start))), (None, None));
}
