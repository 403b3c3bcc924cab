//! What the source must know about an encoded query before it adds its own terms to it.

/// Splits a query at its separators. A caret within a value is written twice and separates nothing.
fn terms(query: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut carets = query.match_indices('^').map(|(at, _)| at).peekable();
    while let Some(at) = carets.next() {
        if carets.next_if_eq(&(at + 1)).is_none() {
            terms.push(&query[start..at]);
            start = at + 1;
        }
    }
    terms.push(&query[start..]);
    terms
}

/// The query as it is part of a cursor's identity and as it is sent: without blanks around it and without the `^EQ`
/// with which the list's filter ends what it copies. Nothing is reordered: whether two orders mean the same is the
/// server's knowledge.
pub fn normalised_query(query: &str) -> &str {
    let mut query = query.trim();
    while terms(query).last() == Some(&"EQ") {
        query = query.strip_suffix("EQ").unwrap_or(query);
        query = query.strip_suffix('^').unwrap_or(query);
    }
    query
}

/// Says what makes a query unfit as a base query.
pub(super) fn check(query: &str) -> Result<(), String> {
    if query.chars().any(char::is_control) {
        return Err("contains a control character; an encoded query is one line".into());
    }
    let query = normalised_query(query);
    if query.is_empty() {
        return Ok(());
    }
    for term in terms(query) {
        if term.is_empty() {
            return Err("has an empty term; leave out the ^ too many".into());
        }
        // The cursor's terms and order follow the base query, and anything after an order or an end is ignored.
        if term.starts_with("ORDERBY") {
            return Err("contains ORDERBY; the order is the cursor's, so leave it out".into());
        }
        if term == "EQ" {
            return Err("ends (^EQ) before its last term; the instance would ignore the cursor's terms".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_within_a_value_separates_nothing() {
        assert_eq!(terms("a=1^b=x^^y^c=2"), ["a=1", "b=x^^y", "c=2"]);
        assert_eq!(terms("a=x^^^b=1"), ["a=x^^", "b=1"]);
    }

    #[test]
    fn normalising_trims_and_drops_the_end_mark_and_reorders_nothing() {
        assert_eq!(normalised_query("  active=true^EQ "), "active=true");
        assert_eq!(normalised_query("active=true^EQ^EQ"), "active=true");
        assert_eq!(normalised_query("b=1^a=2"), "b=1^a=2");
        assert_eq!(normalised_query("name=EQ"), "name=EQ");
        assert_eq!(normalised_query("name=x^^EQ"), "name=x^^EQ", "the caret belongs to the value");
        assert_eq!(normalised_query("name=x^^^EQ"), "name=x^^", "an escaped caret, then the end mark");
        assert_eq!(normalised_query(""), "");
        assert_eq!(normalised_query("EQ"), "");
    }

    #[test]
    fn an_order_or_an_early_end_makes_a_query_unfit_and_a_value_that_reads_so_does_not() {
        assert!(check("active=true^ORDERBYnumber").is_err());
        assert!(check("ORDERBYDESCsys_created_on").is_err());
        assert!(check("a=1^EQ^b=2").is_err());
        assert!(check("a=1^^^ORDERBYb").is_err(), "an escaped caret, then an order");
        assert!(check("a=1^\nb=2").is_err());
        assert!(check("^a=1").is_err());
        assert!(check("short_descriptionLIKEORDERBY").is_ok());
        assert!(check("short_description=x^^ORDERBY").is_ok(), "the caret belongs to the value");
        assert!(check("active=true^NQpriority=1^ORstate=2^EQ").is_ok());
        assert!(check("").is_ok());
    }
}
