//! A storage client that is slow, fails, sends invalid answers or disconnects. Nothing hangs, every error is precise,
//! and appended content is there once and in order.
//!
//! Time is tokio's and paused: it jumps to the next event.

mod late_calls;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_fs::rpc::{CallError, Limits, Remote, RemoteCalls};
use grove_fs::{Conventions, FsError, MemoryFs, Removal, RpcFs, SessionFs, StorageClient};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Files, InProcess, config};

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
enum Fault {
    None,
    /// Does it late.
    Slow(Duration),
    /// Does it at once and answers late.
    SlowAnswer(Duration),
    /// Does it late, whether or not anybody still waits, and answers then.
    Late(Duration),
    /// Does it late, and never answers.
    LateWithoutAnswer(Duration),
    Never,
    Refuse,
    /// The connection is lost before it is done.
    Lost,
    /// It is done, and the connection lost before the answer.
    AnswerLost,
    Nonsense(Value),
    SlowNonsense(Duration, Value),
}

/// The way in which a client counts the size of a text.
type CountSize = fn(&str) -> usize;

/// A storage client that applies the next fault to each call, and none to calls after the last fault.
#[derive(Debug)]
struct FaultyCalls {
    inner: InProcess,
    faults: Mutex<VecDeque<Fault>>,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    /// The way in which it counts the size of a text file.
    count: Mutex<Option<CountSize>>,
}

impl FaultyCalls {
    fn set_count(&self, count: fn(&str) -> usize) {
        *self.count.lock().unwrap() = Some(count);
    }

    /// Serves a call without a fault.
    async fn well(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let count = *self.count.lock().unwrap();
        let answer = self.inner.call(method, params.clone()).await?;
        match (count, method) {
            (Some(count), "sessionFs.stat") if answer["isFile"] == true => {
                let read = self.inner.call("sessionFs.readFile", params).await?;
                let mut answer = answer;
                answer["size"] = count(read["content"].as_str().unwrap()).into();
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

#[async_trait]
impl RemoteCalls for FaultyCalls {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        /// Counts also calls that are dropped.
        struct InFlightCount<'a>(&'a AtomicUsize);
        impl Drop for InFlightCount<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        let _leave = InFlightCount(&self.in_flight);
        self.most_in_flight.fetch_max(now, Ordering::SeqCst);
        let fault = self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
        match fault {
            Fault::None => self.well(method, params).await,
            Fault::Slow(time) => {
                tokio::time::sleep(time).await;
                self.inner.call(method, params).await
            }
            Fault::SlowAnswer(time) => {
                let answer = self.inner.call(method, params).await;
                tokio::time::sleep(time).await;
                answer
            }
            Fault::Late(time) | Fault::LateWithoutAnswer(time) => {
                let (inner, method) = (InProcess(Arc::clone(&self.inner.0)), method.to_owned());
                let does = tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    inner.call(&method, params).await
                });
                match fault {
                    Fault::Late(_) => does.await.unwrap(),
                    _ => std::future::pending().await,
                }
            }
            Fault::Never => std::future::pending().await,
            Fault::Refuse => Err(CallError::Refused { code: -32603, message: "no".to_owned() }),
            Fault::Lost => Err(CallError::Disconnected),
            Fault::AnswerLost => {
                self.inner.call(method, params).await.ok();
                Err(CallError::Disconnected)
            }
            Fault::Nonsense(answer) => Ok(answer),
            Fault::SlowNonsense(time, answer) => {
                tokio::time::sleep(time).await;
                Ok(answer)
            }
        }
    }
}

struct FaultCase {
    faulty: Arc<FaultyCalls>,
    store: RpcFs,
    /// The client's store, without the wire.
    kept: MemoryFs,
}

fn case_with(limits: Limits) -> FaultCase {
    case_of(Files::Bytes, limits)
}

