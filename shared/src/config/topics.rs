//! The settings of topics that the sink may create, in Connect's groups.

use std::collections::BTreeMap;

use regex::Regex;

use super::connect::TOPIC_CREATION;
use super::fault::Faults;
use super::key::{Key, Kind, Scope, Shape};
use super::values::Values;

/// How a topic is made that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// The replication factor; -1 for the broker's default.
    pub replication_factor: i32,
    /// The number of partitions; -1 for the broker's default.
    pub partitions: i32,
    /// Further settings of the topic, by Kafka's names.
    pub config: BTreeMap<String, String>,
}

/// How a connector's topics are made: by the first group that claims a topic, in the order in which the groups are listed,
/// and by the group `default` if none does.
#[derive(Clone, Debug, Default)]
pub struct TopicCreation {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    /// `None` of the group `default`.
    patterns: Option<Patterns>,
    settings: TopicSettings,
}

#[derive(Clone, Debug)]
struct Patterns {
    include: Regex,
    exclude: Option<Regex>,
}

impl TopicCreation {
    /// How this topic is made; `None` if no group claims it.
    pub fn of(&self, topic: &str) -> Option<&TopicSettings> {
        let claims = |group: &&Group| group.patterns.as_ref().is_none_or(|patterns| patterns.claim(topic));
        self.groups.iter().find(claims).map(|group| &group.settings)
    }
}

impl Patterns {
    fn claim(&self, topic: &str) -> bool {
        self.include.is_match(topic) && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(topic))
    }
}

/// Patterns separated by commas, as one that matches a whole name.
fn pattern(text: &str) -> Result<Regex, regex::Error> {
    let each: Vec<&str> = text.split(',').map(str::trim).collect();
    // Each by itself first: a bracket that one leaves open is not closed by the next.
    for one in &each {
        Regex::new(one)?;
    }
    Regex::new(&format!("^(?:{})$", each.join("|")))
}

static PATTERNS: Shape = Shape {
    name: "list of patterns",
    allowed: "regular expressions separated by commas, each for a whole topic name; no look-around and no references to groups",
    check: |text| match pattern(text) {
        Ok(_) if !text.is_empty() => Ok(()),
        Ok(_) => Err("is empty; give a pattern or leave the key out".into()),
        Err(_) => Err("holds a regular expression that cannot be read".into()),
    },
};

/// The group whose settings hold for every topic that no other group claims.
const DEFAULT: &str = "default";
/// The key that lists the other groups.
pub(super) const GROUPS: &str = "topic.creation.groups";

const COUNT: Kind = Kind::Integer { min: -1, max: 32_767, unit: "" };

/// The keys of a group.
pub(super) static GROUP_KEYS: &[Key] = &[
    Key::new("replication.factor", COUNT, "How many replicas a created topic has; -1 for the broker's default.").scope(Scope::Group),
    Key::new("partitions", COUNT, "How many partitions a created topic has; -1 for the broker's default.").scope(Scope::Group),
    Key::new("include", Kind::Shaped(&PATTERNS), "Patterns of the topics that the group claims; not for the group `default`.")
        .scope(Scope::Group),
    Key::new("exclude", Kind::Shaped(&PATTERNS), "Patterns of topics that the group does not claim after all.").scope(Scope::Group),
];

/// Any other setting of a topic is handed to the broker, which knows its topics best.
pub(super) static TOPIC_SETTING: Key =
    Key::new("*", Kind::Text, "Any setting of a topic, such as cleanup.policy, as the broker knows it.").scope(Scope::Group);

/// The list of groups.
pub(super) static GROUPS_KEY: Key =
    Key::new(GROUPS, Kind::Aliases, "Groups of topics with settings of their own, besides `default`.").structural();

/// The definition of a key below `topic.creation.<group>.`.
pub(super) fn definition(setting: &str) -> &'static Key {
    GROUP_KEYS.iter().find(|key| key.name == setting).unwrap_or(&TOPIC_SETTING)
}

/// Splits the rest of a key after `topic.creation.` into group and setting.
pub(super) fn split(rest: &str) -> Option<(&str, &str)> {
    rest.split_once('.').filter(|(group, setting)| !group.is_empty() && !setting.is_empty())
}

