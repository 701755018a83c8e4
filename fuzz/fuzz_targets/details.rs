//! libFuzzer on `frolic_fuzzing`'s target `details`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("details", bytes));
