//! Calls that are answered late, or never.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_append_that_took_too_long_is_not_overtaken() {
    let case = case();
    case.next([Fault::Slow(LIMIT * 3)]);
    let late = case.store.append_text("log", "one\n").await.unwrap_err();
    assert_eq!(late.code(), "ETIMEDOUT");
    // The next one waits for it in vain, and is never sent.
    assert_eq!(case.store.append_text("log", "two\n").await.unwrap_err().code(), "ETIMEDOUT");
    assert_eq!(case.faulty.calls.load(Ordering::SeqCst), 1);
    // Other files are not delayed.
    case.store.append_text("other", "x").await.unwrap();
    tokio::time::sleep(LIMIT * 2).await;
    case.store.append_text("log", "three\n").await.unwrap();
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\nthree\n");
}

#[tokio::test(start_paused = true)]
async fn an_append_whose_caller_went_away_is_not_overtaken() {
    let case = case();
    case.next([Fault::Slow(LIMIT / 2)]);
    let store = case.store.clone();
    let gone = tokio::spawn(async move { store.append_text("log", "one\n").await });
    tokio::time::sleep(LIMIT / 10).await;
    gone.abort();
    case.store.append_text("log", "two\n").await.unwrap();
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\n");
}

#[tokio::test(start_paused = true)]
async fn appends_to_one_file_are_sent_one_after_the_other() {
    let case = case();
    case.next((0..20).map(|number| Fault::Slow(Duration::from_millis(20 - number))));
    let mut appends = Vec::new();
    for number in 0..20 {
        let store = case.store.clone();
        appends.push(tokio::spawn(async move { store.append_text("log", &format!("{number}\n")).await }));
        // Begun in this order.
        tokio::task::yield_now().await;
    }
    for append in appends {
        append.await.unwrap().unwrap();
    }
    let expected: String = (0..20).map(|number| format!("{number}\n")).collect();
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), expected);
    assert_eq!(case.faulty.most_in_flight.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_are_in_flight_than_allowed() {
    let case = case_with(Limits { time: LIMIT, in_flight: 3, ..Limits::default() });
    case.kept.write_text("state/f", "x").await.unwrap();
    case.next((0..60).map(|_| Fault::Slow(Duration::from_millis(10))));
    let mut tasks = Vec::new();
    for number in 0..20 {
        let store = case.store.clone();
        tasks.push(tokio::spawn(async move {
            if number % 2 == 0 {
                store.read_file("f").await.map(drop)
            } else {
                store.append_text(&number.to_string(), "x").await
            }
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(case.faulty.most_in_flight.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_costs_no_more_than_its_calls() {
    let case = case_with(Limits { time: LIMIT, call: LIMIT * 100, in_flight: 2, ..Limits::default() });
    case.next(std::iter::repeat_n(Fault::Never, 100));
    for number in 0..5 {
        let error = case.store.append_text(&format!("log-{number}"), "x").await.unwrap_err();
        assert_eq!(error.code(), "ETIMEDOUT");
    }
    assert_eq!(case.faulty.calls.load(Ordering::SeqCst), 2);
    assert_eq!(case.faulty.in_flight.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_is_never_answered_does_not_block_its_file() {
    let case = case_of_short_calls();
    case.store.append_text("log", "one\n").await.unwrap();
    case.next([Fault::Never]);
    assert_eq!(case.store.append_text("log", "two\n").await.unwrap_err().code(), "ETIMEDOUT");
    let since = tokio::time::Instant::now();
    case.store.append_text("log", "two\n").await.unwrap();
    case.store.append_text("log", "three\n").await.unwrap();
    assert!(since.elapsed() < LIMIT, "{:?}", since.elapsed());
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\nthree\n");
    // When the append can no longer arrive, appends are sent as appends again.
    tokio::time::sleep(LIMIT * 20).await;
    let before = case.faulty.calls.load(Ordering::SeqCst);
    case.store.append_text("log", "four\n").await.unwrap();
    assert_eq!(case.faulty.calls.load(Ordering::SeqCst) - before, 1);
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\nthree\nfour\n");
}

#[tokio::test(start_paused = true)]
async fn an_append_that_arrives_late_is_there_once() {
    // It arrives before the next check, between check and retry, after the retry, or after more.
    for (fault, is_answered) in [(Fault::Late as fn(Duration) -> Fault, true), (Fault::LateWithoutAnswer, false)] {
        for late in [11, 12, 13, 15, 40] {
            let case = case_of_short_calls();
            case.store.append_text("log", "one\n").await.unwrap();
            case.next([fault(Duration::from_secs(late))]);
            assert_eq!(case.store.append_text("log", "two\n").await.unwrap_err().code(), "ETIMEDOUT");
            // A writer checks whether its line is there, and writes what is missing.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let is_there = case.store.read_text("log").await.unwrap().ends_with("two\n");
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !is_there {
                case.store.append_text("log", "two\n").await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            case.store.append_text("log", "three\n").await.unwrap();
            assert_eq!(case.store.read_text("log").await.unwrap(), "one\ntwo\nthree\n", "{late}");
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(case.store.read_text("log").await.unwrap(), "one\ntwo\nthree\n", "{late}");
            if is_answered {
                assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\nthree\n", "{late}");
            }
            tokio::time::sleep(LIMIT * 11).await;
            assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\nthree\n", "{late}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_of_a_lost_connection_that_arrives_late_is_there_once() {
    let case = case_of_short_calls();
    case.store.append_text("log", "one\n").await.unwrap();
    case.next([Fault::Lost]);
    assert_eq!(case.store.append_text("log", "two\n").await.unwrap_err().code(), "ENOTCONN");
    assert_eq!(case.store.read_text("log").await.unwrap(), "one\n");
    case.store.append_text("log", "two\n").await.unwrap();
    // The client had begun it before the connection was lost.
    case.kept.append_text("state/log", "two\n").await.unwrap();
    assert_eq!(case.store.read_text("log").await.unwrap(), "one\ntwo\n");
    case.store.append_text("log", "three\n").await.unwrap();
    assert_eq!(case.kept.read_text("state/log").await.unwrap(), "one\ntwo\nthree\n");
}

#[tokio::test(start_paused = true)]
async fn an_append_that_the_provider_refused_late_needs_no_second_look() {
    let case = case_of_short_calls();
    case.store.append_text("log", "one\n").await.unwrap();
    let refusal = json!({"code": "UNKNOWN", "message": "disk full"});
    case.next([Fault::SlowNonsense(LIMIT * 2, refusal)]);
    assert!(case.store.append_text("log", "two\n").await.is_err());
    tokio::time::sleep(LIMIT * 2).await;
    let before = case.faulty.calls.load(Ordering::SeqCst);
    case.store.append_text("log", "two\n").await.unwrap();
    assert_eq!(case.faulty.calls.load(Ordering::SeqCst) - before, 1);
}
