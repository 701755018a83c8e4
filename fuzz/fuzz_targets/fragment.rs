//! libFuzzer on `frolic_fuzzing`'s target `fragment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("fragment", bytes));