fn case_of(files: Files, limits: Limits) -> FaultCase {
    let config = config(Conventions::Posix, files);
    let storage_client = StorageClient::new(Conventions::Posix, config.capabilities);
    let kept = MemoryFs::default();
    storage_client.add("s1", Arc::new(kept.clone()));
    let faulty = Arc::new(FaultyCalls {
        inner: InProcess(Arc::new(storage_client)),
        faults: Mutex::default(),
        calls: AtomicUsize::new(0),
        in_flight: AtomicUsize::new(0),
        most_in_flight: AtomicUsize::new(0),
        count: Mutex::default(),
    });
    let remote = Remote::new(Arc::clone(&faulty) as Arc<dyn RemoteCalls>, limits);
    FaultCase { faulty, store: RpcFs::new(Arc::new(remote), "s1", config).unwrap(), kept }
}

fn case() -> FaultCase {
    case_with(Limits { time: LIMIT, call: LIMIT * 4, ..Limits::default() })
}

/// A case whose calls are given up before callers time out.
fn case_of_short_calls() -> FaultCase {
    case_with(Limits { time: LIMIT * 4, call: LIMIT, late: LIMIT * 10, ..Limits::default() })
}

impl FaultCase {
    fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faulty.faults.lock().unwrap().extend(faults);
    }

    fn all_well(&self) {
        self.faulty.faults.lock().unwrap().clear();
    }
}

/// Every operation, on existing files.
const OPERATIONS: usize = 13;

async fn operate(store: &RpcFs, number: usize) -> Result<(), FsError> {
    match number {
        0 => store.read_file("f").await.map(drop),
        1 => store.read_range("f", 0, 1).await.map(drop),
        2 => store.read_lines("f", 9).await.map(drop),
        3 => store.write_file("f", b"new").await,
        4 => store.append_file("f", b"+").await,
        5 => store.append_file("f", &[255]).await,
        6 => store.sync("f").await,
        7 => store.truncate("f", 1).await,
        8 => store.exists("f").await.map(drop),
        9 => store.stat("f").await.map(drop),
        10 => store.readdir("d").await.map(drop),
        11 => store.rm("d", Removal::One).await,
        _ => store.rename("f", "g").await,
    }
}

async fn prepared() -> FaultCase {
    let case = case();
    case.store.write_text("f", "old").await.unwrap();
    case.store.mkdir("d").await.unwrap();
    case
}

