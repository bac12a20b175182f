#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grove_fuzz::copilot_port(data));
