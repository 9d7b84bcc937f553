//! `/metrics` for Prometheus: the recorder, and one page over HTTP/1.1.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use streams_dsl::streams_metrics::{Kind, METRICS};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

/// Where the page is unless told otherwise: this machine alone, on the port that Kafka's exporters use.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9_404);

/// The longest head of a request.
const HEAD_BYTES: usize = 8 << 10;
/// How long a client may take for its request and for the answer.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Requests answered at once; more wait.
const REQUESTS: usize = 8;
/// Between two times at which samples are counted into buckets, so that they do not pile up without a scrape.
const UPKEEP: Duration = Duration::from_secs(5);

/// A series of which nobody told anything for so long belongs to a task that is gone: no thread lives that long without a
/// look at its metrics.
const GONE: Duration = Duration::from_secs(3_600);

/// A recorder with the library's bucket bounds. The caller installs it (before `KafkaStreams::start`) and has its handle
/// served.
///
/// # Errors
/// When the bounds are refused, which is a bug.
pub fn recorder() -> Result<PrometheusBuilder> {
    // Tasks that were given away are told nothing any more; histograms of tasks that live may have no sample for long.
    let values = MetricKindMask::COUNTER | MetricKindMask::GAUGE;
    let mut builder = PrometheusBuilder::new().idle_timeout(values, Some(GONE));
    for metric in METRICS.iter().filter(|metric| metric.kind == Kind::Histogram) {
        builder = builder.set_buckets_for_metric(Matcher::Full(metric.published_name()), metric.buckets())?;
    }
    Ok(builder)
}

/// The page, served by a thread of its own until this is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Installs the recorder of this process and serves what it records. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address can't be had, or another recorder is installed.
    pub fn install(address: SocketAddr) -> Result<Self> {
        // First the address: a process that can't serve its page should say so before it does anything else.
        let listener = listen(address)?;
        let handle = recorder()?.install_recorder()?;
        Self::serve(listener, handle)
    }

    /// Serves what a recorder records.
    ///
    /// # Errors
    /// When the address can't be had.
    pub fn start(address: SocketAddr, handle: PrometheusHandle) -> Result<Self> {
        Self::serve(listen(address)?, handle)
    }

    fn serve(listener: std::net::TcpListener, handle: PrometheusHandle) -> Result<Self> {
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            runtime.block_on(async {
                match TcpListener::from_std(listener) {
                    Ok(listener) => accept(listener, handle, stopped).await,
                    Err(error) => tracing::error!(%error, "metrics are not served"),
                }
            });
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(body)?;
        Ok(Endpoint {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where the page is, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)
        .with_context(|| format!("metrics can't be served on {address}: choose another --metrics-port (0: any)"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn accept(listener: TcpListener, handle: PrometheusHandle, mut stopped: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(REQUESTS));
    let mut upkeep = tokio::time::interval(UPKEEP);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            _ = upkeep.tick() => handle.run_upkeep(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // The place is taken inside the task: stop and upkeep go on while all are taken.
                    let (places, handle) = (Arc::clone(&places), handle.clone());
                    tokio::spawn(async move {
                        let Ok(_place) = places.acquire().await else { return };
                        let answered = tokio::time::timeout(REQUEST_LIMIT, answer(&stream, &handle)).await;
                        if !matches!(answered, Ok(Ok(()))) {
                            tracing::debug!(?answered, "a request for metrics was not answered");
                        }
                    });
                }
                Err(error) => {
                    // Out of files, mostly: not a reason to spin.
                    tracing::warn!(%error, "a connection for metrics was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn answer(stream: &TcpStream, handle: &PrometheusHandle) -> io::Result<()> {
    let response = match read_head(stream).await? {
        Some(head) => response_to(&head, || handle.render()),
        None => response("431 Request Header Fields Too Large", "the request is too long\n", true),
    };
    write_all(stream, response.as_bytes()).await
}

/// The head of a request; `None` if it is too long.
async fn read_head(stream: &TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => head.extend(part.iter().take(read)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        if head.len() > HEAD_BYTES {
            return Ok(None);
        }
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn response_to(head: &str, render: impl FnOnce() -> String) -> String {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return response("400 Bad Request", "this is no HTTP request\n", true);
    };
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        _ if !version.starts_with("HTTP/1.") => {
            response("505 HTTP Version Not Supported", "HTTP/1.1 is spoken\n", true)
        }
        ("GET" | "HEAD", "/metrics") => response("200 OK", &render(), method == "GET"),
        ("GET" | "HEAD", _) => response("404 Not Found", "there is /metrics\n", method == "GET"),
        _ => response("405 Method Not Allowed", "only GET\n", true),
    }
}

fn response(status: &str, body: &str, with_body: bool) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        body.len(),
        if with_body { body } else { "" }
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};

    use super::*;

    fn endpoint() -> Endpoint {
        let recorder = recorder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            streams_dsl::streams_metrics::describe();
            let labels = [("thread_id", "billing-1"), ("task_id", "0_1")];
            let dropped = streams_dsl::streams_metrics::DROPPED_RECORDS_TOTAL.published_name();
            metrics::counter!(dropped, &labels).increment(7);
            let latency = streams_dsl::streams_metrics::COMMIT_LATENCY.published_name();
            metrics::histogram!(latency, "thread_id" => "billing-1").record(12.0);
        });
        Endpoint::start(SocketAddr::new(ADDRESS.ip(), 0), recorder.handle()).unwrap()
    }

    fn ask(endpoint: &Endpoint, request: &str) -> String {
        let mut stream = std::net::TcpStream::connect(endpoint.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_plain_request_gets_names_help_labels_and_buckets() {
        let answer = ask(&endpoint(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", page.len())), "{head}");
        let lines: Vec<&str> = page.lines().collect();
        for line in [
            "# TYPE kafka_streams_task_dropped_records_total counter",
            "kafka_streams_task_dropped_records_total{thread_id=\"billing-1\",task_id=\"0_1\"} 7",
            "# TYPE kafka_streams_thread_commit_latency histogram",
            "kafka_streams_thread_commit_latency_bucket{thread_id=\"billing-1\",le=\"10\"} 0",
            "kafka_streams_thread_commit_latency_bucket{thread_id=\"billing-1\",le=\"25\"} 1",
            "kafka_streams_thread_commit_latency_sum{thread_id=\"billing-1\"} 12",
        ] {
            assert!(lines.contains(&line), "no `{line}` in\n{page}");
        }
        assert!(
            page.contains("# HELP kafka_streams_task_dropped_records_total Records dropped: "),
            "{page}"
        );
    }

    #[test]
    fn other_paths_and_methods_are_refused_and_the_endpoint_goes_on() {
        let endpoint = endpoint();
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
            ("GET /metrics HTTP/2\r\n\r\n", "505"),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
        ] {
            let answer = ask(&endpoint, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}: {answer}"
            );
        }
        let head = ask(&endpoint, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(
            head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0\r\n"),
            "{head}"
        );
    }

    #[test]
    fn an_endless_head_is_cut_off() {
        let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(HEAD_BYTES));
        let answer = ask(&endpoint(), &endless);
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    #[test]
    fn the_default_is_this_machine_alone_and_a_taken_port_is_named() {
        assert!(ADDRESS.ip().is_loopback());
        let endpoint = endpoint();
        let error = listen(endpoint.address()).unwrap_err();
        assert!(error.to_string().contains("--metrics-port"), "{error}");
    }
}
