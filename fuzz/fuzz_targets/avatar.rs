//! libFuzzer on `frolic_fuzzing`'s target `avatar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("avatar", bytes));
