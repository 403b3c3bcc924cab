//! A function as it is deployed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::PART;
use crate::parts::PartError;

/// What a function is, and how it may be run.
#[derive(Debug, Clone)]
pub struct Function {
    pub(super) name: String,
    pub(super) bootstrap: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    pub(super) memory_mb: u32,
    pub(super) reserved_concurrency: Option<usize>,
    pub(super) event_retries: u32,
    pub(super) event_retry_delay: Duration,
    pub(super) event_max_age: Duration,
    pub(super) freeze: bool,
    pub(super) init_timeout: Duration,
}

impl Function {
    /// A function that runs this program, with Lambda's defaults (3 s, 128 MB, two retries of events), save that a
    /// retry comes after 100 ms instead of a minute, and an event is given up after a minute instead of six hours.
    pub fn new(name: &str, bootstrap: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            bootstrap: bootstrap.into(),
            env: BTreeMap::new(),
            timeout: Duration::from_secs(3),
            memory_mb: 128,
            reserved_concurrency: None,
            event_retries: 2,
            event_retry_delay: Duration::from_millis(100),
            event_max_age: Duration::from_secs(60),
            freeze: true,
            init_timeout: Duration::from_secs(10),
        }
    }

    /// Sets an environment variable. Nothing of the testbed's own environment reaches the function.
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.insert(key.to_owned(), value.into());
        self
    }

    /// The longest an invocation may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The memory that the function is told it has.
    pub fn memory_mb(mut self, memory: u32) -> Self {
        self.memory_mb = memory;
        self
    }

    /// The most invocations at the same time; 0 throttles every one.
    pub fn reserved_concurrency(mut self, invocations: usize) -> Self {
        self.reserved_concurrency = Some(invocations);
        self
    }

    /// How often an event is tried again after a failure (`MaximumRetryAttempts`).
    pub fn event_retries(mut self, retries: u32) -> Self {
        self.event_retries = retries;
        self
    }

    /// How long after a failure an event is tried again.
    pub fn event_retry_delay(mut self, delay: Duration) -> Self {
        self.event_retry_delay = delay;
        self
    }

    /// After what time an event that could not be run is given up (`MaximumEventAgeInSeconds`).
    pub fn event_max_age(mut self, age: Duration) -> Self {
        self.event_max_age = age;
        self
    }

    /// Is the environment stopped between invocations? It is unless this says otherwise.
    pub fn freeze(mut self, freeze: bool) -> Self {
        self.freeze = freeze;
        self
    }

    /// How long the program may take from its start to asking for its first event; Lambda's is 10 s.
    pub fn init_timeout(mut self, timeout: Duration) -> Self {
        self.init_timeout = timeout;
        self
    }

    /// Refuses what the real service refuses to deploy.
    pub(super) fn validate(&self) -> Result<(), PartError> {
        let refused = |why: String| Err(PartError::failed(PART, format!("registering the function {}", self.name), why));
        let allowed = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(allowed) {
            return refused("a name has 1 to 64 letters, digits, hyphens and underscores".to_owned());
        }
        if self.bootstrap.parent().is_none_or(|folder| !folder.is_dir()) || !self.bootstrap.is_file() {
            return refused(format!("there is no program at {}", self.bootstrap.display()));
        }
        if self.event_retries > 2 {
            return refused(format!("{} retries of an event; 0 to 2 are allowed", self.event_retries));
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(900) {
            return refused(format!("a timeout of {:?}; up to 900 s are allowed", self.timeout));
        }
        let size: usize = self.env.iter().map(|(key, value)| key.len() + value.len()).sum();
        if size > 4096 {
            return refused(format!("environment variables of {size} bytes; 4096 are allowed"));
        }
        match self.env.keys().find(|key| is_reserved(key)) {
            Some(key) => refused(format!("the environment variable {key} is set by Lambda itself")),
            None => Ok(()),
        }
    }
}

fn is_reserved(key: &str) -> bool {
    const RESERVED: [&str; 17] = [
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LAMBDA_TASK_ROOT",
    ];
    RESERVED.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        Function::new("f", std::env::current_exe().expect("this program has a path"))
    }

    #[test]
    fn what_lambda_would_not_deploy_is_refused_by_name() {
        function().validate().expect("the plain function is fine");
        let refused = |function: Function, why: &str| {
            let text = function.validate().expect_err(why).to_string();
            assert!(text.contains(why), "{text}");
        };
        refused(function().env("AWS_REGION", "eu-west-1"), "AWS_REGION");
        refused(function().env("KEY", "v".repeat(4096)), "4099 bytes");
        refused(function().event_retries(3), "3 retries");
        refused(function().timeout(Duration::from_secs(901)), "901");
        refused(Function::new("f", "/no/such/bootstrap"), "/no/such/bootstrap");
        refused(Function::new("a b", "/bin/sh"), "hyphens");
    }
}
