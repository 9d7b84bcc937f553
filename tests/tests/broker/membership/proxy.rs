//! A relay between a member and its coordinator that can lose an answer.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use streams_core::membership::codec::decode_response;
use streams_core::membership::codec::heartbeat::HeartbeatRequest;

const HEARTBEAT: i16 = 88;
const HEARTBEAT_VERSION: i16 = 1;

#[derive(Default)]
struct Watch {
    armed: AtomicBool,
    swallowed: AtomicU32,
    /// Answers with tasks that were let through since one was swallowed.
    assignments_since: AtomicU32,
}

/// Relays connections of one broker. The broker names its own address in answers; the relay puts its own there.
pub(super) struct Proxy {
    port: u16,
    watch: Arc<Watch>,
}

impl Proxy {
    pub(super) fn start(broker: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Arc::new(Watch::default());
        let (broker, watched) = (broker.to_owned(), Arc::clone(&watch));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&broker).unwrap());
                relay(client, server, port, &broker, &watched);
            }
        });
        Self { port, watch }
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The next answer that has tasks is lost, with its connection.
    pub(super) fn swallow_next_assignment(&self) {
        self.watch.armed.store(true, Ordering::SeqCst);
    }

    pub(super) fn swallowed(&self) -> u32 {
        self.watch.swallowed.load(Ordering::SeqCst)
    }

    pub(super) fn assignments_since(&self) -> u32 {
        self.watch.assignments_since.load(Ordering::SeqCst)
    }
}

/// The keys of requests by correlation id.
type Asked = Arc<Mutex<HashMap<i32, i16>>>;

fn relay(client: TcpStream, server: TcpStream, port: u16, broker: &str, watch: &Arc<Watch>) {
    let asked = Asked::default();
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        while let Some(frame) = read_frame(&mut from_client) {
            let key = i16::from_be_bytes([frame[0], frame[1]]);
            let correlation = i32::from_be_bytes(frame[4..8].try_into().unwrap());
            seen.lock().unwrap().insert(correlation, key);
            dump("request", key, &frame);
            if write_frame(&mut to_server, &frame).is_none() {
                break;
            }
        }
        let _closed = to_server.shutdown(Shutdown::Both);
    });
    let (mut from_server, mut to_client) = (server, client);
    let (watch, broker) = (Arc::clone(watch), broker.to_owned());
    std::thread::spawn(move || {
        while let Some(mut frame) = read_frame(&mut from_server) {
            let correlation = i32::from_be_bytes(frame[..4].try_into().unwrap());
            let key = asked.lock().unwrap().remove(&correlation).unwrap();
            dump("answer", key, &frame);
            redirect(&mut frame, &broker, port);
            if (key == HEARTBEAT && lost(&frame, correlation, &watch)) || write_frame(&mut to_client, &frame).is_none()
            {
                break;
            }
        }
        let _closed = (to_client.shutdown(Shutdown::Both), from_server.shutdown(Shutdown::Both));
    });
}

/// Counts assignments; says whether this one is to be lost.
fn lost(frame: &[u8], correlation: i32, watch: &Watch) -> bool {
    let answer = decode_response::<HeartbeatRequest>(HEARTBEAT_VERSION, correlation, frame).unwrap();
    if answer.tasks.is_none() {
        return false;
    }
    if watch.armed.swap(false, Ordering::SeqCst) {
        watch.swallowed.fetch_add(1, Ordering::SeqCst);
        return true;
    }
    if watch.swallowed.load(Ordering::SeqCst) > 0 {
        watch.assignments_since.fetch_add(1, Ordering::SeqCst);
    }
    false
}

/// Replaces the broker's port where an answer has host and port, as FindCoordinator's has.
fn redirect(frame: &mut [u8], broker: &str, port: u16) {
    let (host, broker_port) = broker.rsplit_once(':').unwrap();
    let mut there = host.as_bytes().to_vec();
    there.extend(broker_port.parse::<i32>().unwrap().to_be_bytes());
    if let Some(at) = frame.windows(there.len()).position(|window| window == there) {
        let at = at + host.len();
        frame[at..at + 4].copy_from_slice(&i32::from(port).to_be_bytes());
    }
}

/// With `MEMBERSHIP_FRAMES` set, prints frames of membership as hex; that is where the codec's recorded frames come from.
fn dump(what: &str, key: i16, frame: &[u8]) {
    if std::env::var_os("MEMBERSHIP_FRAMES").is_some() {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{what} {key} {hex}");
    }
}

fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}

fn write_frame(stream: &mut TcpStream, frame: &[u8]) -> Option<()> {
    stream.write_all(&(frame.len() as u32).to_be_bytes()).ok()?;
    stream.write_all(frame).ok()
}

/// Sends one encoded request, its length included, and returns the frame of the answer.
pub(super) fn raw_call(broker: &str, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(broker).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request).unwrap();
    read_frame(&mut stream).unwrap()
}
