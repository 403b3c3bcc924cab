//! Pages: limits, counts, links, cursors, and what a page may cost.

use super::client::{IN_ORDER, Reply, get, get_with, id, incidents, numbered};
use crate::table_api::{Collation, Fields, Generate, Ids, RateLimit, TableApi, Version};

#[test]
fn the_limit_comes_before_the_row_acls() {
    let api = numbered(10);
    api.hide("incident", (1..=5).map(id)).unwrap();
    let page = |offset: &str| incidents(&api, &[("sysparm_query", IN_ORDER), ("sysparm_limit", "5"), ("sysparm_offset", offset)]);
    let first = page("0");
    assert_eq!((first.rows().len(), first.total()), (0, Some(10)));
    assert!(first.header("link").unwrap().contains("rel=\"next\""));
    assert_eq!(page("5").column("number"), ["6", "7", "8", "9", "10"]);
    assert_eq!(api.log()[0].hidden, 5);
    assert_eq!(api.visible_versions("incident").unwrap().len(), 5);
}

#[test]
fn the_default_limit_is_ten_thousand_rows() {
    let api = TableApi::start().unwrap();
    api.generate(Generate { bytes_per_row: 0, fields: 0, ..Generate::rows("incident", 10_001) }).unwrap();
    let reply = incidents(&api, &[("sysparm_query", IN_ORDER), ("sysparm_fields", "sys_id")]);
    assert_eq!((reply.rows().len(), reply.total()), (10_000, Some(10_001)));
}

#[test]
fn the_count_is_that_of_all_matching_rows_and_can_be_had_away() {
    let api = numbered(10);
    let count = |params: &[(&str, &str)]| incidents(&api, params).total();
    assert_eq!(count(&[("sysparm_query", "sys_updated_on>2026-01-01 00:00:04"), ("sysparm_limit", "2")]), Some(6));
    assert_eq!(count(&[("sysparm_query", "number>4^ORDERBYsys_updated_on"), ("sysparm_limit", "2")]), Some(6));
    assert_eq!(count(&[("sysparm_no_count", "true")]), None);
    api.configure(|s| s.counts = false).unwrap();
    assert_eq!(count(&[]), None);
}

#[test]
fn links_lead_through_the_pages_and_are_absent_when_there_is_one() {
    let api = numbered(10);
    let page =
        |offset: &str, limit: &str| incidents(&api, &[("sysparm_query", IN_ORDER), ("sysparm_limit", limit), ("sysparm_offset", offset)]);
    let named = |reply: &Reply| -> Vec<String> {
        let links = reply.header("link").unwrap_or_default().split(',');
        links.filter_map(|link| link.split_once("rel=\"")).map(|(_, name)| name.trim_end_matches('"').to_owned()).collect()
    };
    assert_eq!(named(&page("0", "10")), Vec::<String>::new());
    assert_eq!(named(&page("0", "4")), ["first", "next", "last"]);
    assert_eq!(named(&page("4", "4")), ["first", "prev", "next", "last"]);
    assert_eq!(named(&page("8", "4")), ["first", "prev", "last"]);
    let first = page("0", "4");
    let next = first.header("link").unwrap().split(',').nth(1).unwrap();
    let target = next.trim_start_matches('<').split('>').next().unwrap();
    let target = target.strip_prefix(&api.url()).unwrap();
    let followed = super::client::send(&api, &format!("GET {target} HTTP/1.1"), "").unwrap();
    assert_eq!(followed.column("number"), ["5", "6", "7", "8"]);
    let quiet = [("sysparm_limit", "4"), ("sysparm_suppress_pagination_header", "true")];
    assert_eq!(incidents(&api, &quiet).header("link"), None);
    api.configure(|s| s.links_without_count = false).unwrap();
    assert_eq!(incidents(&api, &[("sysparm_limit", "4"), ("sysparm_no_count", "true")]).header("link"), None);
    assert!(incidents(&api, &[("sysparm_limit", "4")]).header("link").is_some());
}

#[test]
fn an_empty_list_is_404_in_version_one_and_an_empty_result_elsewhere() {
    let api = numbered(1);
    let none = [("sysparm_query", "number=0")];
    assert_eq!(get(&api, "/api/now/v1/table/incident", &none).status, 404);
    assert!(get(&api, "/api/now/v2/table/incident", &none).rows().is_empty());
    assert!(get(&api, "/api/now/table/incident", &none).rows().is_empty());
}

#[test]
fn an_instance_can_clamp_the_limit_and_refuse_long_urls() {
    let api = numbered(10);
    api.configure(|s| {
        s.limit_clamp = Some(3);
        s.url_limit = Some(200);
    })
    .unwrap();
    assert_eq!(incidents(&api, &[("sysparm_limit", "8")]).rows().len(), 3);
    let long = incidents(&api, &[("sysparm_query", &format!("number={}", "9".repeat(200)))]);
    assert_eq!((long.status, long.header("content-type").unwrap()), (400, "text/html;charset=UTF-8"));
}

#[test]
fn the_hourly_allowance_is_told_and_then_enforced() {
    let api = numbered(1);
    api.set_clock("2026-01-01 00:00:00").unwrap();
    api.freeze_clock();
    api.configure(|s| s.rate_limit = Some(RateLimit { limit: 2, window_seconds: 3600, headers: true })).unwrap();
    for _ in 0..2 {
        let reply = incidents(&api, &[]);
        assert_eq!((reply.status, reply.header("x-ratelimit-limit")), (200, Some("2")));
        assert_eq!(reply.header("x-ratelimit-reset"), Some("1767229200"));
        assert_eq!(reply.header("retry-after"), None);
    }
    api.step_clock(600);
    let spent = incidents(&api, &[]);
    assert_eq!((spent.status, spent.header("retry-after")), (429, Some("3000")));
    api.step_clock(3000);
    assert_eq!(incidents(&api, &[]).status, 200);
    api.configure(|s| s.rate_limit = Some(RateLimit { limit: 0, window_seconds: 3600, headers: false })).unwrap();
    let silent = incidents(&api, &[]);
    assert_eq!((silent.status, silent.header("retry-after"), silent.header("x-ratelimit-limit")), (429, None, None));
}

