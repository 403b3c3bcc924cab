//! A schema registry that takes every schema, over a socket: what a sweep with Avro asks for before its first page.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::failed::Failed;

/// Serves until it is dropped.
pub struct Registry {
    url: String,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Subjects with their schemas; an id is a place in this list, from 1.
type Schemas = Arc<Mutex<Vec<(String, String)>>>;

impl Registry {
    /// On a free port of this machine.
    pub async fn start() -> Result<Self, Failed> {
        let failed = |error: std::io::Error| Failed::at("starting a schema registry", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let router = Router::new().route("/subjects/{subject}/versions", post(register)).with_state(Schemas::default());
        let task = tokio::spawn(std::future::IntoFuture::into_future(axum::serve(listener, router)));
        Ok(Self { url, task })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = Result<([(HeaderName, &'static str); 1], String), StatusCode>;

async fn register(State(schemas): State<Schemas>, Path(subject): Path<String>, body: String) -> Answer {
    let body: Value = serde_json::from_str(&body).map_err(|_| StatusCode::UNPROCESSABLE_ENTITY)?;
    let schema = body["schema"].as_str().ok_or(StatusCode::UNPROCESSABLE_ENTITY)?;
    let one = (subject, schema.to_owned());
    let mut schemas = schemas.lock().unwrap_or_else(PoisonError::into_inner);
    let at = schemas.iter().position(|known| *known == one).unwrap_or_else(|| {
        schemas.push(one);
        schemas.len() - 1
    });
    let answer = json!({"id": at + 1}).to_string();
    Ok(([(header::CONTENT_TYPE, "application/vnd.schemaregistry.v1+json")], answer))
}
