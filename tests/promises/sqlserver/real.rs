//! The same tests on the test server and, where there is one, on a real SQL Server.
//!
//! `TABLESWEEP_TEST_MSSQL=mssql://user:password@host:port/database` names a database in which the login may make schemas
//! and tables. The tests make a schema of their own there and drop it with everything in it at the end. What follows a
//! question mark are keys of the connector: `?mssql.trust.server.certificate=true`. Without the variable the tests run on
//! the test server only, and say so.

use std::io::Write as _;
use std::panic::AssertUnwindSafe;

use serde_json::Value;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::tds::{self, Encryption, Identity, Server};
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

use super::bed::{Bed, code};

const VARIABLE: &str = "TABLESWEEP_TEST_MSSQL";

/// A server that tests run on, with a schema of their own.
struct Target {
    /// Documents, store and file. Its own server has nothing to do.
    bed: Bed,
    simulated: Option<Server>,
    host: String,
    port: u16,
    user: String,
    password: String,
    database: String,
    schema: String,
}

impl Target {
    /// A test server.
    fn simulated() -> Self {
        let server = Server::start().expect("a server");
        Self {
            host: "127.0.0.1".to_owned(),
            port: server.port(),
            user: tds::USER.to_owned(),
            password: tds::PASSWORD.to_owned(),
            database: tds::DATABASE.to_owned(),
            schema: "own".to_owned(),
            bed: Bed::new(),
            simulated: Some(server),
        }
    }

    /// What the variable names.
    fn real(text: &str) -> Self {
        let url = url::Url::parse(text).unwrap_or_else(|error| panic!("{VARIABLE} is no URL: {error}"));
        assert_eq!(url.scheme(), "mssql", "{VARIABLE} is to begin with mssql://");
        let mut bed = Bed::new().with("mssql.encrypt", "mandatory");
        for (key, value) in url.query_pairs() {
            bed.set(&key, value);
        }
        // The folder's name is random.
        let unique: String = bed.dir.path().to_string_lossy().chars().filter(char::is_ascii_alphanumeric).rev().take(6).collect();
        Self {
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port().unwrap_or(1433),
            user: decoded(url.username()),
            password: decoded(url.password().unwrap_or_default()),
            database: decoded(url.path().trim_start_matches('/')),
            simulated: None,
            schema: format!("tablesweep_test_{}_{unique}", std::process::id()),
            bed,
        }
    }

    /// The document's connection and table.
    fn point(&mut self, table: &str, column: &str) {
        let keys = [
            ("mssql.host", self.host.clone()),
            ("mssql.port", self.port.to_string()),
            ("mssql.user", self.user.clone()),
            ("mssql.password", self.password.clone()),
            ("mssql.database", self.database.clone()),
            ("mssql.table.orders.name", format!("{}.{table}", self.schema)),
            ("mssql.table.orders.sequence.column", column.to_owned()),
        ];
        for (key, value) in keys {
            self.bed.set(key, value);
        }
    }

    async fn connect(&self) -> Client<Compat<TcpStream>> {
        let mut config = Config::new();
        config.host(&self.host);
        config.port(self.port);
        config.database(&self.database);
        config.authentication(AuthMethod::sql_server(&self.user, &self.password));
        config.encryption(if self.simulated.is_some() { EncryptionLevel::NotSupported } else { EncryptionLevel::Required });
        // These are the tests' own statements; whom the product trusts is the document's to say.
        config.trust_cert();
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.expect("a connection");
        Box::pin(Client::connect(config, stream.compat_write())).await.unwrap_or_else(|error| panic!("{}: {error}", self.host))
    }

    /// Runs a batch; `$` stands for the schema.
    async fn run(&self, statements: &str) {
        let mut client = self.connect().await;
        execute(&mut client, &self.own(statements)).await;
        client.close().await.expect("closed");
    }

    fn own(&self, statements: &str) -> String {
        statements.replace('$', &self.schema)
    }

