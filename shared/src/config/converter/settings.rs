//! The settings of converters: which class knows which, and what they mean.
//!
//! Confluent's and AWS's converters hand their whole configuration down to a serialiser, a client and a maker of schemas,
//! each of which reads what it knows. Here the union of these is one table per class. A setting that would have to change
//! what is done, and does not exist here, is refused by name; one that cannot make a difference for rows of a source is
//! accepted and says so.

use super::super::connect::Refused;
use super::super::key::{Key, Kind, Scope, Shape};
use super::Format;

/// A setting of a converter.
const fn setting(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key::new(name, kind, doc).scope(Scope::Converter)
}

/// A setting that makes no difference here.
const fn idle(name: &'static str, kind: Kind) -> Key {
    setting(name, kind, "Accepted for compatibility.")
}

const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX, unit: "" };
const MILLIS: Kind = Kind::Integer { min: 1, max: 600_000, unit: "ms" };
const WAIT: Kind = Kind::Integer { min: 0, max: 600_000, unit: "ms" };

/// The settings of the converters that need no registry.
pub(in super::super) static PLAIN: &[Key] = &[
    setting("schemas.enable", Kind::Boolean, "JsonConverter: whether the schema goes along. As in Connect, true unless set to false.")
        .structural(),
    setting("schemas.cache.size", COUNT, "JsonConverter: accepted for compatibility."),
    setting(
        "decimal.format",
        Kind::Choice(&["BASE64", "NUMERIC"]),
        "JsonConverter: how the decimals of a schema are written, as the bytes of the unscaled value or as a number. As in Connect, \
         BASE64 unless set.",
    ),
    setting("replace.null.with.default", Kind::Boolean, "JsonConverter: accepted for compatibility; no schema here has defaults."),
    setting("converter.encoding", Kind::Choice(&["UTF-8", "UTF8"]), "StringConverter: text is always UTF-8."),
];

/// The addresses of a registry.
static ADDRESSES: Shape =
    Shape { name: "list of urls", allowed: "http(s) addresses, several separated by commas", check: |text| addresses(text).map(drop) };

/// Reads the addresses of a registry. They may carry credentials, which is one of Confluent's ways to give them.
pub(in super::super) fn addresses(text: &str) -> Result<Vec<url::Url>, String> {
    let read = |text: &str| {
        let url = url::Url::parse(text).map_err(|error| format!("holds what is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err("holds an address that is neither https nor http".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("holds an address with a query or a fragment".to_owned());
        }
        Ok(url)
    };
    text.split(',').map(|one| read(one.trim())).collect()
}

/// A user with a password.
static USER_INFO: Shape = Shape {
    name: "password",
    allowed: "user:password",
    check: |text| {
        let named = text.split_once(':').is_some_and(|(user, _)| !user.is_empty());
        if named { Ok(()) } else { Err("is not a user, a colon and a password".into()) }
    },
};

/// A token that is sent as a header's value.
static TOKEN: Shape = Shape {
    name: "password",
    allowed: "visible ASCII characters without blanks",
    check: |text| {
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(()) } else { Err("cannot be sent as a header: it is empty or holds a blank or a character outside ASCII".into()) }
    },
};

const STRATEGY: Kind = Kind::Choice(&[
    "io.confluent.kafka.serializers.subject.TopicNameStrategy",
    "io.confluent.kafka.serializers.subject.RecordNameStrategy",
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
    "TopicNameStrategy",
    "RecordNameStrategy",
    "TopicRecordNameStrategy",
]);

const STORE: Kind = Kind::Choice(&["JKS", "PKCS12", "PEM"]);

