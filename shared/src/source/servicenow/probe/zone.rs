//! The integration user's time zone, as its profile has it.
//!
//! Whether it matters is found out by experiment; the profile says why, and what to have changed. No zone is the usual
//! case: then the system's applies, which a user cannot read. An instance that does not show the user's own row is
//! common, too, and no fault.

use std::fmt;

use super::Asking;

/// The zone of whoever is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Zone {
    /// This one.
    Own(String),
    /// None, so that the system's applies.
    OfTheSystem,
    /// The instance does not show it.
    Unknown,
}

impl Zone {
    /// Asks the instance. The script stands for the signed-in user whatever the way of signing in.
    pub(super) async fn look_up(asking: &mut Asking<'_>) -> Self {
        let rows = match asking.of("sys_user", "sys_id=javascript:gs.getUserID()", 2, "user_name,time_zone").await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::debug!(%error, "the time zone of the integration user cannot be read");
                return Self::Unknown;
            }
        };
        // Two rows: the condition was ignored, and the first one is anybody's.
        match &rows[..] {
            [user] if user.has("time_zone") => match user.text("time_zone").filter(|zone| !zone.trim().is_empty()) {
                Some(zone) => Self::Own(zone.trim().to_owned()),
                None => Self::OfTheSystem,
            },
            _ => Self::Unknown,
        }
    }

    /// The warning that the specification asks for, if the zone is one that could shift the times of a query.
    pub(in super::super) fn warning(&self) -> Option<String> {
        const UTC: [&str; 10] = ["utc", "gmt", "etc/utc", "etc/gmt", "zulu", "etc/zulu", "uct", "etc/uct", "universal", "etc/universal"];
        match self {
            Self::Own(zone) if !UTC.contains(&zone.to_ascii_lowercase().as_str()) => Some(format!(
                "the integration user's time zone is {zone}: an instance may read times in a query in it. Set it to GMT (sys_user.time_zone)"
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(zone) => write!(f, "The user's own time zone is {zone}."),
            Self::OfTheSystem => f.write_str("The user has no time zone of their own, so that the system's default applies."),
            Self::Unknown => f.write_str("The user's time zone is not shown to us."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_zone_that_is_not_utc_is_warned_about() {
        for silent in [Zone::Own("GMT".into()), Zone::Own("Etc/UTC".into()), Zone::OfTheSystem, Zone::Unknown] {
            assert_eq!(silent.warning(), None, "{silent:?}");
        }
        let warning = Zone::Own("America/Los_Angeles".into()).warning().expect("a warning");
        assert!(warning.contains("America/Los_Angeles") && warning.contains("sys_user.time_zone"), "{warning}");
    }
}
