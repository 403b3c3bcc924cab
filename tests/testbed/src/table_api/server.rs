//! The HTTP side: three doors (tables, tokens, control) in front of the world.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Request as HttpRequest, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use super::answer::error_body;
use super::auth::Claim;
use super::control::Command;
use super::net::{Door, DoorState, Peer};
use super::params::pairs;
use super::read::Request;
use super::wire::{Answer, pack};
use super::world::World;

/// What the server and the handle share.
pub(super) struct Shared {
    world: Mutex<World>,
    pub closed: watch::Sender<bool>,
    pub door: Arc<DoorState>,
    pub connections: Arc<AtomicU64>,
    /// How to greet, if over TLS.
    pub tls: Option<TlsAcceptor>,
}

impl Shared {
    pub fn new(world: World, tls: Option<TlsAcceptor>) -> Self {
        Self { tls, world: Mutex::new(world), closed: watch::Sender::new(false), door: Arc::default(), connections: Arc::default() }
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The world. A test that panicked while it held the lock has said so already; the others go on.
    pub fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.log.counters.connections = self.connections.load(Ordering::SeqCst);
        world
    }
}

/// Serves until the sender of `stop` sends or goes away.
pub(super) async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, stop: oneshot::Receiver<()>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let door = Door::new(listener, &shared)?;
    let router = Router::new()
        .route("/oauth_token.do", post(token))
        .route("/control/apply", post(apply))
        .route("/control/{what}", get(show))
        .route("/control/versions/{table}", get(versions))
        .fallback(table)
        .with_state(shared)
        .into_make_service_with_connect_info::<Peer>();
    tokio::select! {
        served = axum::serve(door, router) => served,
        _ = stop => Ok(()),
    }
}

/// Binds before anything is started, so that a port in use is an error of the caller.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn table(State(shared): State<Arc<Shared>>, ConnectInfo(peer): ConnectInfo<Peer>, http: HttpRequest) -> Response {
    let mut request = request(http.method(), http.uri(), http.headers(), &peer, shared.scheme());
    let gzip = accepts_gzip(http.headers());
    let Some(target) = target(http.uri().path()) else {
        let what = format!("{} {}", request.method, request.path);
        shared.world().refuse(&what);
        let body = error_body("The simulator does not know this path", Some(&what));
        return (StatusCode::NOT_IMPLEMENTED, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    };
    (request.table, request.sys_id, request.first_version) = target;
    let (answer, number) = shared.world().read(&request);
    send(&shared, &peer, answer, number, gzip).await
}

async fn token(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = request(&method, &uri, &headers, &peer, shared.scheme());
    let kind = text(&headers, "content-type").unwrap_or_default();
    // Anything but a form is read as a form without fields, and denied as such.
    let form = if kind.starts_with("application/x-www-form-urlencoded") {
        url::form_urlencoded::parse(&body).into_owned().collect()
    } else {
        Vec::new()
    };
    let (answer, number) = shared.world().token(&request, &form);
    send(&shared, &peer, answer, number, accepts_gzip(&headers)).await
}

async fn send(shared: &Shared, peer: &Peer, answer: Answer, number: u64, accepts_gzip: bool) -> Response {
    // Compressing megabytes must not hold up the other connections of the runtime.
    let packed = tokio::task::spawn_blocking(move || pack(answer, accepts_gzip)).await;
    let packed = match packed {
        Ok(Ok(packed)) => packed,
        Ok(Err(why)) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).into_response();
        }
        Err(why) => return (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).into_response(),
    };
    shared.world().log.sent(number, packed.body.len(), packed.gzip);
    if packed.transport.reset {
        peer.reset();
    }
    if packed.transport.delay_millis > 0 {
        tokio::time::sleep(Duration::from_millis(packed.transport.delay_millis)).await;
    }
    packed.into_response()
}

fn request(method: &Method, uri: &Uri, headers: &HeaderMap, peer: &Peer, scheme: &str) -> Request {
    let host = text(headers, "host").unwrap_or_else(|| "127.0.0.1".to_owned());
    Request {
        method: method.to_string(),
        path: uri.path().to_owned(),
        base_url: format!("{scheme}://{host}"),
        url_length: format!("{scheme}://{host}{uri}").len(),
        pairs: pairs(uri.query().unwrap_or_default()),
        claim: Claim {
            authorization: text(headers, "authorization"),
            api_key: text(headers, "x-sn-apikey"),
            certificate: peer.certificate(),
        },
        cookie: text(headers, "cookie"),
        user_agent: text(headers, "user-agent"),
        accept: text(headers, "accept"),
        connection: peer.number,
        ..Request::default()
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = text(headers, "accept-encoding").unwrap_or_default();
    accepted.split(',').map(str::trim).any(|coding| coding == "gzip" || coding.starts_with("gzip;"))
}

/// Table, single record, and whether it is version 1 of the API.
fn target(path: &str) -> Option<(String, Option<String>, bool)> {
    let rest = path.strip_prefix("/api/now/")?;
    let (rest, first) = match rest.strip_prefix("v1/") {
        Some(rest) => (rest, true),
        None => (rest.strip_prefix("v2/").unwrap_or(rest), false),
    };
    let rest = rest.strip_prefix("table/")?;
    let mut segments = rest.split('/').map(decoded);
    let table = segments.next().filter(|table| !table.is_empty())?;
    let record = segments.next();
    if segments.next().is_some() {
        return None;
    }
    Some((table, record, first))
}

/// A segment of a path, in which a plus is a plus.
fn decoded(segment: &str) -> String {
    let form = format!("x={}", segment.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

async fn apply(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let commands = match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Array(commands)) => commands,
        Ok(command) => vec![command],
        Err(why) => return bad(&why.to_string()),
    };
    let parsed: Result<Vec<Command>, _> = commands.into_iter().map(serde_json::from_value).collect();
    let commands = match parsed {
        Ok(commands) => commands,
        Err(why) => return bad(&why.to_string()),
    };
    let mut world = shared.world();
    let done: Result<Vec<Value>, String> = commands.into_iter().map(|command| world.apply(command)).collect();
    match done {
        Ok(results) => good(&json!({"results": results})),
        Err(why) => bad(&why),
    }
}

async fn show(State(shared): State<Arc<Shared>>, Path(what): Path<String>) -> Response {
    let world = shared.world();
    match what.as_str() {
        "log" => good(&json!({"log": world.log.entries})),
        "counters" => good(&json!({"counters": world.log.counters})),
        "refusals" => good(&json!({"refusals": world.log.refusals})),
        "settings" => good(&json!({"settings": world.settings})),
        "clock" => good(&json!({"now": world.clock.stamp()})),
        "faults" => good(&json!({"pending": world.faults.pending()})),
        other => bad(&format!("there is nothing to show under `{other}`")),
    }
}

async fn versions(State(shared): State<Arc<Shared>>, Path(table): Path<String>) -> Response {
    match shared.world().visible_versions(&table) {
        Ok(versions) => good(&json!({"versions": versions})),
        Err(why) => bad(&why),
    }
}

fn good(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn bad(why: &str) -> Response {
    let body = json!({"error": why}).to_string();
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