/// The groups that a document lists, `default` first.
fn groups(values: &Values) -> Vec<String> {
    let listed = values.text(GROUPS).and_then(|text| super::kind::aliases(text).ok()).unwrap_or_default();
    std::iter::once(DEFAULT.to_owned()).chain(listed).collect()
}

/// Checks what needs several keys: that groups are listed, and whole.
pub(super) fn check(values: &Values, faults: &mut Faults) {
    let groups = groups(values);
    let used = values.entries.keys().filter(|key| *key != GROUPS).filter_map(|key| key.strip_prefix(TOPIC_CREATION));
    for rest in used {
        let Some((group, setting)) = split(rest) else {
            continue;
        };
        let key = format!("{TOPIC_CREATION}{rest}");
        if !groups.iter().any(|known| known == group) {
            faults.push(values.fault(&key, format!("belongs to a group that {GROUPS} does not list")));
        } else if group == DEFAULT && (setting == "include" || setting == "exclude") {
            faults.push(values.fault(&key, "is not for the group `default`, which claims every topic that is left"));
        } else if values.integer(&key) == Some(0) && definition(setting).name != TOPIC_SETTING.name {
            faults.push(values.fault(&key, "is 0; a topic has at least one, and -1 means the broker's default"));
        }
    }
    let mentions = |group: &str| values.entries.keys().any(|name| name.starts_with(&format!("{TOPIC_CREATION}{group}.")));
    for group in &groups {
        let key = |setting: &str| format!("{TOPIC_CREATION}{group}.{setting}");
        // Another group takes the counts that it does not say from the default group, if there is one.
        let needed: &[&str] = match (group == DEFAULT, mentions(DEFAULT)) {
            (true, true) => &["replication.factor", "partitions"],
            (true, false) => &[],
            (false, true) => &["include"],
            (false, false) => &["include", "replication.factor", "partitions"],
        };
        for setting in needed.iter().filter(|setting| !values.is_set(&key(setting))) {
            faults.push(values.fault(&key(setting), "is required for this group"));
        }
    }
}

/// How a connector wants its topics made: its own settings, else the worker's; `None` when topics must exist.
pub(super) fn creation(connector: &Values, worker: &Values) -> Option<TopicCreation> {
    if worker.boolean("topic.creation.enable") == Some(false) {
        return None;
    }
    [connector, worker].into_iter().map(of_document).find(|creation| !creation.groups.is_empty())
}

fn of_document(values: &Values) -> TopicCreation {
    let default = settings(values, DEFAULT, None);
    let mut creation = TopicCreation::default();
    for group in groups(values).iter().filter(|group| *group != DEFAULT) {
        let pattern = |setting: &str| pattern(values.text(&format!("{TOPIC_CREATION}{group}.{setting}"))?).ok();
        let (Some(include), Some(settings)) = (pattern("include"), settings(values, group, default.as_ref())) else { continue };
        creation.groups.push(Group { patterns: Some(Patterns { include, exclude: pattern("exclude") }), settings });
    }
    creation.groups.extend(default.map(|settings| Group { patterns: None, settings }));
    creation
}

/// What a group says, with the counts of `default` where it is silent.
fn settings(values: &Values, group: &str, default: Option<&TopicSettings>) -> Option<TopicSettings> {
    let prefix = format!("{TOPIC_CREATION}{group}.");
    let count = |setting: &str| i32::try_from(values.integer(&format!("{prefix}{setting}"))?).ok();
    let config = values
        .entries
        .iter()
        .filter_map(|(name, entry)| Some((name.strip_prefix(&prefix)?, entry)))
        .filter(|(_, entry)| entry.key.name == TOPIC_SETTING.name)
        .filter_map(|(name, entry)| Some((name.to_owned(), entry.text()?.to_owned())))
        .collect();
    Some(TopicSettings {
        replication_factor: count("replication.factor").or(default.map(|default| default.replication_factor))?,
        partitions: count("partitions").or(default.map(|default| default.partitions))?,
        config,
    })
}
