//! libFuzzer on `frolic_fuzzing`'s target `client_packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frolic_fuzzing::run("client_packet", bytes));
