//! The bounds of connections and tokens, on a clock that the tests set.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use grove_core::Timestamp;

use super::*;
use crate::config::Limits;
use crate::env::Task;

fn table(common: UsageLimits, tokens: BTreeMap<String, UsageLimits>) -> UsageLimitTable {
    UsageLimitTable { connections: 10, owner_connections: 1, common, tokens }
}

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
    clock: SetClock,
}

impl Scene {
    fn new(limits: Limits) -> Self {
        let limits = table(UsageLimits::from(&limits), BTreeMap::new());
        Self { table: UsageTable::new(limits), clock: SetClock::default() }
    }

    fn connection(&self, token: &str) -> ConnectionUsage {
        self.table.connection(&token.into(), Arc::new(self.clock.clone()))
    }

    fn pending(&self, address: [u8; 4]) -> ConnectionUsage {
        self.table.pending_connection(Some(address.into()), Arc::new(self.clock.clone()))
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
    scene.table.log_in(&other, &HOST_TOKEN_NAME.into());
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
    let usage = Scene::new(Limits::default()).table.in_process();
    assert!((0..100_000).all(|_| usage.count_messages(1_000).is_zero() && usage.count_bytes(usize::MAX).is_zero()));
    assert_eq!((limit(usage.subscription()), limit(usage.request(CallCost::Start))), (None, None));
}

#[test]
fn a_token_has_the_bounds_that_are_set_for_its_name() {
    let common = UsageLimits::from(&Limits { token_subscriptions: 1, ..Limits::default() });
    let phone = UsageLimits { token_subscriptions: 2, subscriptions: 7, ..common };
    let scene = Scene::new(Limits::default());
    scene.table.set_limits(table(common, BTreeMap::from([("phone".to_owned(), phone)])));
    let (phone, laptop) = (scene.connection("phone"), scene.connection("laptop"));
    assert_eq!((phone.limits().subscriptions, laptop.limits().subscriptions), (7, Limits::default().subscriptions));
    let held = [phone.subscription().unwrap(), phone.subscription().unwrap(), laptop.subscription().unwrap()];
    assert_eq!(limit(phone.subscription()), Some("token-subscriptions"));
    assert_eq!(limit(laptop.subscription()), Some("token-subscriptions"));
    drop(held);
}

#[test]
fn new_bounds_count_at_once_for_tokens_and_from_the_next_connection_on() {
    let scene = Scene::new(Limits::default());
    let connection = scene.connection("phone");
    let held = [connection.subscription().unwrap(), connection.subscription().unwrap()];
    let none = Rate { per_second: 1, burst: 0 };
    let common = UsageLimits::from(&Limits {
        token_subscriptions: 1,
        requests: none,
        token_requests: none,
        ..Limits::default()
    });
    scene.table.set_limits(table(common, BTreeMap::new()));
    assert!(connection.count_messages(5_000).is_zero(), "it keeps its own burst");
    assert!(!connection.count_messages(1).is_zero(), "the pool of its token has none left");
    assert!(!scene.connection("phone").count_messages(1).is_zero());
    drop(held);
    let _one = connection.subscription().unwrap();
    assert_eq!(limit(connection.subscription()), Some("token-subscriptions"));
}

/// A small and reproducible generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn limits(&mut self) -> UsageLimits {
        let mut rate = || Rate { per_second: self.below(20), burst: self.below(20) };
        let [requests, token_requests, token_starts] = [rate(), rate(), rate()];
        UsageLimits {
            requests,
            token_requests,
            token_starts,
            token_open_requests: self.below(6) as usize,
            token_subscriptions: self.below(6) as usize,
            large_calls: self.below(4) as usize,
            token_large_calls: self.below(6) as usize,
            ..UsageLimits::from(&Limits::default())
        }
    }
}

/// The slots that one token holds: its connections, its requests with their cost, its subscriptions.
#[derive(Default)]
struct HeldSlots {
    requests: Vec<(usize, CallCost, UsageSlot)>,
    subscriptions: Vec<UsageSlot>,
}

impl HeldSlots {
    fn large(&self) -> usize {
        self.requests.iter().filter(|(_, cost, _)| *cost != CallCost::Small).count()
    }

    fn large_of(&self, connection: usize) -> usize {
        let is_large = |(of, cost, _): &&(usize, CallCost, UsageSlot)| *of == connection && *cost != CallCost::Small;
        self.requests.iter().filter(is_large).count()
    }
}

