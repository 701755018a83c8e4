//! Sends requests over persistent connections, one at a time on each, and
//! measures the response times. Parses only as much of HTTP as needed, so that
//! the load is not measured instead of the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use frolic_bots::quantile;

/// Longest head and body of one answer.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Ask a server on this machine as fast as it answers
#[derive(Args, Debug)]
pub struct LoadArgs {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    connections: u32,
    #[arg(long)]
    seconds: u32,
    /// Questions a second, all connections together; 0 for as many as fit
    #[arg(long)]
    per_s: u32,
    #[arg(long)]
    path: Vec<String>,
}

/// The combined figures.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadReport {
    pub per_s: f64,
    pub ms_p50: f64,
    pub ms_p99: f64,
    pub answer_bytes: f64,
}

/// The figures of one connection.
#[derive(Default)]
struct Seen {
    ms: Vec<f64>,
    bytes: u64,
}

/// Prints one JSON object.
pub async fn run(args: LoadArgs) -> Result<()> {
    let questions: Vec<Vec<u8>> = args
        .path
        .iter()
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes())
        .collect();
    if questions.is_empty() || args.connections == 0 {
        bail!("there is nothing to ask");
    }
    let questions = Arc::new(questions);
    let pause = (args.per_s > 0).then(|| Duration::from_secs(1) * args.connections / args.per_s);
    let began = Instant::now();
    let until = began + Duration::from_secs(u64::from(args.seconds));
    let port = args.port;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..args.connections {
        let questions = questions.clone();
        let first = number as usize;
        asking.spawn(async move { ask(port, &questions, first, pause, until).await });
    }
    let mut all = Seen::default();
    while let Some(seen) = asking.join_next().await {
        let seen = seen??;
        all.ms.extend(seen.ms);
        all.bytes += seen.bytes;
    }
    let count = all.ms.len() as f64;
    let report = LoadReport {
        per_s: count / began.elapsed().as_secs_f64(),
        ms_p50: quantile(&all.ms, 0.5),
        ms_p99: quantile(&all.ms, 0.99),
        answer_bytes: all.bytes as f64 / count.max(1.0),
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn ask(
    port: u16,
    questions: &[Vec<u8>],
    first: usize,
    pause: Option<Duration>,
    until: Instant,
) -> Result<Seen> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut seen = Seen::default();
    let mut due = Instant::now();
    for question in questions.iter().cycle().skip(first % questions.len()) {
        if Instant::now() >= until {
            break;
        }
        let asked = match pause {
            // From when it was due: a server that stalls does not get to skip
            // the questions that came meanwhile.
            Some(pause) => {
                due += pause;
                tokio::time::sleep_until(due.into()).await;
                due
            }
            None => Instant::now(),
        };
        stream.write_all(question).await?;
        seen.bytes += answer(&mut stream, &mut buffer).await? as u64;
        seen.ms.push(asked.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(seen)
}

/// Reads one answer and returns how long its body was.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<usize> {
    buffer.clear();
    let (head, length) = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break (end + 4, body_length(&buffer[..end])?);
        }
        read_more(stream, buffer).await?;
    };
    while buffer.len() < head + length {
        read_more(stream, buffer).await?;
    }
    Ok(length)
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    if stream.read_buf(buffer).await? == 0 {
        bail!("the server closed the connection");
    }
    if buffer.len() > ANSWER_BYTES_MAX {
        bail!("an answer is too long");
    }
    Ok(())
}

fn body_length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        bail!("the server answered {status}");
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    length.context("an answer without a length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nContent-Length: 13";
        assert_eq!(body_length(head).unwrap(), 13);
        assert!(body_length(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 1").is_err());
        assert!(body_length(b"HTTP/1.1 200 OK\r\nx: y").is_err());
    }
}