    /// Drops what is in the schema, and the schema.
    async fn clear(&self) {
        let mut client = self.connect().await;
        let kinds = "SELECT o.name, o.type FROM sys.objects AS o INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
                     WHERE s.name = @P1 AND o.type IN ('U ', 'V ', 'SN')";
        let found = client.query(kinds, &[&self.schema.as_str()]).await.expect("a query").into_first_result().await.expect("rows");
        for row in found {
            let (name, kind) = (row.get::<&str, _>(0).unwrap_or_default(), row.get::<&str, _>(1).unwrap_or_default());
            let kind = match kind {
                "V " => "VIEW",
                "SN" => "SYNONYM",
                _ => "TABLE",
            };
            execute(&mut client, &format!("DROP {kind} [{}].[{name}]", self.schema)).await;
        }
        execute(&mut client, &format!("DROP SCHEMA [{}]", self.schema)).await;
        client.close().await.expect("closed");
    }
}

async fn execute(client: &mut Client<Compat<TcpStream>>, statements: &str) {
    let ran = match client.simple_query(statements).await {
        Ok(stream) => stream.into_results().await.map(drop),
        Err(error) => Err(error),
    };
    ran.unwrap_or_else(|error| panic!("{error} in {statements}"));
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> String {
    let form = format!("x={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Runs a test on each server that there is. What it made is dropped, whatever came of it.
async fn everywhere(name: &str, test: impl AsyncFn(&mut Target)) {
    let mut targets = vec![Target::simulated()];
    match std::env::var(VARIABLE) {
        Ok(text) => targets.push(Target::real(&text)),
        // Past the capture of the test's output, which would hide it.
        Err(_) => {
            let line = format!("{name}: {VARIABLE} is not set, so this DID NOT RUN against a real SQL Server\n");
            std::io::stderr().write_all(line.as_bytes()).expect("written");
        }
    }
    for mut target in targets {
        target.run("CREATE SCHEMA $").await;
        let run = AssertUnwindSafe(test(&mut target));
        let ended = futures_util::FutureExt::catch_unwind(run).await;
        target.clear().await;
        if let Some(server) = &target.simulated {
            assert_eq!(server.refusals(), Vec::<String>::new());
        }
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Columns, values, and what is written of them.
const EVERY_TYPE: &[(&str, &str, &str)] = &[
    ("bit", "1", "true"),
    ("tinyint", "255", "255"),
    ("smallint", "-32768", "-32768"),
    ("int", "2147483647", "2147483647"),
    ("bigint", "9223372036854775807", "9223372036854775807"),
    ("decimal(38, 0)", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    ("numeric(10, 3)", "108", "108.000"),
    ("money", "922337203685477.5807", "922337203685477.5807"),
    ("smallmoney", "-214748.3648", "-214748.3648"),
    ("real", "0.1", "0.1"),
    ("float", "1.5", "1.5"),
    ("date", "'2026-08-05'", "1785888000000"),
    ("time(7)", "'10:15:30.1234567'", "36930123"),
    ("datetime", "'2026-08-05 23:59:59.997'", "1785974399997"),
    ("smalldatetime", "'2026-08-05 10:15'", "1785924900000"),
    ("datetime2(7)", "'9999-12-31 23:59:59.9999999'", "253402300799999"),
    ("datetimeoffset(7)", "'2026-06-23 00:01:05.0900948 -07:00'", "1782198065090"),
    ("char(5)", "'ab'", "\"ab   \""),
    ("varchar(20) COLLATE SQL_Latin1_General_CP850_CI_AS", "N'Müller'", "\"Müller\""),
    ("varchar(20) COLLATE Thai_CI_AS", "N'ก'", "\"ก\""),
    ("varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", "N'héllo €'", "\"héllo €\""),
    ("nvarchar(20)", "N'A' + NCHAR(0xD83D) + N'B'", "\"A\u{fffd}B\""),
    ("nvarchar(max)", "N'日本 😀'", "\"日本 😀\""),
    ("text", "'old'", "\"old\""),
    ("ntext", "N'old'", "\"old\""),
    ("binary(4)", "0x0102", "\"AQIAAA==\""),
    ("varbinary(max)", "0x010203", "\"AQID\""),
    ("image", "0x010203", "\"AQID\""),
    ("uniqueidentifier", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", "\"6F9619FF-8B86-D011-B42D-00C04FC964FF\""),
    ("xml", "N'<a>é</a>'", "\"<a>é</a>\""),
    ("sql_variant", "CAST(1.5 AS decimal(10, 4))", "1.5000"),
    ("hierarchyid", "CAST(0x5AC0 AS hierarchyid)", "\"WsA=\""),
];

#[tokio::test]
async fn every_type_is_written_as_documented() {
    everywhere("every type", async |target: &mut Target| {
        let columns: String = EVERY_TYPE.iter().enumerate().map(|(at, (ty, _, _))| format!(", c{at} {ty} NULL")).collect();
        let values: String = EVERY_TYPE.iter().map(|(_, value, _)| format!(", {value}")).collect();
        target.run(&format!("CREATE TABLE [$].[every] (id int NOT NULL CONSTRAINT every_id PRIMARY KEY{columns})")).await;
        target.run(&format!("INSERT INTO [$].[every] VALUES (1{values})")).await;
        target.run("INSERT INTO [$].[every] (id) VALUES (2)").await;
        target.point("every", "id");
        let report = target.bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
        let written = |row: usize, null: bool| {
            let fields = EVERY_TYPE.iter().enumerate().map(|(at, (_, _, text))| format!(",\"c{at}\":{}", if null { "null" } else { text }));
            format!("{{\"id\":{row}{}}}", fields.collect::<String>())
        };
        let lines = target.bed.lines();
        assert_eq!(lines[0].text, written(1, false));
        assert_eq!(lines[1].text, written(2, true));
    })
    .await;
}

#[tokio::test]
async fn rows_come_in_order_and_once_and_later_ones_with_the_next_sweep() {
    everywhere("rows", async |target: &mut Target| {
        target.run("CREATE TABLE [$].[orders] (id bigint IDENTITY NOT NULL CONSTRAINT orders_id PRIMARY KEY, note nvarchar(20))").await;
        let some = |count: usize| format!("INSERT INTO [$].[orders] (note) VALUES {}", vec!["(N'é')"; count].join(", "));
        target.run(&some(1_000)).await;
        target.run(&some(3)).await;
        target.point("orders", "id");
        target.bed.set("mssql.table.orders.batch.size", 500);
        assert_eq!(target.bed.sweep().await.rows, 1_003);
        target.run(&some(2)).await;
        assert_eq!(target.bed.sweep().await.rows, 2);
        let expected: Vec<String> = (1..=1_005).map(|id| id.to_string()).collect();
        assert_eq!(target.bed.keys(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_changed_table_pauses_and_goes_on_when_it_is_as_it_was() {
    everywhere("drift", async |target: &mut Target| {
        target.run("CREATE TABLE [$].[orders] (id int NOT NULL CONSTRAINT orders_id PRIMARY KEY)").await;
        target.run("INSERT INTO [$].[orders] (id) VALUES (1)").await;
        target.point("orders", "id");
        assert_eq!(target.bed.sweep().await.rows, 1);
        target.run("ALTER TABLE [$].[orders] ADD extra int NULL").await;
        target.run("INSERT INTO [$].[orders] (id) VALUES (2)").await;
        let paused = target.bed.sweep().await;
        assert_eq!((paused.outcome, paused.rows), (Outcome::Paused, 0), "{paused:?}");
        target.run("ALTER TABLE [$].[orders] DROP COLUMN extra").await;
        assert_eq!(target.bed.sweep().await.rows, 1);
        assert_eq!(target.bed.keys(), ["1", "2"]);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_polled_is_told_apart() {
    everywhere("refusals", async |target: &mut Target| {
        target.run("CREATE TABLE [$].[fine] (id int NOT NULL CONSTRAINT fine_id PRIMARY KEY, other int)").await;
        target.run("CREATE VIEW [$].[seen] AS SELECT id FROM [$].[fine]").await;
        target.run("CREATE SYNONYM [$].[alias] FOR [$].[fine]").await;
        target.run("CREATE TABLE [$].[loose] (id int NOT NULL)").await;
        target.run("CREATE UNIQUE INDEX loose_id ON [$].[loose] (id)").await;
        for (table, column, expected) in [
            ("seen", "id", "Source.NotATable"),
            ("alias", "id", "Source.NotATable"),
            ("missing", "id", "Source.TableMissing"),
            ("fine", "other", "Source.Sequence"),
            ("fine", "absent", "Source.Sequence"),
            ("loose", "id", "Source.Sequence"),
        ] {
            target.point(table, column);
            let report = target.bed.sweep().await;
            assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some(expected)), "{table}.{column}: {report:?}");
            std::fs::remove_file(target.bed.path("cursors.db")).expect("another table, another store");
        }
    })
    .await;
}

#[tokio::test]
async fn a_locking_read_waits_for_a_row_in_flight() {
    everywhere("locks", async |target: &mut Target| {
        target.run("CREATE TABLE [$].[orders] (id int NOT NULL CONSTRAINT orders_id PRIMARY KEY)").await;
        target.point("orders", "id");
        target.bed.set("mssql.read.mode", "locking");
        target.bed.set("mssql.query.timeout.ms", 1_000);
        let mut writer = target.connect().await;
        execute(&mut writer, &target.own("BEGIN TRAN; INSERT INTO [$].[orders] (id) VALUES (1)")).await;
        let waiting = target.bed.sweep_with(&target.bed.assembly()).await.remove(0);
        assert_eq!((waiting.outcome, waiting.rows), (Outcome::Failed, 0), "{waiting:?}");
        execute(&mut writer, "COMMIT").await;
        writer.close().await.expect("closed");
        assert_eq!(target.bed.sweep().await.rows, 1);
    })
    .await;
}

/// The way of the variable, tried on a test server that encrypts: without a real one, nothing else would.
#[tokio::test]
async fn what_the_variable_names_is_swept_and_left_clean() {
    let server = Server::start().expect("a server");
    server.configure(|settings| {
        settings.encryption = Encryption::On;
        settings.identity = Some(Identity::of_pem(include_str!("../../testbed/data/certificates/server.pem")));
    });
    let (user, password, port, database) = (tds::USER, tds::PASSWORD, server.port(), tds::DATABASE);
    let mut target = Target::real(&format!("mssql://{user}:{password}@127.0.0.1:{port}/{database}?mssql.trust.server.certificate=true"));
    target.run("CREATE SCHEMA $").await;
    target.run("CREATE TABLE [$].[orders] (id int NOT NULL CONSTRAINT orders_id PRIMARY KEY)").await;
    target.run("INSERT INTO [$].[orders] (id) VALUES (1), (2)").await;
    target.point("orders", "id");
    assert_eq!(target.bed.sweep().await.rows, 2);
    assert!(server.attempts().iter().all(|attempt| attempt.encrypted_after));
    target.clear().await;
    assert!(server.rows(&format!("{}.orders", target.schema)).is_err(), "nothing is left");
    assert_eq!(server.refusals(), Vec::<String>::new());
}

/// What a document holds is text.
#[test]
fn a_password_in_the_variable_may_have_any_characters() {
    let target = Target::real("mssql://sweep%40x:p%40ss%2Fw%3A%2B+d@db.example:14330/gssd-gsp_mes?mssql.packet.size=8192");
    assert_eq!((target.user.as_str(), target.password.as_str()), ("sweep@x", "p@ss/w:++d"));
    assert_eq!((target.host.as_str(), target.port, target.database.as_str()), ("db.example", 14_330, "gssd-gsp_mes"));
    assert_eq!(target.bed.config["mssql.packet.size"], Value::from("8192"));
}
