//! libFuzzer on `frolic_fuzzing`'s target `json_command`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("json_command", bytes));
