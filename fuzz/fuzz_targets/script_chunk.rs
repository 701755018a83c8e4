//! libFuzzer on `frolic_fuzzing`'s target `script_chunk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("script_chunk", bytes));
