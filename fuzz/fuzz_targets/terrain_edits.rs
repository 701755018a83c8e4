//! libFuzzer on `frolic_fuzzing`'s target `terrain_edits`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("terrain_edits", bytes));
