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
    let query = normalised_query(query);
    if query.is_empty() {
        return Ok(());
    }
    if is_percent_encoded(query) {
        return Err("is percent-encoded, as an address bar shows it; give it as \"Copy query\" does (a=1^b=2)".into());
    }
    for term in terms(query) {
        check_term(term)?;
    }
    Ok(())
}

fn check_term(term: &str) -> Result<(), String> {
    let condition = condition(term);
    if term.is_empty() {
        return Err("has an empty term; leave out the ^ too many".into());
    }
    if condition.is_empty() {
        // Alone it would be a branch of every row of the table.
        return Err(format!("has ^{term} without a condition after it; leave it out, or name the condition"));
    }
    // The cursor's terms and order follow the base query, and anything after an order or an end is ignored.
    if orders(condition) {
        return Err("contains ORDERBY; the order is the cursor's, so leave it out".into());
    }
    if condition.starts_with("GROUPBY") {
        return Err("contains GROUPBY, which sorts by another field than the cursor's; leave it out".into());
    }
    if term == "EQ" {
        return Err("ends (^EQ) before its last term; the instance would ignore the cursor's terms".into());
    }
    // A script may be of several lines.
    let plain = condition.split_once("javascript:").map_or(condition, |(before, _)| before);
    if plain.chars().any(char::is_control) {
        return Err("contains a control character; an encoded query is one line".into());
    }
    Ok(())
}

/// The condition of a term: without the `OR` or `NQ` that says how it is joined to those before it.
fn condition(term: &str) -> &str {
    ["OR", "NQ"].into_iter().find_map(|joined| term.strip_prefix(joined).filter(|_| !orders(term))).unwrap_or(term)
}

/// Whether a term is an order, in whatever spelling: the instance knows the one in capitals, and one that it does not know is
/// not what was meant either. A condition on a field with such a name has an operator.
fn orders(term: &str) -> bool {
    let is_named = term.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("ORDERBY"));
    term.starts_with("ORDERBY") || (is_named && !term.contains(SIGNS) && !term[7..].contains(char::is_uppercase))
}

/// The operators that are signs; the others are words in capitals.
const SIGNS: [char; 6] = ['=', '<', '>', '!', '*', '@'];

fn is_percent_encoded(query: &str) -> bool {
    let lower = query.to_ascii_lowercase();
    lower.contains("%5eorderby") || (lower.contains("%3d") && !query.contains(['=', '^']))
}

/// The fields that the conditions of a query name, each once, in their order. Conditions on rows of other tables
/// (`RLQUERY` up to `ENDRLQUERY`) and text searches name none of this table.
pub(in crate::source::servicenow) fn fields(query: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut is_elsewhere = false;
    for term in terms(query) {
        let condition = condition(term);
        is_elsewhere = (is_elsewhere || condition.starts_with("RLQUERY")) && !condition.starts_with("ENDRLQUERY");
        let end = condition.find(|c: char| c.is_ascii_uppercase() || SIGNS.contains(&c)).unwrap_or(0);
        let field = &condition[..end];
        let is_name = super::is_field(field) && !field.ends_with('_') && field.starts_with(|c: char| c.is_ascii_lowercase());
        if is_name && !is_elsewhere && !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
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
        for unfit in [
            "active=true^ORDERBYnumber",
            "ORDERBYDESCsys_created_on",
            "orderbynumber",
            "active=true^OrderBynumber",
            "active=true^NQORDERBYnumber",
            "active=true^ORORDERBYnumber",
            "active%3Dtrue%5EORDERBYnumber",
            "active%3dtrue",
            "stateIN1%2C2%5EORDERBYnumber",
            "active=true^GROUPBYstate",
            "a=1^EQ^b=2",
            "a=1^^^ORDERBYb",
            "a=1^\nb=2",
            "a=1^NQ",
            "a=1^OR",
            "^a=1",
            "a=1^",
        ] {
            assert!(check(unfit).is_err(), "{unfit}");
        }
        for fit in [
            "short_descriptionLIKEORDERBY",
            "short_description=x^^ORDERBY",
            "orderby_list=number",
            "orderby_listISEMPTY",
            "active=true^NQpriority=1^ORstate=2^EQ",
            "urlLIKE%5E",
            "sys_created_on>javascript:gs.daysAgoStart(30)",
            "u_text=javascript:f('a,b&c=%^^+#\n<\"ü')^active=true",
            "",
        ] {
            assert_eq!(check(fit), Ok(()), "{fit}");
        }
    }

    #[test]
    fn the_fields_of_a_query_are_those_before_the_operators() {
        let query = "active=true^ORstate>2^NQcaller_id.nameLIKEx^^y=z^active!=f^123TEXTQUERY321=word^u_a$bISEMPTY\
                     ^RLQUERYother.parent,>=1^elsewhere=1^ENDRLQUERY^openedONToday@javascript:gs.now()@x";
        assert_eq!(fields(query), ["active", "state", "caller_id.name", "u_a$b", "opened"]);
        assert!(fields("").is_empty());
    }
}