#[tokio::test(start_paused = true)]
async fn a_slow_provider_is_waited_for_within_its_time() {
    for number in 0..OPERATIONS {
        let case = prepared().await;
        case.next([Fault::Slow(LIMIT / 10), Fault::SlowAnswer(LIMIT / 10)]);
        operate(&case.store, number).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_operation_waits_longer_than_its_time() {
    for number in 0..OPERATIONS {
        let case = prepared().await;
        case.next([Fault::Never]);
        let error = operate(&case.store, number).await.unwrap_err();
        assert!(matches!(error, FsError::TimedOut { limit: LIMIT, .. }), "{number}: {error}");
        assert_eq!(error.code(), "ETIMEDOUT");
        // Calls that wait for the same file time out as well.
        let next = tokio::time::timeout(LIMIT * 4, operate(&case.store, number)).await;
        drop(next.expect("nothing hangs"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_told_wherever_it_is_lost() {
    for number in 0..OPERATIONS {
        for fault in [Fault::Lost, Fault::AnswerLost] {
            for at in 0..4 {
                let case = prepared().await;
                case.next(std::iter::repeat_n(Fault::None, at).chain([fault.clone()]));
                let before = case.faulty.calls.load(Ordering::SeqCst);
                let done = operate(&case.store, number).await;
                if case.faulty.calls.load(Ordering::SeqCst) - before > at {
                    assert!(matches!(done, Err(FsError::Disconnected { .. })), "{number} {at}: {done:?}");
                } else {
                    done.unwrap();
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_its_reason() {
    for number in 0..OPERATIONS {
        let case = prepared().await;
        case.next(std::iter::repeat_n(Fault::Refuse, 20));
        let error = operate(&case.store, number).await.unwrap_err();
        assert!(matches!(&error, FsError::Other { reason, .. } if reason.contains("no")), "{number}: {error}");
        case.all_well();
        operate(&case.store, number).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_an_error_and_nothing_worse() {
    let nonsense = [
        json!(null),
        json!([]),
        json!("text"),
        json!({"content": 7}),
        json!({"content": "%%%"}),
        json!({"exists": "yes"}),
        json!({"code": 7}),
        json!({"code": "EWHATEVER"}),
        json!({"entries": [{"name": "../x", "type": "file"}, {"name": "", "type": "socket"}]}),
        json!({"isFile": true, "isDirectory": true, "size": -1, "mtime": "", "birthtime": "now"}),
        json!({"isFile": true, "isDirectory": false, "size": u64::MAX, "mtime": "2026-01-01T00:00:00Z", "birthtime": "2026-01-01T00:00:00Z"}),
    ];
    for number in 0..OPERATIONS {
        for answer in &nonsense {
            for at in 0..3 {
                let case = prepared().await;
                case.next(std::iter::repeat_n(Fault::None, at).chain([Fault::Nonsense(answer.clone())]));
                if let Err(error) = operate(&case.store, number).await {
                    // A client that only claims to have written a file leaves nothing to rename.
                    assert!(
                        ["EPROTO", "UNKNOWN", "EFBIG", "ENOENT"].contains(&error.code()),
                        "{number} {answer}: {error}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_provider_cannot_put_names_elsewhere() {
    let case = case();
    let entry = |name: &str| json!({"name": name, "type": "file"});
    let entries = ["../x", "/etc", "a/b", "..", ".", "", "b", "a", "a", "n\0"].map(entry);
    case.next([Fault::Nonsense(json!({"entries": entries}))]);
    assert_eq!(case.store.readdir("d").await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn what_a_provider_could_not_give_as_text_is_not_written_back() {
    let case = case_of(Files::Text, Limits::default());
    case.kept.write_file("state/f", &[b'a', 255, 254]).await.unwrap();
    // As many programs read a file that is not text.
    let lossy = || [Fault::None, Fault::Nonsense(json!({"content": "a\u{fffd}\u{fffd}"}))];
    let not_text = FsError::NotText { path: "f".to_owned() };
    case.next(lossy());
    assert_eq!(case.store.read_file("f").await.unwrap_err(), not_text);
    case.next(lossy());
    assert_eq!(case.store.truncate("f", 1).await.unwrap_err(), not_text);
    assert_eq!(case.kept.read_file("state/f").await.unwrap(), [b'a', 255, 254]);
    // A file that contains that character itself is like any other.
    case.store.write_text("g", "a\u{fffd}").await.unwrap();
    assert_eq!(case.store.read_text("g").await.unwrap(), "a\u{fffd}");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let case = case_with(Limits { file: 10, entries: 2, ..Limits::default() });
    case.kept.write_text("state/large", "12345678901").await.unwrap();
    let too_large = |path: &str, limit| FsError::TooLarge { path: path.to_owned(), limit };
    assert_eq!(case.store.read_file("large").await.unwrap_err(), too_large("large", 10));
    assert_eq!(case.faulty.calls.load(Ordering::SeqCst), 1);
    assert_eq!(case.store.write_file("new", &[b'x'; 11]).await.unwrap_err(), too_large("new", 10));
    for name in ["a", "b", "c"] {
        case.kept.write_text(&format!("state/d/{name}"), "x").await.unwrap();
    }
    assert_eq!(case.store.readdir("d").await.unwrap_err(), too_large("d", 2));
}

#[tokio::test(start_paused = true)]
async fn replacing_a_file_gives_the_old_one_or_the_new_one() {
    for fault in [Fault::Lost, Fault::AnswerLost, Fault::Refuse, Fault::Never] {
        for at in 0..3 {
            let case = prepared().await;
            case.next(std::iter::repeat_n(Fault::None, at).chain([fault.clone()]));
            let done = case.store.write_text("f", "new").await;
            let kept = case.kept.read_text("state/f").await.unwrap();
            assert!(kept == "old" || kept == "new", "{kept}");
            assert!(done.is_err() || kept == "new");
        }
    }
}

#[tokio::test]
async fn a_file_with_replacement_characters_is_read_whatever_the_provider_counts() {
    let text = "{\"said\":\"a \u{fffd} b\"}\n";
    let counts: [fn(&str) -> usize; 4] =
        [|text| text.len(), |text| text.encode_utf16().count(), |text| text.chars().count(), |_| 0];
    for (number, count) in counts.into_iter().enumerate() {
        let case = case_of(Files::Text, Limits::default());
        case.faulty.set_count(count);
        for text in [text, "\u{fffd}", "\u{fffd}\u{fffd}é🌲\n"] {
            case.store.write_text("f", text).await.unwrap();
            assert_eq!(case.store.read_text("f").await.unwrap(), text, "{number}");
            assert_eq!(case.store.read_range("f", 0, 1 << 20).await.unwrap(), text.as_bytes(), "{number}");
            let lines = case.store.read_lines("f", 1 << 20).await;
            assert!(lines.is_ok(), "{number}");
        }
        // The probe file for the way it counts is gone.
        assert_eq!(case.kept.readdir("state").await.unwrap(), ["f"], "{number}");
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    let second = Duration::from_secs(1);
    prop_oneof![
        4 => Just(Fault::None),
        1 => (1_u32..25).prop_map(move |seconds| Fault::Slow(second * seconds)),
        1 => (1_u32..25).prop_map(move |seconds| Fault::SlowAnswer(second * seconds)),
        1 => Just(Fault::Refuse),
        1 => Just(Fault::Lost),
        1 => Just(Fault::AnswerLost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// A writer of a log that knows the log's length, cuts off the rest of a failed append, and tries again.
    #[test]
    fn a_writer_that_cuts_off_what_failed_has_every_line_once_and_in_order(
        faults in prop::collection::vec(fault(), 0..40),
        lines in prop::collection::vec(prop_oneof!["[a-z]{0,4}", "[äß🌲]{1,3}"], 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let case = case();
            case.store.append_text("log", "").await.unwrap();
            case.next(faults);
            let mut length = 0;
            // Each fault can fail one attempt, and delay a few more while it lasts.
            let mut attempts = 0..1000;
            for line in &lines {
                let line = format!("{line}\n");
                while case.store.append_text("log", &line).await.is_err() {
                    while let Err(error) = case.store.truncate("log", length).await {
                        attempts.next().unwrap_or_else(|| panic!("it never ends: {error}"));
                    }
                }
                length += line.len() as u64;
            }
            case.all_well();
            let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
            assert_eq!(case.kept.read_text("state/log").await.unwrap(), expected);
            assert_eq!(case.store.read_text("log").await.unwrap(), expected);
        });
    }

    /// The same with calls that are given up and done later, with or without an answer.
    #[test]
    fn a_writer_that_looks_what_is_there_has_every_line_once_and_in_order_however_late_appends_arrive(
        faults in prop::collection::vec((any::<bool>(), 1_u64..60), 0..12),
        lines in 1_usize..10,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let case = case_of_short_calls();
            case.store.append_text("log", "begin\n").await.unwrap();
            let mut faults = faults.into_iter();
            for number in 0..lines {
                let line = format!("{number}\n");
                loop {
                    // Each append gets the next fault; reading the file gets none.
                    if let Some((is_answered, seconds)) = faults.next() {
                        let late = Duration::from_secs(seconds);
                        case.next([if is_answered { Fault::Late(late) } else { Fault::LateWithoutAnswer(late) }]);
                    }
                    if case.store.append_text("log", &line).await.is_ok() {
                        break;
                    }
                    case.all_well();
                    if case.store.read_text("log").await.unwrap().ends_with(&format!("\n{line}")) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                case.all_well();
            }
            tokio::time::sleep(LIMIT * 20).await;
            let expected: String = (0..lines).map(|number| format!("{number}\n")).collect();
            assert_eq!(case.kept.read_text("state/log").await.unwrap(), format!("begin\n{expected}"));
        });
    }
}
