//! libFuzzer on `frolic_fuzzing`'s target `manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("manifest", bytes));
