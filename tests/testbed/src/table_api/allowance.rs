//! The hourly allowance: how many requests are left, and what an answer says about it.

use super::world::World;

/// A window of the hourly allowance.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    pub resets_at: i64,
    pub used: u64,
}

#[derive(Default)]
pub(super) struct Rate {
    pub spent: bool,
    pub headers: Vec<(String, String)>,
}

impl World {
    /// Counts a request against the hourly allowance.
    pub fn spend(&mut self) -> Rate {
        let Some(rate) = &self.settings.rate_limit else {
            return Rate::default();
        };
        let now = self.clock.seconds();
        if now >= self.allowance.resets_at {
            self.allowance.resets_at = now.saturating_add(rate.window_seconds);
            self.allowance.used = 0;
        }
        self.allowance.used += 1;
        let spent = self.allowance.used > rate.limit;
        let mut headers = Vec::new();
        if rate.headers {
            headers.push(("x-ratelimit-limit", rate.limit.to_string()));
            headers.push(("x-ratelimit-reset", self.allowance.resets_at.to_string()));
            headers.push(("x-ratelimit-rule", "c1f9b2d04f2013002b2ac5f18110c7a1".to_owned()));
            if spent {
                headers.push(("retry-after", (self.allowance.resets_at - now).max(1).to_string()));
            }
        }
        Rate { spent, headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }
}
