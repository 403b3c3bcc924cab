//! A request for a token, from the form to the answer.

use super::auth::{Claim, Grant};
use super::effects::replacement;
use super::faults::{Effect, Subject, Target};
use super::read::Request;
use super::wire::Answer;
use super::world::World;

impl World {
    /// Answers a form posted to `/oauth_token.do`.
    pub fn token(&mut self, request: &Request, form: &[(String, String)]) -> (Answer, u64) {
        let mut entry = request.entry(self.clock.stamp());
        entry.limit = 0;
        entry.params = form.iter().filter(|(name, _)| name == "grant_type").cloned().collect();
        let effects = self.faults.strike(Subject {
            on: Target::Token,
            table: "",
            query: "",
            limit: 0,
            fields: None,
            cookie: request.cookie.is_some(),
        });
        entry.faults = effects.iter().map(Effect::name).collect();
        let mut answer = match effects.iter().find_map(replacement) {
            Some(answer) => answer,
            None => self.grant(form, &request.claim),
        };
        self.log.counters.tokens_issued = self.tokens.issued;
        self.finish(&effects, &mut answer, &mut entry);
        let number = self.log.add(entry);
        (answer, number)
    }

    fn grant(&mut self, form: &[(String, String)], claim: &Claim) -> Answer {
        let known = (&self.credentials, &self.settings, &mut self.lockout);
        match self.tokens.grant(form, claim, known, &self.clock, &mut self.random) {
            Grant::Given(body) => Answer::json(200, body),
            Grant::Denied(body) => Answer::json(401, body),
            Grant::Refused(why) => self.refusal(&why),
        }
    }
}
