//! A socket that is read and written straight through the kernel.
//!
//! libc's `recv` and `send` are places at which a thread can be cancelled, and
//! every call of a program with threads prepares for that. Nobody cancels the
//! world's thread; with thousands of calls in a tick it shows.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A socket of the world's thread, which is never waited for.
pub struct RawSocket(TcpStream);

impl RawSocket {
    /// Goes on with a socket that does not block.
    pub fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    /// Ends our side.
    ///
    /// # Errors
    /// When the other side is gone.
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
        // Without the flag, whoever has gone would end the process.
        Ok(send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
