//! The SQL Server of the demo: one table that grows.

use std::io;
use std::path::Path;

use serde_json::json;
use tablesweep_testbed::tds::{self, Server, SqlError};

use crate::exit::Stop;

/// The topic of the table.
pub const TOPIC: &str = "shop.orders";

/// Orders in the beginning.
const ORDERS: usize = 2_000;

/// Orders that are placed between two sweeps.
const PLACED: usize = 3;

/// A server with a table of orders.
pub struct Database {
    server: Server,
}

impl Database {
    /// Starts it and fills its table.
    pub fn start() -> Result<Self, Stop> {
        let server = Server::start().map_err(|error| Stop::failed(format!("the SQL Server of the demo: {error}")))?;
        server
            .execute(
                "CREATE TABLE dbo.orders (id bigint IDENTITY(1001, 1) CONSTRAINT orders_id PRIMARY KEY, customer nvarchar(40) NOT NULL, \
                 total decimal(12, 2) NOT NULL, placed_at datetime2(3) NOT NULL)",
            )
            .map_err(|error| refused(&error))?;
        let database = Self { server };
        database.place(ORDERS)?;
        Ok(database)
    }

    /// Writes the connector's document below `folder`.
    pub fn write_document(&self, folder: &Path) -> io::Result<()> {
        let config = json!({
            "connector.class": "sqlserver",
            "mssql.host": "127.0.0.1",
            "mssql.port": self.server.port().to_string(),
            "mssql.database": tds::DATABASE,
            "mssql.user": tds::USER,
            "mssql.password": tds::PASSWORD,
            // It lies within this process.
            "mssql.encrypt": "optional",
            "mssql.tables": "orders",
            "mssql.table.orders.name": "dbo.orders",
            "mssql.table.orders.topic": TOPIC,
            "mssql.table.orders.sequence.column": "id",
            "mssql.table.orders.start": "earliest",
        });
        std::fs::write(folder.join("connectors/shop.json"), json!({"name": "shop", "config": config}).to_string())
    }

    /// A few orders more.
    pub fn grow(&self) -> Result<(), Stop> {
        self.place(PLACED)
    }

    fn place(&self, orders: usize) -> Result<(), Stop> {
        let rows: Vec<String> = (0..orders)
            .map(|n| format!("(N'customer {}', {}.{:02}, '2026-01-01T00:{:02}:00')", n % 97, n % 500, n % 100, n % 60))
            .collect();
        for rows in rows.chunks(500) {
            let statement = format!("INSERT INTO dbo.orders (customer, total, placed_at) VALUES {}", rows.join(", "));
            self.server.execute(&statement).map_err(|error| refused(&error))?;
        }
        Ok(())
    }
}

fn refused(error: &SqlError) -> Stop {
    Stop::failed(format!("the SQL Server of the demo: {error}"))
}
