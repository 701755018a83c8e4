//! Third-party programs that tests run beside the platform: an S3 server and an OpenAPI test
//! client. `cargo xtask test` installs them and sets their paths.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Python with moto, an S3 server.
pub const S3_PYTHON: &str = "FROLIC_S3_PYTHON";
/// Python with schemathesis.
pub const SCHEMATHESIS_PYTHON: &str = "FROLIC_SCHEMATHESIS_PYTHON";

/// A Python that `cargo xtask test` installed.
pub fn python(variable: &str) -> Command {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set; run `cargo xtask test`"));
    let mut command = Command::new(path);
    // Folder of its packages, if they are not in a virtual environment.
    if let Some(packages) = std::env::var_os(format!("{variable}PATH")) {
        command.env("PYTHONPATH", packages);
    }
    command
}

/// An S3 server with one bucket. Dropping it stops it.
pub struct S3Server {
    process: Child,
    port: u16,
}

impl S3Server {
    /// The existing bucket.
    pub const BUCKET: &'static str = "frolic-tests";
    /// Any key may write; moto does not verify signatures.
    pub const AUTHORIZATION: &'static str = "AWS4-HMAC-SHA256 \
        Credential=tests/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

    pub async fn start() -> Self {
        Self::start_on(free_port()).await
    }

    /// Starts on a given port, without the data of an earlier server.
    pub async fn start_on(port: u16) -> Self {
        frolic_platform::tls::use_ring();
        let mut moto = python(S3_PYTHON);
        moto.args(["-m", "moto.server", "-H", "127.0.0.1", "-p"]);
        moto.arg(port.to_string());
        moto.stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = moto.stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stderr.take().unwrap());
        let mut before = String::new();
        let mut lines = output.lines();
        loop {
            let line = lines.next().and_then(Result::ok);
            let line = line.unwrap_or_else(|| panic!("moto ended: {before}"));
            if line.contains("Running on") {
                break;
            }
            before.push_str(&line);
        }
        // It logs a line per request and would block if nothing read them.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Self { process, port };
        let client = reqwest::Client::new();
        let bucket = format!("{}/{}", server.url(), Self::BUCKET);
        let created = client.put(bucket).send().await.unwrap();
        assert!(created.status().is_success(), "{}", created.status());
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Settings as environment variables.
    pub fn settings(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT", self.url().as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "tests"),
            ("AWS_SECRET_ACCESS_KEY", "a secret of the tests"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Number of objects in the bucket.
    pub async fn objects(&self) -> usize {
        let list = format!("{}/{}?list-type=2", self.url(), Self::BUCKET);
        let text = reqwest::get(list).await.unwrap().text().await.unwrap();
        text.matches("<Key>").count()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
