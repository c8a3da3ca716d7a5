//! The checker's figures for Prometheus: a text over HTTP, on the loopback interface alone.

use schedlab_base::{Error, Nanos, Result};
use schedlab_measure::Work;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A reader that says nothing, or takes nothing, for so long is dropped.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a request that are read.
const MOST_REQUEST: u64 = 8192;

/// What the metrics show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// What the state is read by: `ebpf` or `proc`.
    pub by: &'static str,
    /// What the checker has done.
    pub work: Work,
    /// Looks left out because the checker had used its share of a CPU.
    pub left_out: u64,
    /// The CPU time that the checker has used since it began.
    pub cpu: Nanos,
    /// The CPUs that were idle at the end of the last watch that found something.
    pub last_idle_cpus: u64,
    /// When that was, in seconds since 1970.
    pub last_time_s: f64,
}

/// Serves the figures until this process ends.
#[derive(Debug)]
pub struct Metrics {
    figures: Arc<Mutex<Figures>>,
}

impl Metrics {
    /// Begins to serve at this address.
    ///
    /// # Errors
    /// When the address is not a loopback address, or cannot be had.
    pub fn serve(address: SocketAddr) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(Error::input(format!("{address} can be reached from other machines"))
                .mend("the metrics are served on the loopback interface alone: 127.0.0.1:9750")
                .key("--metrics"));
        }
        let listener = TcpListener::bind(address)
            .map_err(|e| Error::system(format!("cannot listen on {address}"), &e).key("--metrics"))?;
        let figures = Arc::<Mutex<Figures>>::default();
        let shown = Arc::clone(&figures);
        // The thread sleeps until somebody asks, and ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = text(&shown.lock().unwrap_or_else(PoisonError::into_inner));
                // A reader that goes away is its own affair.
                let _ = answer(stream, &text);
            }
        });
        Ok(Self { figures })
    }

    /// Shows these figures from now on.
    pub fn show(&self, figures: Figures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.try_clone()?.take(MOST_REQUEST)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (status, text) = match first.split(' ').collect::<Vec<_>>().as_slice() {
        ["GET", "/metrics" | "/", _] => ("200 OK", text),
        ["GET", ..] => ("404 Not Found", "the figures are at /metrics\n"),
        _ => ("405 Method Not Allowed", "ask with GET\n"),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

/// The figures in the format that Prometheus reads.
fn text(figures: &Figures) -> String {
    let Figures { by, work, left_out, cpu, last_idle_cpus, last_time_s } = figures;
    let mut out = String::new();
    let mut add = |name: &str, kind: &str, help: &str, labels: &str, value: f64| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP schedlab_check_{name} {help}");
        let _ = writeln!(out, "# TYPE schedlab_check_{name} {kind}\nschedlab_check_{name}{labels} {value}");
    };
    add("info", "gauge", "What the run queues are read by.", &format!("{{by=\"{by}\"}}"), 1.0);
    let count = "counter";
    let violations = "Watches at whose end a CPU was still idle beside tasks that could have run there.";
    add("violations_total", count, violations, "", work.violations as f64);
    let watches = "Looks that found a CPU idle beside tasks that could have run there.";
    add("watches_total", count, watches, "", work.watches as f64);
    add("looks_total", count, "Looks at the run queues.", "", work.looks as f64);
    let skipped = "Looks left out because the checker had used 0.5% of a CPU.";
    add("looks_left_out_total", count, skipped, "", *left_out as f64);
    add("cpu_seconds_total", count, "The CPU time that the checker has used.", "", *cpu as f64 / 1e9);
    let idle = "The idle CPUs of the last violation.";
    add("last_violation_idle_cpus", "gauge", idle, "", *last_idle_cpus as f64);
    let last = "When the last violation was found, in seconds since 1970; 0 if none was.";
    add("last_violation_timestamp_seconds", "gauge", last, "", *last_time_s);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_figures_are_served_as_prometheus_reads_them() {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Metrics::serve(address).unwrap();
        let work = Work { looks: 20, watches: 2, violations: 1, ..Work::default() };
        metrics.show(Figures { by: "ebpf", work, cpu: 2_500_000, last_time_s: 1.5, ..Figures::default() });
        let text = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        for line in [
            "schedlab_check_info{by=\"ebpf\"} 1\n",
            "# TYPE schedlab_check_violations_total counter\nschedlab_check_violations_total 1\n",
            "schedlab_check_looks_total 20\n",
            "schedlab_check_cpu_seconds_total 0.0025\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(ask(address, "GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(Metrics::serve(address).is_err(), "the port is taken");
    }

    #[test]
    fn only_this_machine_may_ask() {
        let error = Metrics::serve("0.0.0.0:9750".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("other machines") && error.exit_status() == 2, "{error}");
    }
}
