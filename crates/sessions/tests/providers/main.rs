//! The providers that Grove includes. They have their own test program: the tests beside them measure memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::print_stdout, reason = "a test that measures says what it found")]

mod history;
mod hosts;
