//! A bootstrap that does what its event says: what the tests of the Lambda emulator run.
//!
//! It speaks the Runtime API by hand, one connection per request, so that the emulator is tested against plain HTTP
//! and not against the habits of one library. The event's `do` is one of:
//!
//! * `echo`: answers with the event, the process id, the deadline and its environment variables;
//! * `sleep`: sleeps `ms`, then as `echo`;
//! * `spin`: uses `ms` of CPU time, however long that takes, then as `echo`;
//! * `fail`: reports the error `Echo.Failed`;
//! * `exit`: ends the process with `code`, without an answer;
//! * `big`: answers with `bytes` bytes of JSON;
//! * `linger`: as `echo`, but sleeps `ms` between its answer and its request for the next event;
//! * `twice`: answers twice, and answers the next `echo` with the status of the second answer.
//!
//! The variable `ECHO_INIT` makes the start fail: `fail` reports an error, `exit` ends the process, `hang` never asks
//! for an event. `ECHO_TICKS=1` writes a line every ten milliseconds, for as long as the process is let run.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let api = Api { address: std::env::var("AWS_LAMBDA_RUNTIME_API").map_err(io::Error::other)? };
    println!("echo-bootstrap {} starts", std::process::id());
    match std::env::var("ECHO_INIT").as_deref() {
        Ok("fail") => {
            api.post("runtime/init/error", &json!({"errorType": "Echo.Init", "errorMessage": "as told"}))?;
            std::process::exit(1);
        }
        Ok("exit") => std::process::exit(7),
        Ok("hang") => loop {
            std::thread::park();
        },
        _ => {}
    }
    if std::env::var_os("ECHO_TICKS").is_some() {
        std::thread::spawn(|| {
            loop {
                println!("tick");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
    let mut last_status = None;
    loop {
        last_status = handle(&api, last_status)?;
    }
}

/// Takes one event and does what it says.
fn handle(api: &Api, last_status: Option<u16>) -> io::Result<Option<u16>> {
    let next = api.request("GET", "runtime/invocation/next", b"")?;
    let id = next.header("lambda-runtime-aws-request-id")?;
    let event: Value = serde_json::from_slice(&next.body)?;
    let ms = Duration::from_millis(event["ms"].as_u64().unwrap_or_default());
    let answer = json!({
        "event": event,
        "pid": std::process::id(),
        "deadline_ms": next.header("lambda-runtime-deadline-ms")?,
        "arn": next.header("lambda-runtime-invoked-function-arn")?,
        "env": std::env::vars().collect::<BTreeMap<_, _>>(),
        "last_status": last_status,
    });
    let response = format!("runtime/invocation/{id}/response");
    match event["do"].as_str() {
        Some("echo") => {
            api.post(&response, &answer)?;
        }
        Some("sleep") => {
            println!("sleeping");
            std::thread::sleep(ms);
            api.post(&response, &answer)?;
        }
        Some("spin") => {
            let end = cpu_time()? + ms;
            while cpu_time()? < end {
                std::hint::spin_loop();
            }
            api.post(&response, &answer)?;
        }
        Some("fail") => {
            let error = json!({"errorType": "Echo.Failed", "errorMessage": "as told"});
            api.post(&format!("runtime/invocation/{id}/error"), &error)?;
        }
        Some("exit") => {
            println!("exiting");
            std::process::exit(event["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(1));
        }
        Some("big") => {
            let bytes = event["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
            return Ok(Some(api.post(&response, &Value::String("x".repeat(bytes.saturating_sub(2))))?));
        }
        Some("linger") => {
            api.post(&response, &answer)?;
            println!("lingering");
            std::thread::sleep(ms);
        }
        Some("twice") => {
            api.post(&response, &answer)?;
            return Ok(Some(api.post(&response, &answer)?));
        }
        _ => {
            return Err(io::Error::other(format!("an event that says nothing to do: {event}")));
        }
    }
    Ok(None)
}

/// The CPU time of this process so far, by proc(5): fields 14 and 15 of `stat`.
fn cpu_time() -> io::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_command) = stat.rsplit_once(')').ok_or_else(|| io::Error::other("no command in /proc/self/stat"))?;
    let fields = after_command.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

struct Api {
    address: String,
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> io::Result<String> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).ok_or_else(|| io::Error::other(format!("no header {name}")))
    }
}

impl Api {
    fn post(&self, path: &str, body: &Value) -> io::Result<u16> {
        Ok(self.request("POST", path, body.to_string().as_bytes())?.status)
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} /2018-06-01/{path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.address,
            body.len()
        )?;
        stream.write_all(body)?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let malformed = || io::Error::other("no HTTP");
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(malformed)?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        Ok(Answer {
            status,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: bytes.split_off(end + 4),
        })
    }
}
