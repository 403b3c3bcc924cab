//! Which of the instance's rules refuses a table: that of the API, the table's, or a field's.

use super::{Error, Finding, Probe, Trouble};

impl Probe<'_> {
    /// The request of a sweep was refused with 403. Less is asked for until something is let through.
    pub(super) async fn denied(&mut self, detail: String) -> Trouble {
        match self.refused_part(detail).await {
            Ok(finding) => finding.into(),
            Err(error) => error.into(),
        }
    }

    async fn refused_part(&mut self, detail: String) -> Result<Finding, Error> {
        if is_of_the_api(&detail) {
            return Ok(Finding::ApiDenied { detail });
        }
        let (time, id) = (self.fields.timestamp.clone(), self.fields.id.clone());
        if let Some(detail) = self.refusal("").await? {
            return Ok(if is_of_the_api(&detail) { Finding::ApiDenied { detail } } else { Finding::TableDenied { detail } });
        }
        let second = super::time::format(self.cursor.second);
        let mut parts = vec![
            (format!("{time}>={second}"), time.clone(), "search for ranges", "query_range"),
            (format!("{time}={second}"), time.clone(), "search", "query_match"),
            (format!("ORDERBY{time}"), time, "sort", "query_range"),
            (format!("{id}>0"), id.clone(), "search for ranges", "query_range"),
            (format!("ORDERBY{id}"), id, "sort", "query_range"),
        ];
        for field in super::query_fields(&self.asking.table.query) {
            parts.push((format!("{field}ISNOTEMPTY"), field.to_owned(), "search", "query_match"));
        }
        for (query, field, doing, acl) in parts {
            if let Some(detail) = self.refusal(&query).await? {
                return Ok(Finding::FieldDenied { field, doing, acl, detail });
            }
        }
        // No part is refused alone: what stands in the base query beyond its fields, or another request than this one.
        Ok(Finding::TableDenied { detail })
    }

    /// What the instance says to a query if it is refused.
    async fn refusal(&mut self, query: &str) -> Result<Option<String>, Error> {
        match self.asking.rows(query, 1, Some(&self.fields.id)).await {
            Ok(_) => Ok(None),
            Err(Error::Forbidden { detail }) => Ok(Some(detail)),
            Err(error) => Err(error),
        }
    }
}

fn is_of_the_api(detail: &str) -> bool {
    detail.contains("API level ACL")
}
