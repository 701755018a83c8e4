//! libFuzzer on `frolic_fuzzing`'s target `kept_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("kept_log", bytes));
