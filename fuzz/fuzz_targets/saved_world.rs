//! libFuzzer on `frolic_fuzzing`'s target `saved_world`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("saved_world", bytes));
