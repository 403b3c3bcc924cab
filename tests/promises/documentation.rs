//! What the documentation names exists, and what exists is documented.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tablesweep::assembly::SOURCES;
use tablesweep::config::load;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` that ends in `ending`, with its text.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = read(&path);
                found.push((path, text));
            }
        }
    }
    found
}

/// The stable codes in a text: `Part.Name` right after a quotation mark.
fn codes(text: &str) -> BTreeSet<String> {
    let parts = ["Config", "Source", "Record", "Registry", "Sink", "Cursor", "Sweep", "Event", "FanOut"];
    let literals = text.split('"').skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '.').next().unwrap_or_default());
    let is_code = |literal: &&str| {
        literal.split_once('.').is_some_and(|(part, name)| {
            parts.contains(&part) && name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric)
        })
    };
    literals.filter(is_code).map(str::to_owned).collect()
}

#[test]
fn one_file_has_unsafe_code_and_it_is_the_one_that_a_decision_allows() {
    let allowed = root().join("shared/src/sink/kafka/iam/grant.rs");
    let sources = ["shared", "cli", "functions", "tests"].into_iter().flat_map(|folder| files(folder, ".rs"));
    let is_code = |line: &str| !line.trim_start().starts_with("//") && line.contains(concat!("unsafe", " {"));
    let unsafe_files: Vec<PathBuf> = sources.filter(|(_, text)| text.lines().any(is_code)).map(|(path, _)| path).collect();
    assert_eq!(unsafe_files, [allowed]);
}

#[test]
fn every_error_code_has_a_section_that_says_what_to_do() {
    let page = read(&root().join("docs/operations.md"));
    let sections: BTreeSet<String> = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let mut missing = BTreeSet::new();
    for folder in ["shared/src", "cli/src", "functions"] {
        for (path, text) in files(folder, ".rs").into_iter().filter(|(path, _)| !path.to_string_lossy().contains("/tests")) {
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            missing.extend(codes(product).difference(&sections).map(|code| format!("{code} of {}", path.display())));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_test_that_the_documentation_names_exists() {
    let sources: Vec<String> = ["tests", "shared/src"].iter().flat_map(|folder| files(folder, ".rs")).map(|(_, text)| text).collect();
    let mut missing = Vec::new();
    for (path, text) in files("docs", ".md") {
        for named in text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains("::") && !quoted.contains(' ')) {
            let name = named.rsplit("::").next().unwrap_or_default().trim_end_matches("()");
            let is_test = name.contains('_') && name.len() > 25;
            if is_test && !sources.iter().any(|source| source.contains(&format!("fn {name}("))) {
                missing.push(format!("{named} of {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = Vec::new();
    let mut pages = files("docs", ".md");
    pages.push((root().join("README.md"), read(&root().join("README.md"))));
    for (path, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !path.parent().is_some_and(|folder| folder.join(target).exists()) {
                broken.push(format!("{link} of {}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The cells of the lines of every table of a page, without heads and rules.
fn table_lines(page: &str) -> Vec<Vec<String>> {
    let text = read(&root().join("docs").join(page));
    let mut lines = Vec::new();
    let mut head = true;
    for line in text.lines() {
        let Some(inner) = line.strip_prefix('|') else {
            head = true;
            continue;
        };
        let cells: Vec<String> = inner.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let is_rule = cells.iter().all(|cell| cell.starts_with("---"));
        if !head {
            lines.push(cells);
        }
        head &= !is_rule;
    }
    lines
}

/// Whether the test of this path is there: in the module that it names, below `promises`, or beside the code.
fn is_there(test: &str, sources: &[(PathBuf, String)]) -> bool {
    let (module, name) = test.rsplit_once("::").map_or((None, test), |(module, name)| (Some(module.replace("::", "/")), name));
    let text = format!("fn {name}(");
    sources.iter().any(|(path, source)| {
        let path = path.to_string_lossy();
        let is_meant = match &module {
            Some(module) => {
                [format!("/promises/{module}.rs"), format!("/promises/servicenow/{module}.rs")].iter().any(|end| path.ends_with(end))
            }
            None => path.contains("/shared/src/"),
        };
        is_meant && source.contains(&text)
    })
}

#[test]
fn every_line_of_the_specification_and_every_report_names_tests_that_exist() {
    let sources: Vec<_> = ["tests/promises", "shared/src"].iter().flat_map(|folder| files(folder, ".rs")).collect();
    let mut faults = Vec::new();
    for (page, least) in [("specification-servicenow.md", 45), ("reports.md", 37), ("reports-sqlserver.md", 49)] {
        let lines = table_lines(page);
        assert!(lines.len() >= least, "{page} has {} lines", lines.len());
        for cells in lines {
            let held_by = cells.last().map(String::as_str).unwrap_or_default();
            let tests: Vec<&str> = held_by.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains('_')).collect();
            if tests.is_empty() {
                faults.push(format!("{page}: nothing holds {cells:?}"));
            }
            faults.extend(tests.iter().filter(|test| !is_there(test, &sources)).map(|test| format!("{page}: there is no {test}")));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_report_is_in_the_table_once() {
    let numbers: Vec<u32> = table_lines("reports.md").iter().map(|cells| cells[0].parse().expect("a number")).collect();
    let known = [
        1, 3, 4, 5, 7, 8, 10, 11, 12, 13, 15, 16, 18, 20, 21, 22, 23, 25, 27, 28, 29, 31, 32, 34, 35, 37, 39, 40, 41, 42, 44, 45, 46, 48,
        51, 54, 55,
    ];
    assert_eq!(numbers, known);
    let numbers: Vec<u32> = table_lines("reports-sqlserver.md").iter().map(|cells| cells[0].parse().expect("a number")).collect();
    let known = [
        1, 2, 4, 5, 6, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 25, 26, 28, 29, 31, 33, 34, 35, 37, 38, 39, 41, 42, 43, 45, 46,
        48, 49, 50, 52, 53, 54, 55, 56, 57, 59, 61, 62, 63, 64, 66,
    ];
    assert_eq!(numbers, known);
}

/// What is wrong with a document of the worker, beside the connector of the repository.
fn faults_of_worker(text: &str) -> Option<String> {
    let dir = TempDir::new().expect("a folder");
    std::fs::create_dir(dir.path().join("connectors")).expect("a folder");
    std::fs::write(dir.path().join("worker.json"), text).expect("written");
    let connector = read(&root().join("config/connectors/servicenow.json"));
    std::fs::write(dir.path().join("connectors/servicenow.json"), connector).expect("written");
    load(dir.path(), SOURCES, &|_| None).err().map(|faults| faults.to_string())
}

#[test]
fn the_example_of_each_way_to_sign_in_is_in_order_and_so_is_what_the_page_on_deploying_shows() {
    let page = read(&root().join("docs/deploy.md"));
    let mut ways = BTreeSet::new();
    for (path, text) in files("config/examples", ".json") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("worker-") {
            assert_eq!(faults_of_worker(&text), None, "{name}");
            assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/deploy.md");
            ways.insert(name);
        }
    }
    assert_eq!(ways.len(), 5, "{ways:?}");
    let shown = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let shown: Vec<&str> = shown.filter(|text| text.contains("bootstrap.servers")).collect();
    assert!(!shown.is_empty());
    for text in shown {
        assert_eq!(faults_of_worker(text), None, "{text}");
    }
}
