//! libFuzzer on `frolic_fuzzing`'s target `persisted_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("persisted_log", bytes));
