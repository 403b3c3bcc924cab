//! Who gives a command, for the audit trail.

use tablesweep::host::env;

/// The user as the environment names it, else as the system does: a scheduled job, a container and `sudo -i` have no `USER`.
pub fn commands() -> String {
    env("USER").or_else(|| env("LOGNAME")).or_else(|| env("USERNAME")).unwrap_or_else(account)
}

#[cfg(unix)]
fn account() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(uid, &users).map_or_else(|| format!("uid {uid}"), str::to_owned)
}

#[cfg(not(unix))]
fn account() -> String {
    "unknown".to_owned()
}

/// The name of `uid` in the lines of `passwd(5)`. A user that another directory knows is told by number.
#[cfg(unix)]
fn name_of(uid: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(uid) && !name.is_empty()).then_some(name)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_as_the_system_does_or_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n# a comment\n:x:7:7::/:\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!((name_of(0, users), name_of(1000, users)), (Some("root"), Some("ada")));
        assert_eq!((name_of(7, users), name_of(8, users), name_of(8, "")), (None, None, None));
        assert!(account() != "unknown" && !account().is_empty());
    }
}
