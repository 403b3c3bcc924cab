//! What registries said in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::record::converter::registration::{Language, Registered};

/// More schemas than a connector has in use. Beyond that all are forgotten, and those in use are asked for again.
const KEPT: usize = 2_000;

/// Answers by question. Clones share them; a process has one, so that a warm function does not ask again.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<Mutex<HashMap<Question, Answer>>>);

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// The registry, and how it is asked.
    pub(super) registry: Arc<str>,
    /// The subject, or the schema's name.
    pub(super) name: String,
    /// The schema's language.
    pub(super) language: Language,
    /// The schema.
    pub(super) text: String,
}

#[derive(Debug, Clone)]
struct Answer {
    registered: Registered,
    /// The monotonic time at which it is asked for again; never without one.
    until: Option<Duration>,
}

impl Answers {
    /// The answer to a question, if it still counts at `now`, a monotonic reading.
    pub(super) fn get(&self, question: &Question, now: Duration) -> Option<Registered> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(question).filter(|answer| answer.until.is_none_or(|until| now < until)).map(|answer| answer.registered.clone())
    }

    /// Keeps an answer, until the monotonic time `until` if there is one.
    pub(super) fn put(&self, question: Question, registered: Registered, until: Option<Duration>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= KEPT && !answers.contains_key(&question) {
            answers.clear();
        }
        answers.insert(question, Answer { registered, until });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn question(name: &str) -> Question {
        Question { registry: "r".into(), name: name.to_owned(), language: Language::Avro, text: "\"string\"".to_owned() }
    }

    fn answer(id: u8) -> Registered {
        Registered { header: Bytes::copy_from_slice(&[0, 0, 0, 0, id]), zlib: false, instead: None }
    }

    #[test]
    fn an_answer_counts_for_its_question_alone_and_as_long_as_was_said() {
        let answers = Answers::default();
        answers.put(question("a"), answer(1), None);
        answers.put(question("b"), answer(2), Some(Duration::from_secs(10)));
        let at = |name: &str, seconds| answers.clone().get(&question(name), Duration::from_secs(seconds));
        assert_eq!((at("a", 1_000_000), at("b", 9), at("b", 10), at("c", 0)), (Some(answer(1)), Some(answer(2)), None, None));
        let other = Question { language: Language::JsonSchema, ..question("a") };
        assert_eq!(answers.get(&other, Duration::ZERO), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let answers = Answers::default();
        for n in 0..=KEPT {
            answers.put(question(&n.to_string()), answer(0), None);
        }
        assert_eq!(answers.0.lock().expect("whole").len(), 1);
    }
}
