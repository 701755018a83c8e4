//! libFuzzer on `frolic_fuzzing`'s target `server_packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("server_packet", bytes));
