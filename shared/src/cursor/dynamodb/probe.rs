//! Whether a table can hold cursors, found out without leaving a trace.
//!
//! Every kind of request that a sweep makes is made once. The writes come with a condition that no item can meet, so
//! DynamoDB judges everything about them (the account, the right, the table, its keys) and then writes nothing. A refused
//! condition is the good answer.

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;

use super::layout as attribute;
use super::{Attempts, DynamoStore};
use crate::cursor::{PROBE, StoreError};

/// No item is there and is not there.
const NEVER: &str = "attribute_exists(#place) AND attribute_not_exists(#place)";

impl DynamoStore {
    /// Makes one request of each kind.
    pub(super) async fn ask_everything(&self) -> Result<(), StoreError> {
        self.get(PROBE, PROBE).await?;
        self.query(PROBE, "attribute_exists(#bytes)", &[("#bytes", attribute::BYTES)], &[]).await?;
        self.ask_for_updates().await?;
        self.ask_for_puts().await?;
        self.ask_for_deletions().await
    }

    async fn ask_for_updates(&self) -> Result<(), StoreError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .update_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(PROBE, PROBE)))
            .update_expression("SET #revision = :revision")
            .condition_expression(NEVER)
            .expression_attribute_names("#place", attribute::PLACE)
            .expression_attribute_names("#revision", attribute::REVISION)
            .expression_attribute_values(":revision", attribute::number(1));
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(_) => Err(self.unconditional("UpdateItem")),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(self.target.error("UpdateItem", &error, &attempts)),
            },
        }
    }

    async fn ask_for_puts(&self) -> Result<(), StoreError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .put_item()
            .table_name(&self.target.table)
            .set_item(Some(attribute::key(PROBE, PROBE)))
            .condition_expression(NEVER)
            .expression_attribute_names("#place", attribute::PLACE);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(_) => Err(self.unconditional("PutItem")),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(self.target.error("PutItem", &error, &attempts)),
            },
        }
    }

    async fn ask_for_deletions(&self) -> Result<(), StoreError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .delete_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(PROBE, PROBE)))
            .condition_expression(NEVER)
            .expression_attribute_names("#place", attribute::PLACE);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(_) => Err(self.unconditional("DeleteItem")),
            Err(error) => match error.as_service_error() {
                Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(self.target.error("DeleteItem", &error, &attempts)),
            },
        }
    }

    fn unconditional(&self, operation: &str) -> StoreError {
        let detail =
            format!("{operation} was carried out although its condition cannot hold; this is no DynamoDB that cursors are safe in");
        StoreError::Denied { store: self.target.name.clone(), detail }
    }
}
