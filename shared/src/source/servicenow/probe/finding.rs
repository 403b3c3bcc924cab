//! What the probe finds, in words for somebody who cannot look into the instance and has to ask its administrator.

use super::zone::Zone;
use crate::failure::{Failure, Retry};

/// Why a table cannot be swept as its document says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum Finding {
    #[error("the table cannot be followed by {field}: {why}. {instead}")]
    Unfollowable { field: String, why: &'static str, instead: String },

    #[error(
        "{field} ({key}) is not in the rows: the table has no such field, or a field ACL hides it from the integration user. {}",
        alike(key, like)
    )]
    FieldMissing { field: String, key: String, like: Vec<String> },

    #[error("{field} ({key}) is empty in every row, so that nothing tells which rows are new. {}", alike(key, like))]
    FieldEmpty { field: String, key: String, like: Vec<String> },

    #[error(
        "row {id}: {field} ({key}) is {value:?}, which is no time of the form yyyy-MM-dd HH:mm:ss. Choose a date/time field, such as sys_updated_on"
    )]
    NotATime { id: String, field: String, key: String, value: String },

    #[error(
        "two rows have the same {time} and the same {field} ({key}), {id:?}: rows with one cursor cannot be told apart. Choose a field that differs \
         in every row; in a view, the sys_id of the table that is joined last"
    )]
    NotUnique { field: String, key: String, time: String, id: String },

    #[error(
        "the instance reads times in a query in another zone than UTC: row {id} has {field} {time}, and asking for exactly that finds nothing. \
         {zone} Have the integration user's time zone set to GMT (sys_user.time_zone). Until then rows would be missed"
    )]
    Shifted { id: String, field: String, time: String, zone: Zone },

    #[error(
        "the instance ignores {condition} and answers as if it had not been asked for. It drops what the user may not search by: have the \
         integration user given {acl} access to the field {field} of this table"
    )]
    Ignored { condition: String, field: String, acl: &'static str },

    #[error(
        "the alias's query names {field}, and the instance ignores conditions on it: there is no such field, or the integration user may not \
         search by it. More rows than the query means would be delivered. Correct the query, or have the user given query_match access to the field"
    )]
    QueryIgnored { field: String },

    #[error(
        "the alias's query names {field}, and the instance answers every query with it with no rows (its property \
         glide.invalid_query.returns_no_rows is on): there is no such field, or the integration user may not search by it. The table would look \
         up to date for ever. Correct the query, or have the user given query_match access to the field"
    )]
    QueryEmpties { field: String },

    #[error(
        "the Table API is closed to the integration user (403: {detail}): an ACL of the API itself, not of this table. Have the user given the \
         role that the instance asks for there, mostly snc_platform_rest_api_access"
    )]
    ApiDenied { detail: String },

    #[error(
        "the integration user may not read this table (403: {detail}). Have the user given a role that passes its read ACL; a role for the \
         REST API alone is not enough"
    )]
    TableDenied { detail: String },

    #[error(
        "the integration user may not {doing} by the field {field} (403: {detail}); the table itself can be read. Have the user given read and \
         {acl} access to the field"
    )]
    FieldDenied { field: String, doing: &'static str, acl: &'static str, detail: String },
}

/// What to do about a cursor field that does not serve: the fields that would.
fn alike(key: &str, like: &[String]) -> String {
    match like {
        [] => "Have the user given read access to it, or choose another field".to_owned(),
        [only] => format!("The rows have {only}: set {key} to it, or have the user given read access"),
        several => format!("The rows have {}: set {key} to one of them, or have the user given read access", several.join(", ")),
    }
}

impl Finding {
    /// The stable code.
    pub(in super::super) fn code(&self) -> &'static str {
        match self {
            Self::Unfollowable { .. }
            | Self::FieldMissing { .. }
            | Self::FieldEmpty { .. }
            | Self::NotATime { .. }
            | Self::NotUnique { .. } => "Source.NoCursor",
            Self::Shifted { .. } => "Source.TimeZone",
            Self::Ignored { .. } => "Source.PredicateIgnored",
            Self::QueryIgnored { .. } | Self::QueryEmpties { .. } => "Source.QueryInvalid",
            Self::ApiDenied { .. } | Self::TableDenied { .. } | Self::FieldDenied { .. } => "Source.Forbidden",
        }
    }

    /// The failure of the table `alias` (`table` on the instance) of `connector`.
    pub(in super::super) fn of(&self, connector: &str, alias: &str, table: &str) -> Failure {
        Failure::new(self.code(), Retry::Never, format!("{connector}/{alias} (table {table}): {self}"))
    }
}
