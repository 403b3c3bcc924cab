//! A schema that only grows: fields are appended, and each step is a version.
//!
//! Some fields are given by a document, with their types, and come first; the others are texts that were met in rows, of which
//! none is ever removed. A version number means one list of fields: where the document gives other fields than the stored
//! version has, or in another order, that is the next version as well.
//!
//! ```text
//! a page has unknown fields -> stored schema + what was known here + the new fields -> can it be written at all?
//!     -> conditional write -> another writer came first? read again, and once more
//!     -> only then is a record of the new version made
//! ```
//!
//! Since nothing is ever removed, a field that no record can have must not get in: whoever writes the records looks at a version
//! before it is stored.
//!
//! A version is stored before the first record of it exists. A crash in between leaves a field in the schema that no record has
//! yet, which harms nobody; the other order would let two processes number different schemas alike.
//!
//! What is known here is kept for the life of the process and compared with the store only when it has to grow: a page
//! without new fields costs no request.

mod joined;

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use joined::joined;

use super::row::Columns;
use super::schema::{Field, Schema, Type};
use super::store::{SchemaPlace, SchemaStore};
use super::typed::FieldType;
use crate::failure::{Failure, Retry};

/// The format of what is stored. A higher number was written by a newer program and is refused; format 1 did not say which
/// fields were given.
const FORMAT: u32 = 2;

/// How often a conditional write is tried. Each refusal means that another writer's fields went in, and those of a topic
/// are few.
const TRIES: usize = 32;

/// Says whether records of a schema can be written, without asking anybody.
pub(super) type Accepts<'a> = dyn Fn(&Arc<Schema>) -> Result<(), Failure> + Send + Sync + 'a;

/// One version of a schema, as rows are read by it.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) schema: Arc<Schema>,
    pub(super) columns: Columns,
}

impl Version {
    pub(super) fn of(schema: Schema) -> Self {
        Self { columns: Columns::of(schema.fields()), schema: Arc::new(schema) }
    }
}

/// A schema with fields that are given, and optional texts that are found.
#[derive(Debug)]
pub(super) struct Growing {
    place: SchemaPlace,
    /// The schema's name, unless one is stored already.
    name: String,
    given: Vec<(String, FieldType)>,
    known: Mutex<Known>,
}

/// What this process knows.
#[derive(Debug, Clone, Default)]
struct Known {
    is_read: bool,
    /// As it was last read or written, with its revision.
    stored: Stored,
    revision: Option<u64>,
    /// What records were made by here; it stays in the schema even if somebody removed what is stored.
    used: Stored,
    version: Option<Arc<Version>>,
}

/// What is stored: one version, with everything that its number stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    name: String,
    version: i32,
    /// The given fields as documents write them, `name:type`, in their order. Format 1 does not say: `None` is then no field
    /// where none is given, and otherwise cannot be told from others, so that the next version begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<Vec<String>>,
    /// The fields that were met, in the order in which they were. One that is given as well has the given type and place.
    fields: Vec<String>,
}

impl Growing {
    pub(super) fn new(place: SchemaPlace, name: String, given: Vec<(String, FieldType)>) -> Self {
        Self { place, name, given, known: Mutex::default() }
    }

    /// The version that is known, which is stored; `None` before there is one.
    ///
    /// # Errors
    /// As [`Growing::grow`].
    pub(super) async fn current(&self, store: &dyn SchemaStore, accepts: &Accepts<'_>) -> Result<Option<Arc<Version>>, Failure> {
        if !self.known().is_read {
            self.read(store).await?;
        }
        // What was read may have become no version: the write that makes one can fail, and be given up half-way.
        let Known { version, stored, .. } = self.known();
        match version {
            None if stored.version > 0 || !self.given.is_empty() => self.grow(store, &[], accepts).await.map(Some),
            known => Ok(known),
        }
    }

