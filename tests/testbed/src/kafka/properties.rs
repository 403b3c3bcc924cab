//! What the broker is told: a cluster of one that behaves as a production cluster does where a client can see it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use super::security::{self, SecurePorts};
use crate::parts::{self, PartError};

/// The ports of one broker, kept over its restarts.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) controller: u16,
    pub(super) proxied: Option<u16>,
    pub(super) secure: Option<SecurePorts>,
}

impl Ports {
    pub(super) fn choose(proxied: bool, secured: bool) -> Result<Self, PartError> {
        let mut taken = Vec::new();
        let mut next = || {
            let mut port = parts::free_port()?;
            while taken.contains(&port) {
                port = parts::free_port()?;
            }
            taken.push(port);
            Ok(port)
        };
        let (plain, controller) = (next()?, next()?);
        let proxied = if proxied { Some(next()?) } else { None };
        let secure = if secured { Some(SecurePorts { tls: next()?, mutual: next()?, sasl: next()? }) } else { None };
        Ok(Self { plain, controller, proxied, secure })
    }
}

/// One way into the broker.
pub(super) struct Listener {
    pub(super) name: &'static str,
    pub(super) port: u16,
    pub(super) protocol: &'static str,
    /// What clients are told to connect to; the controller is nobody's business.
    pub(super) advertised: Option<String>,
}

fn listeners(ports: &Ports, proxy: Option<SocketAddr>) -> Vec<Listener> {
    let mut listeners = vec![
        Listener { name: "PLAINTEXT", port: ports.plain, protocol: "PLAINTEXT", advertised: Some(format!("127.0.0.1:{}", ports.plain)) },
        Listener { name: "CONTROLLER", port: ports.controller, protocol: "PLAINTEXT", advertised: None },
    ];
    if let (Some(port), Some(proxy)) = (ports.proxied, proxy) {
        let protocol = if ports.secure.is_some() { "SASL_SSL" } else { "PLAINTEXT" };
        listeners.push(Listener { name: "PROXIED", port, protocol, advertised: Some(proxy.to_string()) });
    }
    listeners.extend(security::listeners(ports));
    listeners
}

/// The text of `server.properties`. `extra` replaces what is set here.
pub(super) fn server(ports: &Ports, proxy: Option<SocketAddr>, folder: &Path, extra: &[(String, String)]) -> String {
    let listeners = listeners(ports, proxy);
    let join = |each: &dyn Fn(&Listener) -> Option<String>| listeners.iter().filter_map(each).collect::<Vec<_>>().join(",");
    let controller = format!("1@127.0.0.1:{}", ports.controller);
    let mut keys = BTreeMap::new();
    let mut set = |key: &str, value: String| keys.insert(key.to_owned(), value);
    set("process.roles", "broker,controller".to_owned());
    set("node.id", "1".to_owned());
    set("controller.quorum.voters", controller);
    set("controller.listener.names", "CONTROLLER".to_owned());
    set("inter.broker.listener.name", "PLAINTEXT".to_owned());
    set("listeners", join(&|it| Some(format!("{}://127.0.0.1:{}", it.name, it.port))));
    set("advertised.listeners", join(&|it| it.advertised.as_ref().map(|at| format!("{}://{at}", it.name))));
    set("listener.security.protocol.map", join(&|it| Some(format!("{}:{}", it.name, it.protocol))));
    set("log.dirs", folder.join("data").display().to_string());
    // As on MSK: a topic that nobody created is an error.
    set("auto.create.topics.enable", "false".to_owned());
    // Of one broker, nothing can have three replicas.
    for topic in ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
        set(&format!("{topic}.replication.factor"), "1".to_owned());
        set(&format!("{topic}.num.partitions"), "1".to_owned());
    }
    set("transaction.state.log.min.isr", "1".to_owned());
    set("share.coordinator.state.topic.min.isr", "1".to_owned());
    set("group.initial.rebalance.delay.ms", "0".to_owned());
    // A killed broker is let in again once its last session has run out, 9 s by default. One that was frozen for
    // longer than this is out for a moment after its thaw, and its partitions have no leader for as long.
    set("broker.session.timeout.ms", "2000".to_owned());
    set("broker.heartbeat.interval.ms", "500".to_owned());
    // The cleaner's buffer is 128 MiB by default, a third of this JVM's heap.
    set("log.cleaner.dedupe.buffer.size", (2 * 1024 * 1024).to_string());
    if ports.secure.is_some() {
        for (key, value) in security::settings() {
            set(&key, value);
        }
    }
    for (key, value) in extra {
        set(key, value.clone());
    }
    let mut text = String::new();
    for (key, value) in keys {
        text.push_str(&format!("{key}={value}\n"));
    }
    text
}

/// Warnings and worse, and the one line that says that the server runs, to a file of the broker's own.
pub(super) fn log4j2(file: &Path) -> String {
    format!(
        "status=error\n\
         appender.file.type=File\n\
         appender.file.name=file\n\
         appender.file.fileName={}\n\
         appender.file.layout.type=PatternLayout\n\
         appender.file.layout.pattern=[%d] %p %m (%c)%n\n\
         rootLogger.level=warn\n\
         rootLogger.appenderRef.file.ref=file\n\
         logger.server.name=kafka.server.KafkaRaftServer\n\
         logger.server.level=info\n",
        file.display()
    )
}