/// What a converter says to Confluent's registry.
pub(in super::super) static CONFLUENT: &[Key] = &[
    setting(
        "schema.registry.url",
        Kind::Shaped(&ADDRESSES),
        "Required. Where the registry is; the next address is asked when one does not answer. A registry below a path is named with it, such as \
         `https://host/apis/ccompat/v7`.",
    ),
    setting("schema.registry.url.randomize", Kind::Boolean, "Whether a process begins with any of the addresses and not the first.")
        .or("false"),
    setting(
        "auto.register.schemas",
        Kind::Boolean,
        "Whether a schema that the registry does not have is registered. If not, it must be there.",
    )
    .or("true"),
    setting(
        "use.latest.version",
        Kind::Boolean,
        "Whether records are written with the subject's latest schema and not their own; only with auto.register.schemas=false, as there.",
    )
    .or("false"),
    setting(
        "latest.compatibility.strict",
        Kind::Boolean,
        "Accepted for compatibility: with use.latest.version a field that the registry's schema does not have is always an error, and never \
         left out.",
    ),
    setting(
        "latest.cache.ttl.sec",
        Kind::Integer { min: -1, max: i64::MAX, unit: "s" },
        "How long the latest version is taken for the latest; -1 for as long as the process lives.",
    )
    .or("-1"),
    setting(
        "normalize.schemas",
        Kind::Boolean,
        "Whether the registry compares schemas in their normal form, in which the order of attributes does not count.",
    )
    .or("false"),
    setting(
        "key.subject.name.strategy",
        STRATEGY,
        "What the subject of a key's schema is named after. A key is a text, which only TopicNameStrategy has a subject for.",
    )
    .or("TopicNameStrategy"),
    setting(
        "value.subject.name.strategy",
        STRATEGY,
        "What the subject of a value's schema is named after: the topic (`<topic>-value`), the record (`<record>`) or both \
         (`<topic>-<record>`). Tables that share a topic need one of the last two.",
    )
    .or("TopicNameStrategy"),
    setting(
        "basic.auth.credentials.source",
        Kind::Choice(&["URL", "USER_INFO"]),
        "Where user and password stand: in the address, or in basic.auth.user.info.",
    )
    .or("URL"),
    setting("basic.auth.user.info", Kind::Shaped(&USER_INFO), "User and password, with basic.auth.credentials.source=USER_INFO.")
        .sensitive(),
    setting("schema.registry.basic.auth.user.info", Kind::Shaped(&USER_INFO), "The older name of basic.auth.user.info.").sensitive(),
    setting(
        "bearer.auth.credentials.source",
        Kind::Choice(&["STATIC_TOKEN"]),
        "Where a bearer token comes from: STATIC_TOKEN takes bearer.auth.token.",
    ),
    setting("bearer.auth.token", Kind::Shaped(&TOKEN), "The bearer token.").sensitive(),
    setting(
        "schema.registry.ssl.truststore.location",
        Kind::Path,
        "A file with the authorities to trust instead of the system's: PEM or PKCS12.",
    ),
    setting("schema.registry.ssl.truststore.password", Kind::Password, "The password of the trust store."),
    setting("schema.registry.ssl.truststore.type", STORE, "The trust store's type; by its content if not given."),
    setting("schema.registry.ssl.truststore.certificates", Kind::Password, "The authorities to trust, as PEM in place of a file."),
    setting(
        "schema.registry.ssl.keystore.location",
        Kind::Path,
        "A file with the client's certificate, its chain and its key: PEM or PKCS12.",
    ),
    setting("schema.registry.ssl.keystore.password", Kind::Password, "The password of the key store."),
    setting("schema.registry.ssl.keystore.type", STORE, "The key store's type; by its content if not given."),
    setting(
        "schema.registry.ssl.keystore.certificate.chain",
        Kind::Password,
        "The client's certificate and its chain, as PEM in place of a file.",
    ),
    setting("schema.registry.ssl.keystore.key", Kind::Password, "The certificate's key, as PEM in place of a file."),
    setting("schema.registry.ssl.key.password", Kind::Password, "The password of the key, where it has one of its own."),
    setting("http.connect.timeout.ms", MILLIS, "The longest wait for a connection. Confluent's default is 60000.").or("5000"),
    setting("http.read.timeout.ms", MILLIS, "The longest wait for an answer. Confluent's default is 60000.").or("10000"),
    setting(
        "max.retries",
        Kind::Integer { min: 0, max: 30, unit: "" },
        "How often a request is repeated that got no answer, 408, 429 or a 5xx. All attempts together end within 20 seconds.",
    )
    .or("3"),
    setting("retries.wait.ms", WAIT, "The longest wait before the first repetition; it doubles, and the wait is random below it.")
        .or("1000"),
    setting("retries.max.wait.ms", WAIT, "The longest wait before any repetition.").or("20000"),
    setting("proxy.host", Kind::Host, "A proxy to ask by."),
    setting("proxy.port", Kind::Integer { min: -1, max: 65_535, unit: "" }, "The proxy's port; -1 means none."),
    idle("latest.cache.size", COUNT),
    idle("max.schemas.per.subject", COUNT),
    idle("rule.service.loader.enable", Kind::Boolean),
];

