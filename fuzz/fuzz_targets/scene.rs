//! libFuzzer on `frolic_fuzzing`'s target `scene`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("scene", bytes));