/// Sweeps with a pair cursor, as any client may, and gives the versions in the order in which they came.
fn sweep(api: &TableApi, limit: usize, extra: &[(&str, &str)]) -> Vec<Version> {
    let mut seen: Vec<Version> = Vec::new();
    let limit_text = limit.to_string();
    loop {
        let query = match seen.last() {
            None => IN_ORDER.to_owned(),
            Some((stamp, id, _)) => {
                format!("sys_updated_on={stamp}^sys_id>{id}^NQsys_updated_on>{stamp}^{IN_ORDER}")
            }
        };
        let mut params = vec![("sysparm_query", query.as_str()), ("sysparm_limit", limit_text.as_str())];
        params.extend_from_slice(extra);
        let rows = incidents(api, &params).rows();
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
        seen.extend(rows.iter().map(|row| (text(row, "sys_updated_on"), text(row, "sys_id"), text(row, "sys_mod_count").parse().unwrap())));
        if rows.len() < limit {
            return seen;
        }
    }
}

#[test]
fn a_sweep_with_a_pair_cursor_sees_every_row_once_under_either_collation() {
    for collation in [Collation::Binary, Collation::CaseInsensitive] {
        let api = TableApi::start().unwrap();
        api.configure(|s| s.collation = collation).unwrap();
        let spec = Generate { per_second: 7, ids: Ids::MixedCase, bytes_per_row: 300, ..Generate::rows("incident", 1500) };
        api.generate(spec).unwrap();
        // Rows that arrive out of order, alone and in bulk, go to their places in the index.
        api.insert("incident", Fields::from([("sys_updated_on", "2020-01-01 00:00:00")])).unwrap();
        let late = |n: usize| Fields::from([("sys_updated_on", format!("2020-01-01 00:00:{:02}", n % 60))]);
        api.load("incident", (0..100).map(late).collect()).unwrap();
        let victim = api.visible_versions("incident").unwrap()[700].1.clone();
        api.update("incident", &victim, Fields::new()).unwrap();
        for (limit, extra) in [(64, [("sysparm_no_count", "true")]), (1000, [("sysparm_no_count", "false")])] {
            let mut seen = sweep(&api, limit, &extra);
            seen.sort();
            assert_eq!(seen, api.visible_versions("incident").unwrap());
        }
    }
}

#[test]
fn a_page_looks_at_its_own_rows_and_at_no_others() {
    let api = TableApi::start().unwrap();
    let start = Some("2026-01-01 00:00:00".to_owned());
    let spec = Generate { start, bytes_per_row: 300, ..Generate::rows("incident", 60_000) };
    api.generate(spec).unwrap();
    let middle = api.visible_versions("incident").unwrap()[30_050].clone();
    let (stamp, id) = (&middle.0, &middle.1);
    let until = "sys_updated_on<=2027-01-01 00:00:00";
    for (query, total) in [
        (format!("sys_updated_on>{stamp}^{until}^{IN_ORDER}"), 29_900),
        (format!("sys_updated_on>=2026-01-01 00:09:57^{until}^{IN_ORDER}"), 300),
        (format!("sys_updated_on={stamp}^sys_id>{id}^ORDERBYsys_id"), 49),
        (format!("sys_updated_on={stamp}^sys_id>{id}^NQsys_updated_on>{stamp}^{until}^{IN_ORDER}"), 29_949),
        ("ORDERBYDESCsys_updated_on^ORDERBYDESCsys_id".to_owned(), 60_000),
        (format!("sys_id={id}^sys_updated_on={stamp}"), 1),
    ] {
        let reply = incidents(&api, &[("sysparm_query", &query), ("sysparm_limit", "200")]);
        assert_eq!(reply.total(), Some(total), "{query}");
        let entry = api.log().pop().unwrap();
        assert!(entry.examined <= entry.rows + 1, "{query}: {} rows looked at", entry.examined);
    }
    // Where the count needs a scan, the page does not when no count is asked for.
    let query = format!("active=true^sys_updated_on>{stamp}^{IN_ORDER}");
    let params = [("sysparm_query", query.as_str()), ("sysparm_limit", "200"), ("sysparm_no_count", "true")];
    assert_eq!(incidents(&api, &params).rows().len(), 200);
    assert!(api.log().pop().unwrap().examined < 310);
}

#[test]
fn answers_are_compressed_for_those_who_accept_it_and_connections_are_kept() {
    let api = numbered(50);
    let zipped = get_with(&api, "/api/now/table/incident", &[], "accept-encoding: gzip, deflate\n").unwrap();
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    assert_eq!(zipped.rows().len(), 50);
    assert_eq!(incidents(&api, &[]).header("content-encoding"), None);
    let log = api.log();
    assert!(log[0].gzip && log[0].wire_bytes == zipped.body.len() && log[0].wire_bytes < log[0].bytes);
    assert!(!log[1].gzip && log[1].wire_bytes == log[1].bytes);

    use std::io::{BufRead, BufReader, Read, Write};
    let mut stream = std::net::TcpStream::connect(api.address()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..2 {
        write!(stream, "GET /api/now/table/incident?sysparm_limit=1 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
    }
    let log = api.log();
    assert_eq!(log[2].connection, log[3].connection);
}
