//! The server on loopback.

use crate::answers;
use crate::asked::task_at;
use crate::assets::{asset, have_page};
use crate::guard::Guard;
use crate::loaded::Loaded;
use crate::query::{Answered, Body, Failure, Query};
use axum::Router;
use axum::body::{Body as Sent, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use schedlab_base::{CpuId, Error, Nanos, Result, Tid, parse_duration};
use serde_json::json;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use tokio::sync::broadcast;

/// What the page may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A row of a trace at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The trace, from 0.
    pub trace: usize,
    /// Which row.
    pub row: Lane,
    /// The instant, from the trace's start.
    pub time: Nanos,
}

/// A CPU, or a task by its thread id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The CPU with this number.
    Cpu(CpuId),
    /// The task with this thread id.
    Task(Tid),
}

/// Reads `cpu:9@120ms` or `task:4711@1.2s`; `2/cpu:9@120ms` is in the second trace.
///
/// # Errors
/// With what would be right.
pub fn picked(text: &str) -> std::result::Result<Picked, String> {
    let wrong = || "write cpu:NUMBER@TIME or task:TID@TIME, as in cpu:9@120ms or 2/cpu:9@120ms".to_owned();
    let (number, place) = text.split_once('/').unwrap_or(("1", text));
    let trace = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).ok_or_else(wrong)?;
    let (row, time) = place.split_once('@').ok_or_else(wrong)?;
    let row = match row.split_once(':') {
        Some(("cpu", number)) => Lane::Cpu(number.parse().map_err(|_| wrong())?),
        Some(("task", tid)) => Lane::Task(tid.parse().map_err(|_| wrong())?),
        _ => return Err(wrong()),
    };
    Ok(Picked { trace, row, time: parse_duration(time).map_err(|e| e.to_string())? })
}

/// What the page shows first, as the command line says.
#[derive(Clone, Debug, Default)]
pub struct Initial {
    /// From here on.
    pub from: Option<Nanos>,
    /// Until here.
    pub to: Option<Nanos>,
    /// `cpu` or `task`.
    pub by: Option<&'static str>,
    /// What is picked.
    pub pick: Option<Picked>,
}

impl Initial {
    /// As the page reads it. A task that is not known yet has no number.
    pub(crate) fn to_json(&self, traces: &[Arc<Loaded>]) -> serde_json::Value {
        let pick = self.pick.map(|Picked { trace, row, time }| {
            let (by, id) = match row {
                Lane::Cpu(cpu) => ("cpu", Some(cpu)),
                Lane::Task(tid) => ("task", traces.get(trace).and_then(|own| task_at(&own.indexer().index, tid, time))),
            };
            json!({ "by": by, "id": id, "time": time, "trace": trace })
        });
        json!({ "from": self.from, "to": self.to, "by": self.by, "pick": pick })
    }
}

/// A server in the making: it has its port, and answers nobody yet.
#[derive(Debug)]
pub struct Serving {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    traces: Vec<Arc<Loaded>>,
    guard: Guard,
    initial: Option<Initial>,
    news: broadcast::Sender<Arc<str>>,
}

/// Tells pages what happens to traces.
#[derive(Clone, Debug)]
pub struct News(broadcast::Sender<Arc<str>>);

impl News {
    fn tell(&self, event: &str, data: &serde_json::Value) {
        // Nobody may be listening.
        let _ = self.0.send(format!("event: {event}\ndata: {data}\n\n").into());
    }

    /// A trace has grown.
    pub fn grown(&self, loaded: &Loaded) {
        let indexer = loaded.indexer();
        self.tell("grown", &json!({ "id": loaded.id, "end": indexer.index.end, "events": indexer.counts().0 }));
    }

    /// A trace is complete.
    pub fn ended(&self, loaded: &Loaded) {
        self.tell("ended", &json!({ "id": loaded.id }));
    }

    /// The violations of a trace are known.
    pub fn checked(&self, loaded: &Loaded) {
        self.tell("checked", &json!({ "id": loaded.id }));
    }
}

impl Serving {
    /// Takes a port: this one, or any that is free if it is 0.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no random bytes for the token.
    pub fn new(traces: Vec<Arc<Loaded>>, port: u16, initial: Option<Initial>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => Error::input(format!("port {port} is in use"))
                .key("--port")
                .mend("choose another, or leave it out: then any free one is taken"),
            ErrorKind::PermissionDenied => {
                Error::input(format!("port {port} may not be used")).key("--port").mend("choose one from 1024 on")
            }
            _ => Error::system(format!("cannot listen on port {port} of this machine"), &e),
        })?;
        let port = listener.local_addr().map_err(|e| Error::system("the port is not known", &e))?.port();
        let guard = Guard::new(port).map_err(|e| Error::system("no random bytes for a token", &e))?;
        let news = broadcast::channel(64).0;
        Ok(Self { listener, shared: Arc::new(Shared { traces, guard, initial, news }) })
    }

    /// The address to open.
    #[must_use]
    pub fn address(&self) -> String {
        let port = self.listener.local_addr().map_or(0, |address| address.port());
        format!("http://127.0.0.1:{port}/{}/", self.shared.guard.token())
    }

    /// Through which pages hear of changes.
    #[must_use]
    pub fn news(&self) -> News {
        News(self.shared.news.clone())
    }
}

