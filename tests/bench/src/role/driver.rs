//! The bare driver: reads a table by the statement of a sweep, batch by batch over one connection, and drops the rows.

use futures_util::TryStreamExt as _;
use tablesweep_testbed::tds::{PASSWORD, USER};
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel, Query, QueryItem};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncWriteCompatExt as _;

use crate::failed::Failed;
use crate::job::{DriverDone, DriverJob};
use crate::usage::Usage;

/// Reads the whole table.
pub async fn run(job: DriverJob) -> Result<DriverDone, Failed> {
    let failed = |why: &dyn std::fmt::Display| Failed::at("the bare driver", why);
    let mut config = Config::new();
    config.host("127.0.0.1");
    config.port(job.port);
    config.database(&job.database);
    config.authentication(AuthMethod::sql_server(USER, PASSWORD));
    config.encryption(EncryptionLevel::NotSupported);
    config.packet_size(job.packet);
    let socket = TcpStream::connect(("127.0.0.1", job.port)).await.map_err(|error| failed(&error))?;
    socket.set_nodelay(true).map_err(|error| failed(&error))?;
    let mut client = Box::pin(Client::connect(config, socket.compat_write())).await.map_err(|error| failed(&error))?;
    let (mut last, mut rows) = (i64::MIN, 0);
    loop {
        let mut query = Query::new(format!(
            "SELECT TOP (@P1) [id], [customer], [note], [total], [placed_at], [state], [paid], [reference] FROM [dbo].[{}] WHERE [id] > @P2 \
             ORDER BY [id] ASC",
            job.table
        ));
        query.bind(i64::from(job.rows));
        query.bind(last);
        let mut stream = query.query(&mut client).await.map_err(|error| failed(&error))?;
        let mut read = 0;
        while let Some(item) = stream.try_next().await.map_err(|error| failed(&error))? {
            let QueryItem::Row(row) = item else { continue };
            if let Ok(ColumnData::I64(Some(id))) = row.get_column_data(0) {
                last = *id;
            }
            read += 1;
        }
        rows += read;
        if read < u64::from(job.rows) {
            return Ok(DriverDone { rows, usage: Usage::own()? });
        }
    }
}