/// How a schema becomes one of Avro.
pub(in super::super) static AVRO: &[Key] = &[
    setting(
        "connect.meta.data",
        Kind::Boolean,
        "Avro: whether names, versions and parameters of Connect's schema stand in the Avro schema.",
    )
    .or("true"),
    setting(
        "enhanced.avro.schema.support",
        Kind::Boolean,
        "Avro: whether enums and dots in names are kept. No schema of a source has either.",
    )
    .or("false"),
    setting("scrub.invalid.names", Kind::Boolean, "Avro: whether names that Avro does not allow are changed to ones that it does.")
        .or("false"),
    idle("schemas.cache.config", COUNT),
    idle("schemas.cache.size", COUNT),
    idle("schemas.enable", Kind::Boolean),
    idle("generalized.sum.type.support", Kind::Boolean),
    idle("discard.type.doc.default", Kind::Boolean),
    idle("allow.optional.map.keys", Kind::Boolean),
    idle("flatten.singleton.unions", Kind::Boolean),
    idle("ignore.default.for.nullables", Kind::Boolean),
    idle("avro.reflection.allow.null", Kind::Boolean),
    idle("avro.remove.java.properties", Kind::Boolean),
    idle("avro.use.logical.type.converters", Kind::Boolean),
    idle("specific.avro.reader", Kind::Boolean),
];

/// How a schema becomes one of JSON Schema.
pub(in super::super) static JSON_SCHEMA: &[Key] = &[
    setting(
        "decimal.format",
        Kind::Choice(&["BASE64", "NUMERIC"]),
        "JSON Schema: how decimals are written, as the bytes of the unscaled value or as a number.",
    )
    .or("BASE64"),
    setting(
        "object.additional.properties",
        Kind::Boolean,
        "JSON Schema: whether objects may have properties that the schema does not name.",
    )
    .or("true"),
    idle("schemas.cache.size", COUNT),
    idle("schemas.enable", Kind::Boolean),
    idle("generalized.sum.type.support", Kind::Boolean),
    idle("use.optional.for.nonrequired", Kind::Boolean),
    idle("json.fail.invalid.schema", Kind::Boolean),
    idle("json.fail.unknown.properties", Kind::Boolean),
    idle("json.oneof.for.nullables", Kind::Boolean),
    idle("json.write.dates.iso8601", Kind::Boolean),
];

/// Tags of a schema that is made.
static TAGS: Shape = Shape { name: "tags", allowed: "name=value, several separated by commas", check: |text| tags(text).map(drop) };

/// Reads tags.
pub(in super::super) fn tags(text: &str) -> Result<Vec<(String, String)>, String> {
    let read = |text: &str| match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("holds what is no name=value".to_owned()),
    };
    text.split(',').map(read).collect()
}

/// What a converter says to the registry of AWS Glue.
pub(in super::super) static GLUE: &[Key] = &[
    setting("region", Kind::Text, "The registry's region; where it is not given, that of the environment."),
    setting("endpoint", Kind::Endpoint, "Where Glue is asked, such as an interface endpoint; AWS_ENDPOINT_URL_GLUE does the same."),
    setting("registry.name", Kind::Text, "The registry.").or("default-registry"),
    setting("schemaName", Kind::Text, "The name of the schema; the topic's where it is not given. A key and a value need two names."),
    setting(
        "schemaAutoRegistrationEnabled",
        Kind::Boolean,
        "Whether a schema or a version that the registry does not have is made. If not, it must be there.",
    )
    .or("false"),
    setting(
        "compatibility",
        Kind::Choice(&["NONE", "DISABLED", "BACKWARD", "BACKWARD_ALL", "FORWARD", "FORWARD_ALL", "FULL", "FULL_ALL"]),
        "How far the versions of a schema that is made must agree.",
    )
    .or("BACKWARD"),
    setting("compression", Kind::Choice(&["NONE", "ZLIB"]), "Whether the data of each record is compressed.").or("NONE"),
    setting("description", Kind::Text, "The description of a schema that is made."),
    setting("tags", Kind::Shaped(&TAGS), "The tags of a schema that is made."),
    idle("avroRecordType", Kind::Choice(&["GENERIC_RECORD", "SPECIFIC_RECORD", "UNKNOWN"])),
    idle("dataFormat", Kind::Choice(&["AVRO", "JSON", "PROTOBUF"])),
    idle("cacheSize", COUNT),
    idle("timeToLiveMillis", COUNT),
    idle("userAgentApp", Kind::Text),
];

