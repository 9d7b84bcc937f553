//! One plain-text connection: a request, its answer, each within a bound.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::clock::Clock;
use crate::membership::codec::wire::WireError;
use crate::membership::codec::{Request, decode_response, encode_request};

/// Largest answer that is read. A group of 10,000 tasks with their endpoints stays below a tenth of it.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// Why a request has no answer. The connection is of no use afterwards.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("cannot connect to {server}: {source}")]
    Connect { server: String, source: io::Error },
    #[error("connection to {server} failed: {source}")]
    Io { server: String, source: io::Error },
    #[error("{server} sent an answer of {bytes} bytes")]
    TooLarge { server: String, bytes: i64 },
    #[error("{server}: {source}")]
    Wire { server: String, source: WireError },
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    server: String,
    client_id: String,
    correlation_id: i32,
    timeout: Duration,
}

impl Connection {
    /// Connects to `server` (`host:port`), trying each of its addresses for `timeout` at most.
    pub(super) fn open(server: &str, client_id: &str, timeout: Duration) -> Result<Self, ConnectionError> {
        let failed = |source| ConnectionError::Connect {
            server: server.to_owned(),
            source,
        };
        let stream = connect(server, timeout).map_err(failed)?;
        // Requests are single small frames; waiting to fill packets would only delay them.
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_write_timeout(Some(timeout)).map_err(failed)?;
        Ok(Self {
            stream,
            server: server.to_owned(),
            client_id: client_id.to_owned(),
            correlation_id: 0,
            timeout,
        })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Sends a request and reads its answer.
    pub(super) fn call<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, ConnectionError> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let frame = encode_request(request, version, self.correlation_id, &self.client_id);
        let answer = self.exchange(&frame)?;
        decode_response::<R>(version, self.correlation_id, &answer).map_err(|source| ConnectionError::Wire {
            server: self.server.clone(),
            source,
        })
    }

    fn exchange(&mut self, frame: &[u8]) -> Result<Vec<u8>, ConnectionError> {
        let clock = Clock::start();
        self.stream.write_all(frame).map_err(|source| self.failed(source))?;
        let mut len = [0; 4];
        self.read(&mut len, clock)?;
        let bytes = i32::from_be_bytes(len);
        let len = usize::try_from(bytes).ok().filter(|&len| len <= MAX_RESPONSE_BYTES);
        let Some(len) = len else {
            return Err(ConnectionError::TooLarge {
                server: self.server.clone(),
                bytes: i64::from(bytes),
            });
        };
        let mut answer = vec![0; len];
        self.read(&mut answer, clock)?;
        Ok(answer)
    }

    /// Fills `buffer` before `clock` shows the time-out; many small pieces cannot stretch it.
    fn read(&mut self, buffer: &mut [u8], clock: Clock) -> Result<(), ConnectionError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let elapsed = Duration::from_millis(clock.now_ms().unsigned_abs());
            let left = self.timeout.saturating_sub(elapsed);
            if left.is_zero() {
                return Err(self.failed(io::ErrorKind::TimedOut.into()));
            }
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|source| self.failed(source))?;
            match self.stream.read(rest) {
                Ok(0) => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> ConnectionError {
        ConnectionError::Io {
            server: self.server.clone(),
            source,
        }
    }
}

fn connect(server: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
