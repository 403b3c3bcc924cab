//! The nearest known name to one that is not known.

/// The candidate that a misspelling most likely meant, if any is near enough to be worth naming.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Keys share long prefixes, so a plain similarity would call everything near. What counts is how many edits the
    // whole name takes: a third of its length at most, which lets `pol.interval` through and `password` not.
    let allowed = (name.chars().count() / 3).clamp(1, 6);
    let near = |candidate: &'a str| {
        // A name that stops at a dot is unfinished rather than misspelt: `linger` for `linger.ms`.
        let unfinished = candidate.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let distance = strsim::osa_distance(name, candidate);
        // Of two that are as near, the one that goes on where the name ends: `user` is the beginning of `username` and not a slip of `type`.
        (unfinished || distance <= allowed).then_some(((distance, !candidate.starts_with(name)), candidate))
    };
    candidates.into_iter().filter_map(near).min_by_key(|(rank, _)| *rank).map(|(_, candidate)| candidate)
}
