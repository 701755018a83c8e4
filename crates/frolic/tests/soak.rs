//! The same session gives the same states, from process to process:
//! with other addresses of memory, other seeds of hash maps, another day.
//! `cargo xtask bench soak` compares the debug with the release build.

fn soak() -> String {
    let output = crate::support::frolic()
        .args([
            "bench",
            "soak",
            "--ticks",
            "1200",
            "--players",
            "8",
            "--json",
        ])
        .output()
        .expect("frolic starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_session_ends_the_same_in_every_process() {
    let (first, second) = (soak(), soak());
    assert!(first.contains("fingerprint"), "{first}");
    assert!(
        !first.contains("\"cuts\":1"),
        "scripts were cut short: {first}"
    );
    assert_eq!(first, second);
}