/// What the converters of Confluent's registry have and these have not.
static REFUSED_CONFLUENT: &[Refused] = &[
    Refused::unless("use.schema.id", &["-1"], "a schema belongs to its rows and is not chosen by number; name it with use.latest.version"),
    Refused::always("use.latest.with.metadata", "versions are not chosen by metadata; use the latest with use.latest.version"),
    Refused::unless("id.compatibility.strict", &["true"], "there is no use.schema.id; leave the key out"),
    Refused::unless(
        "context.name.strategy",
        &["io.confluent.kafka.serializers.context.NullContextNameStrategy"],
        "a context of a registry is part of its address here: end schema.registry.url in /contexts/<context>",
    ),
    Refused::always(
        "bearer.auth.",
        "a bearer token is given as it is, with bearer.auth.credentials.source=STATIC_TOKEN and bearer.auth.token",
    ),
    Refused::unless(
        "schema.registry.ssl.endpoint.identification.algorithm",
        &["https"],
        "a certificate is always compared with the name of the host",
    ),
    Refused::unless("schema.registry.ssl.protocol", &["TLS", "TLSv1.2", "TLSv1.3"], "TLS 1.2 and 1.3 are spoken"),
    Refused::unless(
        "schema.registry.ssl.enabled.protocols",
        &["TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2", "TLSv1.3", "TLSv1.2"],
        "TLS 1.2 and 1.3 are spoken",
    ),
    Refused::always("schema.registry.ssl.", "this setting is for Java's TLS; stores are given with .location or as PEM"),
    Refused::always("schema.registry.sasl.", "the registry is asked with user and password or a token; see basic.auth and bearer.auth"),
    Refused::unless("rule.executors", &["", "[]"], "rules of data contracts are not carried out here; leave the key out"),
    Refused::always("rule.", "rules of data contracts are not carried out here; leave the key out"),
    Refused::unless("propagate.schema.tags", &["false"], "rules and tags of data contracts are not known here; leave the key out"),
    Refused::unless("schema.reflection", &["false"], "no schema is made of Java classes here; leave the key out"),
    Refused::always("schema.format", "schemas are registered as they are; leave the key out"),
    Refused::unless("json.indent.output", &["false"], "JSON is written without needless space; leave the key out"),
    Refused::always("json.schema.spec.version", "schemas are written for draft 7, the default there; leave the key out"),
    Refused::always("json.default.property.inclusion", "every field is written; leave the key out"),
];

/// What the converters of AWS Glue have and these have not.
static REFUSED_GLUE: &[Refused] = &[
    Refused::unless(
        "schemaNameGenerationClass",
        &["com.amazonaws.services.schemaregistry.common.AWSSchemaNamingStrategyDefaultImpl"],
        "no Java class is run here; name the schema with schemaName",
    ),
    Refused::always("proxyUrl", "AWS is asked without a proxy; give an interface endpoint of the VPC with endpoint"),
    Refused::always("metadata", "versions get no metadata here; describe a schema with description and tags"),
    Refused::always("secondaryDeserializer", "nothing is read here; leave the key out"),
    Refused::always("assumeRoleArn", "AWS is asked with the role of the function; grant that role the rights"),
    Refused::always("jacksonSerializationFeatures", "no Java class is run here; leave the key out"),
    Refused::always("protobufMessageType", "Protobuf is not supported; leave the key out"),
    Refused::unless("json.indent.output", &["false"], "JSON is written without needless space; leave the key out"),
];

/// The settings of a converter of this format.
pub(in super::super) fn of(format: Format) -> Vec<&'static Key> {
    let tables: &[&'static [Key]] = match format {
        Format::String | Format::RawJson | Format::JsonWithSchema => &[PLAIN],
        Format::Avro => &[CONFLUENT, AVRO],
        Format::JsonSchema => &[CONFLUENT, JSON_SCHEMA],
        Format::GlueAvro => &[GLUE, AVRO],
        Format::GlueJsonSchema => &[GLUE, JSON_SCHEMA],
    };
    tables.iter().flat_map(|table| table.iter()).collect()
}

/// The settings that a converter of this format has elsewhere and not here.
pub(in super::super) fn refused(format: Format) -> &'static [Refused] {
    match format {
        Format::String | Format::RawJson | Format::JsonWithSchema => &[],
        Format::Avro | Format::JsonSchema => REFUSED_CONFLUENT,
        Format::GlueAvro | Format::GlueJsonSchema => REFUSED_GLUE,
    }
}
