//! The struct that the source works with, read from checked values.

use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::connection::{Auth, Grant, Http, Retry, Tls};
use super::{normalised_query, of};
use crate::config::{Faults, Reader, Values};
use crate::cursor::Identity;
use crate::record::typed::{Evolution, FieldType};

/// Everything that a connector's document says about its instance and tables.
#[derive(Clone, Debug)]
pub struct ServiceNow {
    /// The instance's address.
    pub url: Url,
    /// The instance's host in lower case: its identity in cursors and headers.
    pub host: String,
    /// How to sign in.
    pub auth: Auth,
    /// Who signs in, as far as the document says it without a secret.
    pub principal: String,
    /// How to talk HTTP.
    pub http: Http,
    /// How often to try again.
    pub retry: Retry,
    /// Which certificates to use.
    pub tls: Tls,
    /// The shape of record values.
    pub schema_mode: SchemaMode,
    /// What an unmapped field does in mode `typed`.
    pub schema_evolution: Evolution,
    /// The fields of mode `typed`, as (name, type).
    pub typed_fields: Vec<(String, FieldType)>,
    /// Whether values are wrapped in the envelope.
    pub emit_envelope: bool,
    /// What a row without a readable cursor does.
    pub bad_row: BadRow,
    /// What a row does that is larger than Kafka takes.
    pub oversize_row: BadRow,
    /// Whether to try access and cursor before a table's first sweep.
    pub startup_probe: bool,
    /// How far behind the cursor rows are read again.
    pub overlap: Duration,
    /// How far behind the instance's clock a sweep ends.
    pub safety_lag: Duration,
    /// How many delivered row versions are remembered per table.
    pub dedup_window_records: usize,
    /// The tables in the order of their aliases.
    pub tables: Vec<Table>,
}

/// The shape of record values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// The row as the instance gave it.
    #[default]
    Schemaless,
    /// Every field an optional text.
    Strings,
    /// Fields of declared types.
    Typed,
}

impl SchemaMode {
    /// The mode's name, as keys and headers write it.
    pub fn name(self) -> &'static str {
        match self {
            SchemaMode::Schemaless => "schemaless",
            SchemaMode::Strings => "strings",
            SchemaMode::Typed => "typed",
        }
    }
}

/// What a row does that cannot be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRow {
    /// It fails the table.
    #[default]
    Fail,
    /// It is skipped, counted and logged.
    Skip,
}

/// Which form of values is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisplayValue {
    /// Raw values.
    #[default]
    False,
    /// Display values.
    True,
    /// Both, with the link.
    All,
}

/// One table of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The alias.
    pub alias: String,
    /// The table or view.
    pub name: String,
    /// The topic.
    pub topic: String,
    /// Where to begin while there is no cursor.
    pub start: Timestamp,
    /// The cursor's time.
    pub timestamp_field: String,
    /// The cursor's identity, and the record's key.
    pub sys_id_field: String,
    /// The base query, normalised.
    pub query: String,
    /// The fields to ask for, the version counter among them; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Whether the version counter is in `fields` although the document does not list it.
    pub adds_mod_count: bool,
    /// Which form of values is asked for.
    pub display_value: DisplayValue,
    /// Whether the links of references are left out.
    pub exclude_reference_link: bool,
    /// Whether rows are limited to the user's domain.
    pub query_domain: bool,
    /// The query category.
    pub query_category: Option<String>,
    /// Rows per request.
    pub batch_size: u32,
    /// How often the table is looked at when it is caught up.
    pub poll_interval: Duration,
}

impl Table {
    /// The field that counts a row's versions, prefixed in a view as its identity is, or else its timestamp.
    pub fn mod_count_field(&self) -> String {
        let of_time = || ["sys_updated_on", "sys_created_on"].into_iter().find_map(|own| self.timestamp_field.strip_suffix(own));
        let prefix = self.sys_id_field.strip_suffix("sys_id").or_else(of_time).unwrap_or_default();
        format!("{prefix}sys_mod_count")
    }
}

impl ServiceNow {
    /// Reads resolved values. A value that is still a placeholder is a fault.
    pub fn read(values: &Values) -> Result<ServiceNow, Faults> {
        let mut reader = Reader::new(values);
        let url = reader.url("snow.url");
        let settings = ServiceNow {
            host: url.host_str().unwrap_or_default().to_ascii_lowercase(),
            auth: Auth::read(&mut reader, &url),
            principal: principal(&mut reader),
            http: Http::read(&mut reader),
            retry: Retry::read(&mut reader),
            tls: Tls::read(&mut reader),
            schema_mode: reader.choice("snow.source.schema.mode", |text| match text {
                "schemaless" => Some(SchemaMode::Schemaless),
                "strings" => Some(SchemaMode::Strings),
                "typed" => Some(SchemaMode::Typed),
                _ => None,
            }),
            schema_evolution: reader.choice("snow.source.schema.evolution", |text| match text {
                "fail" => Some(Evolution::Fail),
                "backward" => Some(Evolution::Backward),
                "permissive" => Some(Evolution::Permissive),
                _ => None,
            }),
            typed_fields: reader.required("snow.source.typed.fields", |text| typed_fields(text).ok()).unwrap_or_default(),
            emit_envelope: reader.boolean("snow.source.emit.envelope"),
            bad_row: reader.choice("snow.source.bad.row.behavior", bad_row),
            oversize_row: reader.choice("snow.source.oversize.row.behavior", bad_row),
            startup_probe: reader.boolean("snow.source.startup.probe"),
            overlap: reader.seconds("snow.source.overlap.seconds"),
            safety_lag: reader.seconds("snow.source.safety.lag.seconds"),
            dedup_window_records: reader.integer("snow.source.dedup.window.records"),
            tables: values.aliases().iter().map(|alias| table(&mut reader, alias)).collect(),
            url,
        };
        reader.finish(settings)
    }
}