/// Answers until Ctrl-C.
///
/// # Errors
/// When the system refuses.
pub fn serve(serving: Serving) -> Result<()> {
    let fail = |e: std::io::Error| Error::system("cannot serve", &e);
    let Serving { listener, shared } = serving;
    listener.set_nonblocking(true).map_err(fail)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(fail)?;
    let ended = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(fail)?;
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(fail)?;
        let router = Router::new().fallback(respond).with_state(shared);
        tokio::select! {
            served = axum::serve(listener, router) => served.map_err(fail),
            signal = tokio::signal::ctrl_c() => signal.map_err(fail),
            _ = terminate.recv() => Ok(()),
        }
    });
    // Requests that are still being answered have nobody who waits for them.
    runtime.shutdown_background();
    ended
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let Some(asked) = shared.guard.admit(&path, &parts.headers).map(str::to_owned) else {
        return response(StatusCode::FORBIDDEN, "text/plain", Sent::empty());
    };
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return failure(&Failure(405, "only GET is answered".to_owned()));
    }
    if asked == "api/events" {
        return events(&shared);
    }
    let query = Query::new(parts.uri.query().unwrap_or_default());
    // Answers are computed, and the threads that serve must not wait for them.
    let answered = tokio::task::spawn_blocking(move || answer(&shared, &asked, &query)).await;
    match answered {
        Ok(Ok((kind, body))) => response(StatusCode::OK, kind, Sent::from(body)),
        Ok(Err(failed)) => failure(&failed),
        Err(_) => failure(&Failure(500, "the server failed at this question".to_owned())),
    }
}

fn answer(shared: &Shared, asked: &str, query: &Query) -> Answered<(&'static str, Bytes)> {
    let parts: Vec<&str> = asked.split('/').collect();
    let body = match parts[..] {
        ["api", "traces"] => {
            let ready = shared.traces.iter().try_for_each(|loaded| loaded.wait());
            ready.map_err(|text| Failure(500, text))?;
            let traces: Vec<_> = shared.traces.iter().map(|loaded| loaded.facts()).collect();
            let view = shared.initial.as_ref().map(|initial| initial.to_json(&shared.traces));
            Body::json(&json!({ "traces": traces, "view": view }))
        }
        ["api", id, what] => {
            let number = id.parse::<usize>().ok();
            let loaded = number.and_then(|id| shared.traces.get(id));
            let loaded = loaded.ok_or_else(|| Failure::none(format!("there is no trace {id}")))?;
            answers::answer(loaded, what, query)?
        }
        ["api", "diff"] => {
            let of = |name| -> Answered<&Loaded> {
                let id: usize = query.needed(name)?;
                let loaded = shared.traces.get(id).ok_or_else(|| Failure::none(format!("there is no trace {id}")))?;
                loaded.wait().map_err(|text| Failure(500, text))?;
                Ok(loaded)
            };
            crate::measured::diff(of("a")?, of("b")?)?
        }
        [name] => {
            let name = if name.is_empty() { "index.html" } else { name };
            let (_, kind, contents) = asset(name).ok_or_else(|| no_file(name))?;
            return Ok((kind, Bytes::from_static(contents)));
        }
        _ => return Err(no_file(asked)),
    };
    Ok(match body {
        Body::Json(text) => ("application/json", text.into()),
        Body::Arrow(bytes) => ("application/vnd.apache.arrow.stream", bytes.into()),
    })
}

fn no_file(name: &str) -> Failure {
    if have_page() {
        Failure::none(format!("there is no {name}"))
    } else {
        Failure::none("this schedlab was built without the page: Node was missing".to_owned())
    }
}

/// The stream of what happens to the traces.
fn events(shared: &Shared) -> Response {
    let told = stream::unfold(shared.news.subscribe(), |mut news| async {
        loop {
            match news.recv().await {
                Ok(text) => return Some((Ok::<_, Infallible>(Bytes::copy_from_slice(text.as_bytes())), news)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    response(StatusCode::OK, "text/event-stream", Sent::from_stream(told))
}

fn failure(Failure(status, text): &Failure) -> Response {
    let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(status, "application/json", Sent::from(json!({ "error": text }).to_string()))
}

fn response(status: StatusCode, kind: &'static str, body: Sent) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let fixed = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}