    /// A stored version that has these fields as well.
    ///
    /// # Errors
    /// The store's failure, that of `accepts`, or `Record.SchemaBusy`. No record of a version that is not stored was made, and
    /// nothing was stored that is not accepted.
    pub(super) async fn grow(&self, store: &dyn SchemaStore, found: &[String], accepts: &Accepts<'_>) -> Result<Arc<Version>, Failure> {
        for _ in 0..TRIES {
            let Known { stored, revision, used, .. } = self.known();
            let next = self.next(&stored, &used, found);
            let version = self.version(&next);
            accepts(&version.schema).map_err(|failure| self.explained(failure, &stored, accepts))?;
            if next == stored {
                return Ok(self.adopt(version, stored, revision));
            }
            let bytes = serde_json::to_vec(&next).expect("names and numbers are representable in JSON");
            if let Some(revision) = store.replace(&self.place, &bytes, revision).await? {
                tracing::info!(
                    connector = self.place.connector,
                    topic = self.place.topic,
                    schema = next.name,
                    version = next.version,
                    fields = found.join(","),
                    "the schema has a new version"
                );
                return Ok(self.adopt(version, next, Some(revision)));
            }
            self.read(store).await?;
        }
        Err(Failure::new(
            "Record.SchemaBusy",
            Retry::NextTick,
            format!("the schema of topic {} changed {TRIES} times while fields were added to it", self.place.topic),
        ))
    }

    /// A refused schema's failure, which also says so if a field is to blame that is stored already and cannot be left out any more.
    fn explained(&self, failure: Failure, stored: &Stored, accepts: &Accepts<'_>) -> Failure {
        let with = |fields: &[String]| accepts(&self.version(&Stored { fields: fields.to_vec(), ..stored.clone() }).schema);
        if with(&[]).is_err() || with(&stored.fields).is_ok() {
            return failure;
        }
        // An operator may remove what is stored; then it is read again.
        self.known.lock().unwrap_or_else(PoisonError::into_inner).is_read = false;
        let SchemaPlace { topic, mode, .. } = &self.place;
        let message = format!(
            "{}. The schema that is stored for the topic (topic/{topic}/{mode}#schema) has the field already and keeps it: to leave it out of \
             rows does not help",
            failure.message
        );
        Failure { message, ..failure }
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn read(&self, store: &dyn SchemaStore) -> Result<(), Failure> {
        let (stored, revision) = match store.read(&self.place).await? {
            Some((bytes, revision)) => (self.decode(&bytes)?, Some(revision)),
            None => (Stored::default(), None),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { is_read: true, stored, revision, ..known.clone() };
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Stored, Failure> {
        decode(bytes).map_err(|what| {
            let SchemaPlace { connector, topic, .. } = &self.place;
            Failure::new("Cursor.Format", Retry::Never, format!("the stored schema of topic {topic} in partition {connector} {what}"))
        })
    }

    /// What is to be stored so that everything has a place: what is stored already where that is enough, else the next
    /// version.
    fn next(&self, stored: &Stored, used: &Stored, found: &[String]) -> Stored {
        let mut fields = stored.fields.clone();
        for name in used.fields.iter().chain(found) {
            if !fields.contains(name) && !self.is_given(name) {
                fields.push(name.clone());
            }
        }
        let given: Vec<String> = self.given.iter().map(|(name, kind)| format!("{name}:{kind}")).collect();
        let has_them = stored.given.as_ref().map_or(given.is_empty(), |stored| *stored == given);
        if stored.version > 0 && has_them && fields.len() == stored.fields.len() {
            return stored.clone();
        }
        let name = [&stored.name, &used.name].into_iter().find(|name| !name.is_empty()).unwrap_or(&self.name);
        let version = stored.version.max(used.version) + 1;
        Stored { format: FORMAT, name: name.clone(), version, given: (!given.is_empty()).then_some(given), fields }
    }

    fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| given == name)
    }

    /// The version of `stored`, with the given fields of here.
    fn version(&self, stored: &Stored) -> Arc<Version> {
        let text = Arc::new(Schema::of(Type::String).optional());
        let found = stored.fields.iter().filter(|name| !self.is_given(name));
        let given = self.given.iter().map(|(name, kind)| Field::new(name.as_str(), kind.schema()));
        let fields = given.chain(found.map(|name| Field { name: name.clone(), schema: Arc::clone(&text) }));
        Arc::new(Version::of(Schema::structure(&stored.name, fields.collect()).versioned(stored.version)))
    }

    /// Goes on with the version of `stored`, which has the given fields.
    fn adopt(&self, version: Arc<Version>, stored: Stored, revision: Option<u64>) -> Arc<Version> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { is_read: true, used: stored.clone(), stored, revision, version: Some(Arc::clone(&version)) };
        version
    }
}

