//! A socket that is read and written through direct system calls.
//!
//! libc's `recv` and `send` are thread cancellation points, and prepare for that on
//! every call in a multithreaded program. The world's thread is never cancelled;
//! with thousands of calls in a tick the overhead is measurable.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A non-blocking socket of the world's thread.
pub struct RawSocket(TcpStream);

impl RawSocket {
    /// Takes over a non-blocking socket.
    pub fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    /// Shuts down our side.
    ///
    /// # Errors
    /// When the other side has disconnected.
    pub fn shut(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }
}

impl Read for RawSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (count, _) = recv(&self.0, bytes, RecvFlags::empty())?;
        Ok(count)
    }
}

impl Write for RawSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without the flag, writing to a disconnected peer would kill the process.
        Ok(send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
