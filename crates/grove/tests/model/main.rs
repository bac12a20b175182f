//! A model test of the whole program: random operations on a real host, compared with a simple model.
//!
//! The host is the real program: it is stopped by a signal and killed by `kill -9`. After each operation the model is
//! compared with the state of a client and with the files. Everything is determined by a seed; a failing run prints it
//! with the operations, and then a shorter list of operations that fails, too.
//!
//! | variable | means |
//! |---|---|
//! | `GROVE_MODEL_SECONDS` | how long new seeds are tried [default: a few fixed ones once] |
//! | `GROVE_MODEL_SEED` | run this seed alone |
//! | `GROVE_MODEL_LENGTH` | operations in a run |
//! | `GROVE_MODEL_ONLY` | kinds of operations, with commas, beside creating and prompting: `rename,look` |
//! | `GROVE_MODEL_SHRINK_SECONDS` | how long a failing run is shortened |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a run says what it tried and what failed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod expected;
mod logs;
mod operation;
mod steps;
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod support;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use operation::{Dice, Operation};
use world::World;

/// The seeds of a short run. They are fixed, so that only a change of the program makes it fail.
const SEEDS: [u64; 3] = [1, 2, 3];
/// The number of operations in a run.
const LENGTH: usize = 40;
/// How long a failing run is shortened.
const SHRINK: u64 = 120;

/// The operation at which a run failed, and the reason.
struct ModelFailure {
    at: usize,
    message: String,
}

#[test]
fn a_host_does_what_a_simple_model_says() {
    let length = number("GROVE_MODEL_LENGTH").map_or(LENGTH, |length| length as usize);
    let begun = Instant::now();
    if let Some(seed) = number("GROVE_MODEL_SEED") {
        return try_seed(seed, length);
    }
    SEEDS.into_iter().for_each(|seed| try_seed(seed, length));
    let Some(seconds) = number("GROVE_MODEL_SECONDS") else { return };
    // Each long run has other seeds, so that it can find something else.
    let first = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut tried = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        try_seed(first + tried, length);
        tried += 1;
    }
    println!("{tried} seeds of {length} operations, from {first} on: nothing found");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

fn try_seed(seed: u64, length: usize) {
    let only = std::env::var("GROVE_MODEL_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|kind| !kind.is_empty()).collect();
    let operations = operation::random(&mut Dice::new(seed), length, &only);
    let Err(failure) = run(&operations) else { return };
    let failing = &operations[..=failure.at.min(operations.len() - 1)];
    eprintln!("seed {seed} failed at operation {}: {}", failure.at, failure.message);
    eprintln!("operations:\n{}", listed(failing));
    let (shortest, message) = shrunk(failing.to_vec(), failure.message);
    panic!(
        "the host did not do what the model says: {message}\n\
         Run it again with GROVE_MODEL_SEED={seed} GROVE_MODEL_LENGTH={length}. A short list of operations that fails:\n{}",
        listed(&shortest)
    );
}

fn listed(operations: &[Operation]) -> String {
    operations.iter().enumerate().map(|(at, operation)| format!("  {at}. {operation:?}\n")).collect()
}

/// Removes operations as long as the run still fails.
fn shrunk(mut operations: Vec<Operation>, mut message: String) -> (Vec<Operation>, String) {
    let limit = Duration::from_secs(number("GROVE_MODEL_SHRINK_SECONDS").unwrap_or(SHRINK));
    let begun = Instant::now();
    let mut size = operations.len() / 2;
    while size > 0 && begun.elapsed() < limit {
        let mut at = 0;
        while at < operations.len() && begun.elapsed() < limit {
            let end = (at + size).min(operations.len());
            let fewer = [&operations[..at], &operations[end..]].concat();
            match run(&fewer) {
                Err(failure) => {
                    operations = fewer[..(failure.at + 1).min(fewer.len())].to_vec();
                    message = failure.message;
                }
                Ok(()) => at = end,
            }
        }
        size /= 2;
    }
    (operations, message)
}

/// Runs operations on a new host and a new model.
fn run(operations: &[Operation]) -> Result<(), ModelFailure> {
    let at = Arc::new(AtomicUsize::new(0));
    let (operations, progress) = (operations.to_vec(), at.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for (number, operation) in operations.iter().enumerate() {
                progress.store(number, Ordering::Relaxed);
                world.carry_out(operation).await;
            }
            world.check_everything().await;
        });
    });
    thread.join().map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        ModelFailure { at: at.load(Ordering::Relaxed), message: text.unwrap_or_else(|| "it panicked".to_owned()) }
    })
}
