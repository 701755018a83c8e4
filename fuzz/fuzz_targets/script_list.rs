//! libFuzzer on `frolic_fuzzing`'s target `script_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("script_list", bytes));
