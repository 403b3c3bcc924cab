//! Which cursor store is meant, and opening it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tablesweep::cursor::CursorStore;
use tablesweep::cursor::dynamodb::DynamoStore;
use tablesweep::cursor::memory::MemoryStore;
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::sweep::LeasePlan;

use crate::exit::Stop;

/// How long a lease in DynamoDB lasts at least unless it is renewed: nothing ends this program by itself.
const LEASE: Duration = Duration::from_secs(60);

/// So many times what a sink may take for a page. A lease that is renewed when a third of it is over always has time for a page left then.
const PAGES: u32 = 2;

/// A cursor store, as it is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreSpec {
    /// `sqlite:PATH`.
    Sqlite(PathBuf),
    /// `dynamodb:TABLE`.
    DynamoDb(String),
    /// `memory`: a preview, which moves no cursor.
    Memory,
}

impl Default for StoreSpec {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("tablesweep.db"))
    }
}

impl FromStr for StoreSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("dynamodb", table)) if !table.is_empty() => Ok(Self::DynamoDb(table.to_owned())),
            None if text == "memory" => Ok(Self::Memory),
            _ => Err("write sqlite:PATH, dynamodb:TABLE or memory".to_owned()),
        }
    }
}

impl StoreSpec {
    /// As it is named on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::DynamoDb(table) => format!("dynamodb:{table}"),
            Self::Memory => "memory".to_owned(),
        }
    }

    /// Opens it; a database file that is not there is made.
    pub async fn open(&self) -> Result<Arc<dyn CursorStore>, Stop> {
        Ok(match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path).await?),
            Self::DynamoDb(table) => Arc::new(DynamoStore::from_env(table).await),
            Self::Memory => Arc::new(MemoryStore::new()),
        })
    }

    /// Opens it for a look: `None` where there is no database yet. A look needs no right to write, and writes nothing.
    pub async fn look(&self) -> Result<Option<Arc<dyn CursorStore>>, Stop> {
        match self {
            Self::Sqlite(path) => Ok(SqliteStore::look(path).await?.map(|store| Arc::new(store) as Arc<dyn CursorStore>)),
            Self::DynamoDb(_) | Self::Memory => self.open().await.map(Some),
        }
    }

    /// Opens it to change what is there: `None` where there is no database yet.
    pub async fn existing(&self) -> Result<Option<Arc<dyn CursorStore>>, Stop> {
        match self.look().await? {
            Some(_) => self.open().await.map(Some),
            None => Ok(None),
        }
    }

    /// How leases are held in it, where a page may be with its sink for up to `longest`.
    pub fn lease(&self, longest: Duration) -> LeasePlan {
        match self {
            Self::Sqlite(_) | Self::Memory => LeasePlan::Process,
            Self::DynamoDb(_) => LeasePlan::Renewed(LEASE.max(longest * PAGES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_lease_always_has_time_for_a_page_left() {
        let store: StoreSpec = "dynamodb:cursors".parse().expect("a store");
        for seconds in [1, 28, 30, 57, 60, 120, 900] {
            let page = Duration::from_secs(seconds);
            let LeasePlan::Renewed(length) = store.lease(page) else { panic!("nothing ends this program") };
            let every = store.lease(page).renew_every().expect("it is renewed");
            assert!(length - every > page, "{page:?}: {length:?}, renewed every {every:?}");
            assert!(length >= LEASE);
        }
        assert_eq!(store.lease(Duration::from_secs(30)), LeasePlan::Renewed(LEASE), "the usual time-outs fit the usual lease");
    }

    #[test]
    fn a_store_is_named_by_its_kind_and_place() {
        assert_eq!("sqlite:a:b.db".parse(), Ok(StoreSpec::Sqlite("a:b.db".into())));
        assert_eq!("dynamodb:cursors".parse(), Ok(StoreSpec::DynamoDb("cursors".into())));
        assert_eq!("memory".parse(), Ok(StoreSpec::Memory));
        for text in ["", "sqlite", "sqlite:", "dynamodb:", "memory:", "redis:x"] {
            assert!(text.parse::<StoreSpec>().is_err(), "{text}");
        }
    }
}
