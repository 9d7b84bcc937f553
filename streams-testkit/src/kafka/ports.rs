//! Free ports for a broker.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use super::config::Ports;
use crate::error::{Error, Result};

/// Below the range that kernels use for outgoing connections (Linux: from 32768). A port of that range could be taken
/// while a broker is down between kill and restart: a client that keeps connecting to a closed local port of that range
/// can even be given the same port itself and connect to itself, after which the broker can't bind it.
const FIRST: u32 = 17_000;
const LAST: u32 = 31_998;

/// How many pairs are tried before giving up.
const TRIES: u32 = 500;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Two neighbouring ports that were free a moment ago. Someone may take them before the broker does: the caller retries.
pub(super) fn free() -> Result<Ports> {
    // Processes that run at the same time begin at different places.
    let begin = std::process::id().wrapping_mul(7_919) + NEXT.fetch_add(2, Ordering::Relaxed);
    for step in 0..TRIES {
        let offset = (begin.wrapping_add(step * 2)) % (LAST - FIRST);
        let candidate = u16::try_from(FIRST + offset).ok();
        let Some(client) = candidate else { continue };
        if is_free(client) && is_free(client + 1) {
            return Ok(Ports {
                client,
                controller: client + 1,
            });
        }
    }
    Err(Error::Usage(format!(
        "no two free neighbouring ports between {FIRST} and {LAST}"
    )))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_not_given_out() {
        let first = free().unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first.client)).unwrap();
        assert!(!is_free(first.client));
        assert_ne!(free().unwrap().client, first.client);
    }
}