/// Reads what is stored, or says what is wrong with it, after "the schema".
fn decode(bytes: &[u8]) -> Result<Stored, String> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    match serde_json::from_slice::<Versioned>(bytes) {
        Ok(Versioned { format: 1..=FORMAT }) => serde_json::from_slice(bytes).map_err(|error| format!("is damaged: {error}")),
        Ok(Versioned { format }) => Err(format!("has format {format} and this program reads formats up to {FORMAT}; update tablesweep")),
        Err(error) => Err(format!("is none of this program's: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shelf::Shelf;
    use super::*;

    fn place() -> SchemaPlace {
        SchemaPlace { connector: "c".into(), topic: "t".into(), mode: "strings" }
    }

    fn any(_: &Arc<Schema>) -> Result<(), Failure> {
        Ok(())
    }

    fn growing() -> Growing {
        Growing::new(place(), "n.Value".into(), Vec::new())
    }

    fn names(version: &Version) -> (Option<i32>, Vec<&str>) {
        (version.schema.version, version.schema.fields().iter().map(|field| field.name.as_str()).collect())
    }

    fn found(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_field_is_appended_under_a_new_version_and_none_is_ever_removed() {
        let (shelf, one) = (Shelf::default(), growing());
        assert!(one.current(&shelf, &any).await.expect("read").is_none());
        assert_eq!(names(&one.grow(&shelf, &found(&["a", "b"]), &any).await.expect("stored")), (Some(1), vec!["a", "b"]));
        assert_eq!(names(&one.grow(&shelf, &found(&["c", "a"]), &any).await.expect("stored")), (Some(2), vec!["a", "b", "c"]));
        assert_eq!(shelf.requests(), ["read", "write", "write"]);
        assert_eq!(names(&one.grow(&shelf, &found(&["b"]), &any).await.expect("known")), (Some(2), vec!["a", "b", "c"]));
        assert_eq!(names(&one.current(&shelf, &any).await.expect("known").expect("some")), (Some(2), vec!["a", "b", "c"]));
        assert!(shelf.requests().is_empty(), "what is known costs no request");
        let later = growing();
        assert_eq!(names(&later.current(&shelf, &any).await.expect("read").expect("stored")), (Some(2), vec!["a", "b", "c"]));
    }

    #[tokio::test]
    async fn two_writers_who_find_different_fields_at_once_end_with_one_schema_that_has_both() {
        let (shelf, one, two) = (Shelf::default(), growing(), growing());
        for writer in [&one, &two] {
            writer.current(&shelf, &any).await.expect("read");
        }
        one.grow(&shelf, &found(&["a", "x"]), &any).await.expect("stored");
        let both = two.grow(&shelf, &found(&["a", "y"]), &any).await.expect("stored");
        assert_eq!(names(&both), (Some(2), vec!["a", "x", "y"]), "the second writer appends to what the first one stored");
        assert_eq!(
            names(&one.grow(&shelf, &found(&["y"]), &any).await.expect("read again")),
            names(&both),
            "and nothing is written for it"
        );
        let stored: Stored = serde_json::from_slice(&shelf.at(&place()).expect("stored")).expect("a schema");
        assert_eq!((stored.version, stored.fields), (2, found(&["a", "x", "y"])));
    }

    #[tokio::test]
    async fn a_stored_schema_that_somebody_removed_keeps_the_fields_that_records_have() {
        let (shelf, one) = (Shelf::default(), growing());
        one.grow(&shelf, &found(&["a", "b"]), &any).await.expect("stored");
        shelf.clear();
        let again = one.grow(&shelf, &found(&["c"]), &any).await.expect("stored");
        assert_eq!(names(&again), (Some(2), vec!["a", "b", "c"]), "no version means two things");
    }

    fn typed(fields: &[(&str, &str)]) -> Growing {
        let given = fields.iter().map(|(name, kind)| ((*name).to_owned(), FieldType::parse(kind).expect("a type"))).collect();
        Growing::new(SchemaPlace { mode: "typed", ..place() }, "n.Value".into(), given)
    }

    /// A version's number and fields, each with the name of its type.
    fn shown(version: &Version) -> (Option<i32>, Vec<String>) {
        let kind = |schema: &Schema| schema.name.as_deref().unwrap_or(schema.kind.name()).to_owned();
        let field = |field: &Field| format!("{}:{}", field.name, kind(&field.schema));
        (version.schema.version, version.schema.fields().iter().map(field).collect())
    }

    async fn current(growing: &Growing, shelf: &Shelf) -> (Option<i32>, Vec<String>) {
        shown(&growing.current(shelf, &any).await.expect("stored").expect("given fields make a version"))
    }

    /// Every version that was ever in use, by number: another list under a number that was seen fails.
    #[derive(Default)]
    struct Seen(std::collections::BTreeMap<Option<i32>, Vec<String>>);

    impl Seen {
        fn see(&mut self, (version, fields): (Option<i32>, Vec<String>)) {
            let known = self.0.entry(version).or_insert_with(|| fields.clone());
            assert_eq!(*known, fields, "version {version:?} means two lists of fields");
        }
    }

    #[tokio::test]
    async fn given_fields_come_first_with_their_types_and_other_ones_are_the_next_version() {
        let (shelf, mut seen) = (Shelf::default(), Seen::default());
        let first = typed(&[("id", "string"), ("number", "string")]);
        seen.see(current(&first, &shelf).await);
        seen.see(shown(&first.grow(&shelf, &found(&["priority", "day"]), &any).await.expect("stored")));
        // A field that was a text gets a type; a type changes; the order; a field goes back to being a text.
        for (version, given, all) in [
            (3, &[("id", "string"), ("priority", "int8"), ("number", "string")][..], &["id:string", "priority:int8", "number:string"][..]),
            (4, &[("id", "string"), ("priority", "int16"), ("number", "string")], &["id:string", "priority:int16", "number:string"]),
            (5, &[("priority", "int16"), ("id", "string"), ("number", "string")], &["priority:int16", "id:string", "number:string"]),
            (6, &[("id", "string"), ("number", "string")], &["id:string", "number:string", "priority:string"]),
        ] {
            let now = current(&typed(given), &shelf).await;
            let expected: Vec<String> = all.iter().copied().chain(["day:string"]).map(str::to_owned).collect();
            assert_eq!(now, (Some(version), expected));
            seen.see(now);
            shelf.requests();
            assert_eq!(current(&typed(given), &shelf).await.0, Some(version), "the same fields are the same version");
            assert_eq!(shelf.requests(), ["read"]);
        }
    }

    #[tokio::test]
    async fn a_version_that_could_not_be_stored_is_stored_by_the_next_call_of_the_same_process() {
        let (shelf, mapped) = (Shelf::default(), typed(&[("id", "string")]));
        *shelf.is_out.lock().expect("whole") = true;
        for _ in 0..2 {
            assert_eq!(mapped.current(&shelf, &any).await.expect_err("the store is out").code, "Cursor.Unreachable");
        }
        *shelf.is_out.lock().expect("whole") = false;
        assert_eq!(current(&mapped, &shelf).await, (Some(1), found(&["id:string"])));
        assert_eq!(shelf.requests(), ["read", "write", "write", "write"], "what was read is not read again");
    }

    #[tokio::test]
    async fn a_version_whose_write_was_given_up_half_way_is_stored_by_the_next_call_of_the_same_process() {
        let (shelf, mapped) = (Shelf::default(), typed(&[("id", "string")]));
        *shelf.hangs.lock().expect("whole") = true;
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(5), mapped.current(&shelf, &any)).await;
        assert!(given_up.is_err(), "the write is not answered");
        *shelf.hangs.lock().expect("whole") = false;
        assert_eq!(current(&mapped, &shelf).await, (Some(1), found(&["id:string"])));
    }

    /// Refuses fields with a point in their names.
    fn no_points(schema: &Arc<Schema>) -> Result<(), Failure> {
        match schema.fields().iter().find(|field| field.name.contains('.')) {
            Some(field) => Err(Failure::new("Record.InvalidName", Retry::Never, format!("{} is no name", field.name))),
            None => Ok(()),
        }
    }

    #[tokio::test]
    async fn a_field_that_no_record_can_have_never_gets_into_what_is_stored() {
        let (shelf, one) = (Shelf::default(), growing());
        one.grow(&shelf, &found(&["a"]), &no_points).await.expect("stored");
        shelf.requests();
        let failure = one.grow(&shelf, &found(&["b", "c.d"]), &no_points).await.expect_err("refused");
        assert_eq!((&*failure.code, failure.message.as_str()), ("Record.InvalidName", "c.d is no name"));
        assert!(shelf.requests().is_empty(), "nothing is written");
        let grown = growing().grow(&shelf, &found(&["b"]), &no_points).await.expect("without it the schema goes on");
        assert_eq!(names(&grown), (Some(2), vec!["a", "b"]));
    }

    #[tokio::test]
    async fn a_field_that_is_stored_and_no_record_can_have_is_told_as_one_that_cannot_be_left_out() {
        let shelf = Shelf::default();
        growing().grow(&shelf, &found(&["a", "c.d"]), &any).await.expect("stored by one who takes it");
        for call in
            [growing().current(&shelf, &no_points).await.map(drop), growing().grow(&shelf, &found(&["b"]), &no_points).await.map(drop)]
        {
            let message = call.expect_err("refused").message;
            assert!(message.starts_with("c.d is no name. ") && message.contains("topic/t/strings#schema"), "{message}");
        }
        let warm = growing();
        warm.current(&shelf, &no_points).await.expect_err("refused");
        shelf.clear();
        assert!(warm.current(&shelf, &no_points).await.expect("it is gone, which the same process sees").is_none());
        assert_eq!(names(&warm.grow(&shelf, &found(&["a"]), &no_points).await.expect("stored")), (Some(1), vec!["a"]));
        // A given field is the document's, and goes when the document does not give it any more.
        let shelf = Shelf::default();
        let message = typed(&[("e.f", "string")]).current(&shelf, &no_points).await.expect_err("refused").message;
        assert_eq!(message, "e.f is no name");
    }

    #[tokio::test]
    async fn writers_with_different_given_fields_never_share_a_version_number() {
        let (shelf, mut seen) = (Shelf::default(), Seen::default());
        let before = typed(&[("id", "string")]);
        let after = typed(&[("id", "string"), ("n", "int8")]);
        seen.see(current(&before, &shelf).await);
        seen.see(current(&after, &shelf).await);
        for (writer, field) in [(&before, "x"), (&after, "y"), (&before, "n"), (&after, "x"), (&before, "y")] {
            seen.see(shown(&writer.grow(&shelf, &found(&[field]), &any).await.expect("stored")));
            seen.see(current(&typed(&[("id", "string")]), &shelf).await);
        }
        let stored: Stored = serde_json::from_slice(&shelf.at(&before.place).expect("stored")).expect("a schema");
        assert!(found(&["x", "y", "n"]).iter().all(|name| stored.fields.contains(name)), "{stored:?}");
    }

    #[tokio::test]
    async fn a_schema_of_the_first_format_goes_on_where_no_field_is_given_and_is_followed_by_the_next_version_where_some_are() {
        let first_format = br#"{"format":1,"name":"n.Value","version":7,"fields":["a","day"]}"#;
        let shelf = Shelf::default();
        let strings = growing();
        shelf.put(&strings.place, first_format);
        assert_eq!(names(&strings.current(&shelf, &any).await.expect("read").expect("stored")), (Some(7), vec!["a", "day"]));
        assert_eq!(shelf.requests(), ["read"], "nothing is written for it");
        let mapped = typed(&[("day", "date")]);
        shelf.put(&mapped.place, first_format);
        let now = current(&mapped, &shelf).await;
        assert_eq!(now, (Some(8), found(&["day:org.apache.kafka.connect.data.Date", "a:string"])));
        assert_eq!(current(&typed(&[("day", "date")]), &shelf).await, now);
    }

    #[tokio::test]
    async fn a_stored_schema_of_a_newer_program_is_refused() {
        for text in
            [r#"{"format":3,"name":"n","version":1,"fields":[]}"#, "[]", r#"{"format":1,"name":"n","version":1,"fields":[],"more":0}"#]
        {
            let shelf = Shelf::default();
            shelf.put(&place(), text.as_bytes());
            let failure = growing().current(&shelf, &any).await.expect_err("refused");
            assert_eq!((&*failure.code, failure.retry), ("Cursor.Format", Retry::Never), "{text}");
            assert!(failure.message.contains("topic t") && failure.message.contains("partition c"), "{failure}");
        }
    }
}