/// Random requests, subscriptions, ends and new bounds. A request is refused if and only if a bound is reached.
#[test]
fn slots_are_refused_exactly_beyond_the_bounds_and_are_always_given_back() {
    for seed in 0..300 {
        let (scene, mut dice) = (Scene::new(Limits::default()), Dice(seed));
        // Starts have a rate, which the next test covers.
        let unlimited = Rate { per_second: 1_000_000, burst: 1_000_000 };
        let mut limits = UsageLimits { token_starts: unlimited, ..dice.limits() };
        scene.table.set_limits(table(limits, BTreeMap::new()));
        let connections: Vec<_> = (0..3).map(|_| scene.connection("phone")).collect();
        let per_connection = limits.large_calls;
        let mut held = HeldSlots::default();
        for _ in 0..60 {
            let at = dice.below(3) as usize;
            match dice.below(8) {
                0..=2 => {
                    let cost = [CallCost::Small, CallCost::Large, CallCost::Start][dice.below(3) as usize];
                    let expected = match cost {
                        _ if held.requests.len() >= limits.token_open_requests => Some("token-open-requests"),
                        CallCost::Small => None,
                        _ if held.large_of(at) >= per_connection => Some("large-calls"),
                        _ if held.large() >= limits.token_large_calls => Some("token-large-calls"),
                        _ => None,
                    };
                    match connections[at].request(cost) {
                        Ok(slot) => {
                            assert_eq!(expected, None, "seed {seed}");
                            held.requests.push((at, cost, slot));
                        }
                        Err(reached) => assert_eq!(Some(reached.limit), expected, "seed {seed}"),
                    }
                }
                3 | 4 => {
                    let is_full = held.subscriptions.len() >= limits.token_subscriptions;
                    match connections[at].subscription() {
                        Ok(slot) => {
                            assert!(!is_full, "seed {seed}");
                            held.subscriptions.push(slot);
                        }
                        Err(_) => assert!(is_full, "seed {seed}"),
                    }
                }
                5 if !held.requests.is_empty() => {
                    let place = dice.below(held.requests.len() as u64) as usize;
                    drop(held.requests.swap_remove(place));
                }
                6 => drop(held.subscriptions.pop()),
                _ => {
                    limits = UsageLimits { token_starts: unlimited, ..dice.limits() };
                    scene.table.set_limits(table(limits, BTreeMap::new()));
                }
            }
        }
        drop(held);
        let token = scene.table.tokens.lock().unwrap()["phone"].clone();
        for counter in [&token.subscriptions, &token.open_requests, &token.large_calls] {
            assert_eq!(*counter.used.lock().unwrap(), 0, "seed {seed}");
        }
        assert!(connections.iter().all(|one| *one.bounds.as_ref().unwrap().large_calls.used.lock().unwrap() == 0));
    }
}

/// Connections that send as fast as they are read, and pause as they are told.
#[test]
fn whatever_connections_send_they_get_no_more_than_their_rates_and_one_pool() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let limits = dice.limits();
        let scene = Scene::new(Limits {
            requests: Rate { per_second: limits.requests.per_second + 1, ..limits.requests },
            token_requests: limits.token_requests,
            ..Limits::default()
        });
        let own = Rate { per_second: limits.requests.per_second + 1, ..limits.requests };
        let connections: Vec<_> = (0..3).map(|_| scene.connection("phone")).collect();
        let (mut free_at, mut sent, mut largest) = ([0_u64; 3], 0_u64, 0_u64);
        let mut now = 0;
        while now < 20_000 {
            for (connection, free_at) in connections.iter().zip(&mut free_at) {
                if *free_at <= now {
                    let messages = 1 + dice.below(5);
                    let wait = connection.count_messages(messages as usize);
                    *free_at = now + u64::try_from(wait.as_millis()).unwrap();
                    (sent, largest) = (sent + messages, largest.max(messages));
                }
            }
            let step = 1 + dice.below(50);
            scene.clock.advance(step);
            now += step;
        }
        let of = |rate: Rate| rate.burst + rate.per_second * now / 1_000 + 1;
        // Each connection may have sent its last messages on credit.
        let most = 3 * (of(own) + largest) + of(limits.token_requests);
        assert!(sent <= most, "seed {seed}: {sent} messages, and {most} are possible");
    }
}
