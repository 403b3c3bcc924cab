//! A table for tests and laptops. In an account it is deployed with the functions, which protect it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::client::Waiters;
use aws_sdk_dynamodb::config::{Credentials, Region};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification};

use super::errors::{Attempts, Target};
use super::layout::{CONNECTOR, EXPIRES, PLACE};
use super::{CALL_WITHIN, StoreError, configuration};

/// A client of a DynamoDB on this machine that checks no credentials, with the retries and time limits of
/// [`DynamoStore::from_env`](super::DynamoStore::from_env).
pub async fn local_client(endpoint: &str) -> Client {
    let anybody = Credentials::new("local", "local", None, None, "local_client");
    let configuration = configuration().endpoint_url(endpoint).region(Region::from_static("us-east-1")).credentials_provider(anybody);
    Client::new(&configuration.load().await)
}

/// Creates the table `name`, paid per request and with its time to live, and waits until it can be used. A table of
/// this name that is there already is left as it is.
///
/// # Errors
/// As of any call.
pub async fn create_table(client: &Client, name: &str) -> Result<(), StoreError> {
    let target = Target::new(name.to_owned());
    let attempts = Attempts::default();
    let incomplete = |error: aws_sdk_dynamodb::error::BuildError| StoreError::Denied {
        store: target.name.clone(),
        detail: format!("the request to create it is incomplete ({error})"),
    };
    let mut request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (attribute, key) in [(CONNECTOR, KeyType::Hash), (PLACE, KeyType::Range)] {
        let string = AttributeDefinition::builder().attribute_name(attribute).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(attribute).key_type(key);
        request = request.attribute_definitions(string.build().map_err(incomplete)?).key_schema(element.build().map_err(incomplete)?);
    }
    match request.send().await {
        Ok(_) => {}
        Err(error) if matches!(error.as_service_error(), Some(CreateTableError::ResourceInUseException(_))) => return Ok(()),
        Err(error) => return Err(target.error("CreateTable", &error, &attempts)),
    }
    client.wait_until_table_exists().table_name(name).wait(CALL_WITHIN * 8).await.map_err(|error| StoreError::Unreachable {
        store: target.name.clone(),
        detail: format!("the new table does not become active ({error})"),
    })?;
    let living = TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES).build().map_err(incomplete)?;
    match client.update_time_to_live().table_name(name).time_to_live_specification(living).send().await {
        Ok(_) => Ok(()),
        // Somebody who created it at the same time was faster.
        Err(error) if error.as_service_error().and_then(|error| error.message()).is_some_and(|said| said.contains("already enabled")) => {
            Ok(())
        }
        Err(error) => Err(target.error("UpdateTimeToLive", &error, &attempts)),
    }
}
