//! What can go wrong on purpose.

use std::time::Duration;

use super::engine::SqlError;

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The client has connected and nothing is read yet.
    Accept,
    /// The first message has been read.
    Prelogin,
    /// The client has sent its first bytes of TLS.
    Handshake,
    /// The login has been read.
    Login,
    /// A statement has been read.
    Statement,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The client is never answered at this stage, and its connection stays open.
    Silence(Stage),
    /// The connection ends at this stage without an answer.
    Close(Stage),
    /// These bytes are the answer at this stage, and then the connection ends.
    Garbage(Stage, Vec<u8>),
    /// The login fails with this error.
    LoginError(ServerError),
    /// The statement fails with this error before it is run.
    Error(ServerError),
    /// The error comes in the middle of the rows; those before it have been sent.
    ErrorAfterRows(usize, ServerError),
    /// The rest waits so long, after so many rows.
    DelayAfterRows(usize, Duration),
    /// The rest never comes, after so many rows; an attention is still answered.
    SilenceAfterRows(usize),
    /// The answer waits so long.
    Delay(Duration),
    /// The connection ends after so many bytes of the answer.
    Cut(usize),
    /// These statements run first, as by an administrator elsewhere: a table that changes between two polls.
    Before(String),
    /// These statements run after the answer has been sent.
    After(String),
}

/// An error as a test writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The number.
    pub number: i32,
    /// The state.
    pub state: u8,
    /// The class: 20 and more end the connection.
    pub class: u8,
    /// The text.
    pub message: String,
}

impl ServerError {
    /// An error of state 1 and class 16.
    pub fn new(number: i32, message: &str) -> Self {
        Self { number, state: 1, class: 16, message: message.to_owned() }
    }

    /// With another state.
    #[must_use]
    pub fn state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    /// With another class.
    #[must_use]
    pub fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }
}

impl From<&ServerError> for SqlError {
    fn from(error: &ServerError) -> Self {
        Self { number: error.number, state: error.state, class: error.class, message: error.message.clone(), refusal: false }
    }
}

/// An effect and when it strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub(super) effect: Effect,
    containing: Option<String>,
    skip: u32,
    times: Option<u32>,
}

impl Fault {
    /// Strikes once, at the first occasion.
    pub fn new(effect: Effect) -> Self {
        Self { effect, containing: None, skip: 0, times: Some(1) }
    }

    /// Strikes statements only whose text contains this, in any case of letters.
    #[must_use]
    pub fn containing(mut self, text: &str) -> Self {
        self.containing = Some(text.to_lowercase());
        self
    }

    /// Lets so many occasions pass.
    #[must_use]
    pub fn skip(mut self, occasions: u32) -> Self {
        self.skip = occasions;
        self
    }

    /// Strikes so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Strikes until it is cleared.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }
}

/// The faults that wait.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
}

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    pub fn pending(&self) -> usize {
        self.waiting.iter().filter(|fault| fault.times != Some(0) && fault.times.is_some()).count()
    }

    /// The effects that strike a connection at this stage. Those of statements are looked for with their text.
    pub fn at(&mut self, stage: Stage) -> Vec<Effect> {
        let fits = |effect: &Effect| match effect {
            Effect::Silence(at) | Effect::Close(at) | Effect::Garbage(at, _) => *at == stage && stage != Stage::Statement,
            _ => false,
        };
        self.strike(fits, "")
    }

    /// The error with which a login is to fail.
    pub fn of_login(&mut self) -> Option<ServerError> {
        self.strike(|effect| matches!(effect, Effect::LoginError(_)), "").into_iter().find_map(|effect| match effect {
            Effect::LoginError(error) => Some(error),
            _ => None,
        })
    }

    /// The effects that strike a statement.
    pub fn of_statement(&mut self, text: &str) -> Vec<Effect> {
        let fits = |effect: &Effect| match effect {
            Effect::Silence(at) | Effect::Close(at) | Effect::Garbage(at, _) => *at == Stage::Statement,
            Effect::LoginError(_) => false,
            _ => true,
        };
        self.strike(fits, text)
    }

    fn strike(&mut self, fits: impl Fn(&Effect) -> bool, text: &str) -> Vec<Effect> {
        let text = text.to_lowercase();
        let mut struck = Vec::new();
        for fault in &mut self.waiting {
            if !fits(&fault.effect) || fault.times == Some(0) || fault.containing.as_ref().is_some_and(|part| !text.contains(part)) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times = fault.times.map(|times| times - 1);
            struck.push(fault.effect.clone());
        }
        self.waiting.retain(|fault| fault.times != Some(0));
        struck
    }
}
