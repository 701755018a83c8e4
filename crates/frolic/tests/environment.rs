//! Tests ignore the settings in a developer's shell: a platform started by a
//! test never reaches the developer's database.
// Covers: crates/platform

use std::process::Command;

use crate::support::Platform;

const INNER: &str = "FROLIC_TEST_INNER";

#[test]
fn tests_ignore_the_settings_of_the_shell() {
    if std::env::var_os(INNER).is_some() {
        let platform = Platform::start("environment");
        assert!(
            platform.data.join("frolic.db").is_file(),
            "its own database"
        );
        return;
    }
    // Runs this test again, in a shell with the settings of a platform.
    let program = std::env::current_exe().expect("a test program");
    let output = Command::new(program)
        .args([
            "--exact",
            "environment::tests_ignore_the_settings_of_the_shell",
        ])
        .env(INNER, "1")
        .env("DATABASE_URL", "postgres://developer@127.0.0.1:1/precious")
        .env("BLOB_URL", "s3://precious")
        .env("AWS_ENDPOINT", "http://127.0.0.1:1")
        .env("IDENTITY_ISSUER", "https://issuer.example")
        .env("TLS_CERT", "precious.pem")
        .env("DEFAULT_GAME", "precious")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("1 passed"), "{said}");
}
