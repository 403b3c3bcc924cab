//! The pages, and what in them is a command.

use std::path::{Path, PathBuf};

/// A line that begins with one of these is a command.
const PROGRAMS: &[&str] = &[
    "tablesweep",
    "make",
    "aws",
    "sam",
    "sed",
    "cargo",
    "git",
    "cd",
    "export",
    "curl",
    "mkdir",
    "cp",
    "rm",
    "docker",
    "python3",
    "pip",
    "jq",
    "openssl",
    "sh",
    "bash",
];

/// A page of the documentation.
pub struct Page {
    /// Its file's name.
    pub name: String,
    /// The commands of its blocks, in their order, without comments.
    pub commands: Vec<String>,
    /// The blocks of JSON, in their order.
    pub documents: Vec<String>,
    /// What is a command between backticks.
    pub quoted: Vec<String>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_owned()
}

/// README.md and docs/*.md.
pub fn all() -> Vec<Page> {
    let mut paths = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs")).expect("docs/") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut commands, mut documents, mut prose) = (Vec::new(), Vec::new(), String::new());
        let mut language: Option<String> = None;
        let mut block = String::new();
        for line in text.lines() {
            if let Some(fence) = line.strip_prefix("```") {
                match language.take() {
                    None => language = Some(fence.trim().to_owned()),
                    Some(language) if language == "json" => documents.push(std::mem::take(&mut block)),
                    Some(_) => commands.extend(commands_of(&std::mem::take(&mut block))),
                }
            } else if language.is_some() {
                block.push_str(line);
                block.push('\n');
            } else if let Some(indented) = line.strip_prefix("    ") {
                block.push_str(indented);
                block.push('\n');
            } else {
                commands.extend(commands_of(&std::mem::take(&mut block)));
                prose.push_str(line);
                prose.push('\n');
            }
        }
        commands.extend(commands_of(&block));
        let quoted =
            prose.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(' ') && is_command(quoted) && !quoted.contains('\n'));
        let quoted = quoted.map(str::to_owned).collect();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        Self { name, commands, documents, quoted }
    }
}

/// The commands of a block: continued lines are joined, comments and explanations in a second column are left out.
fn commands_of(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    joined.lines().filter(|line| is_command(line)).map(without_remark).collect()
}

fn is_command(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| PROGRAMS.contains(&word))
}

fn without_remark(line: &str) -> String {
    let command = line.split("  #").next().unwrap_or_default();
    let command = match command.split_once(' ') {
        Some(("make", _)) => command.split("    ").next().unwrap_or_default(),
        _ => command,
    };
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}