impl ServiceNow {
    /// Who signs in, and by which proxy, in 16 digits that hold no secret. A key, a certificate and a refresh token do not say whose
    /// they are, so those of each connector count as an account of their own.
    pub fn account(&self, connector: &str) -> String {
        let (kind, who, client) = match &self.auth {
            Auth::Basic { username, .. } => ("basic", username.as_str(), ""),
            Auth::ApiKey { .. } => ("api_key", connector, ""),
            Auth::Certificate => ("certificate", connector, ""),
            Auth::Oauth(oauth) => match &oauth.grant {
                Grant::ClientCredentials => ("client_credentials", "", oauth.client_id.as_str()),
                Grant::Password { username, .. } => ("password", username.as_str(), oauth.client_id.as_str()),
                Grant::RefreshToken { .. } => ("refresh_token", connector, oauth.client_id.as_str()),
                Grant::JwtBearer(assertion) => ("jwt_bearer", assertion.subject.as_str(), oauth.client_id.as_str()),
            },
        };
        let proxy = self.http.proxy.as_ref();
        let (proxy, proxy_user) = proxy.map_or(("", ""), |proxy| (proxy.url.as_str(), proxy.username.as_deref().unwrap_or_default()));
        let mut digits = Identity::fingerprint_of(&[kind, who, client, proxy, proxy_user]);
        digits.truncate(16);
        digits
    }
}

fn principal(reader: &mut Reader<'_>) -> String {
    let parts =
        ["snow.auth.username", "snow.oauth.client.id", "snow.oauth.jwt.subject"].map(|key| reader.optional(key).unwrap_or_default());
    parts.join("\n")
}

fn bad_row(text: &str) -> Option<BadRow> {
    match text {
        "fail" => Some(BadRow::Fail),
        "skip" => Some(BadRow::Skip),
        _ => None,
    }
}

fn table(reader: &mut Reader<'_>, alias: &str) -> Table {
    let key = |setting| of(alias, setting);
    let mut table = Table {
        alias: alias.to_owned(),
        name: reader.text(&key("name")),
        topic: reader.text(&key("topic")),
        start: reader.timestamp(&key("start.timestamp")),
        timestamp_field: reader.text(&key("timestamp.field")),
        sys_id_field: reader.text(&key("sys.id.field")),
        query: normalised_query(&reader.text(&key("query"))).to_owned(),
        fields: None,
        adds_mod_count: false,
        display_value: reader.choice(&key("display.value"), |text| match text {
            "false" => Some(DisplayValue::False),
            "true" => Some(DisplayValue::True),
            "all" => Some(DisplayValue::All),
            _ => None,
        }),
        exclude_reference_link: reader.boolean(&key("exclude.reference.link")),
        query_domain: reader.boolean(&key("query.domain")),
        query_category: Some(reader.text(&key("query.category"))).filter(|category| !category.is_empty()),
        batch_size: reader.integer(&key("batch.size")),
        poll_interval: reader.millis(&key("poll.interval.ms")),
    };
    let listed = reader.text(&key("fields"));
    if !listed.is_empty() {
        let mut fields: Vec<String> = Vec::new();
        let version = table.mod_count_field();
        for field in listed.split(',').map(str::trim).chain([version.as_str()]) {
            if !fields.iter().any(|known| known == field) {
                fields.push(field.to_owned());
            }
        }
        table.adds_mod_count = !listed.split(',').any(|field| field.trim() == version);
        table.fields = Some(fields);
    }
    table
}

/// Reads the list of mode `typed`. A message says which entry is wrong and does not repeat it.
pub(super) fn typed_fields(text: &str) -> Result<Vec<(String, FieldType)>, String> {
    let mut fields: Vec<(String, FieldType)> = Vec::new();
    for (at, entry) in text.split(',').map(str::trim).enumerate().filter(|_| !text.is_empty()) {
        let nth = at + 1;
        let (field, name) = entry.split_once(':').ok_or_else(|| format!("has an entry that is not field:type (entry {nth})"))?;
        if !super::is_field(field) {
            return Err(format!("has an entry that begins with no field's name (entry {nth})"));
        }
        let kind = FieldType::parse(name).ok_or_else(|| format!("has an entry of an unknown type (entry {nth})"))?;
        if fields.iter().any(|(known, _)| known == field) {
            return Err(format!("gives a field twice (entry {nth})"));
        }
        fields.push((field.to_owned(), kind));
    }
    Ok(fields)
}
