//! The settings that a producer here cannot be given, each with the reason and the way out.

use crate::config::connect::Refused;

/// What a producer here cannot be told.
pub(in crate::config) static REFUSED: &[Refused] = &[
    Refused {
        name: "acks",
        harmless: &[],
        why: "only a row that all in-sync replicas hold counts as delivered; set `all` or leave the key out",
    },
    Refused { name: "enable.idempotence", harmless: &[], why: "idempotence is always on; leave the key out" },
    Refused { name: "key.serializer", harmless: &[], why: "the key converter writes the bytes; leave the key out" },
    Refused { name: "value.serializer", harmless: &[], why: "the value converter writes the bytes; leave the key out" },
    Refused {
        name: "max.block.ms",
        harmless: &[],
        why: "waiting for room in the queue is bounded by the sweep's budget; leave the key out",
    },
    Refused { name: "metadata.max.idle.ms", harmless: &[], why: "librdkafka has no equivalent; leave the key out" },
    Refused {
        name: "socket.connection.setup.timeout.max.ms",
        harmless: &[],
        why: "librdkafka has no equivalent; set socket.connection.setup.timeout.ms",
    },
    Refused {
        name: "partitioner.class",
        harmless: &[],
        why: "a Java class cannot be loaded here; set `partitioner` to one of librdkafka's",
    },
    Refused { name: "partitioner.ignore.keys", harmless: &["false"], why: "rows of one key stay in one partition; leave the key out" },
    Refused {
        name: "partitioner.adaptive.partitioning.enable",
        harmless: &[],
        why: "rows always have a key, so it has no use; leave the key out",
    },
    Refused {
        name: "partitioner.availability.timeout.ms",
        harmless: &[],
        why: "rows always have a key, so it has no use; leave the key out",
    },
    Refused { name: "interceptor.classes", harmless: &[""], why: "a Java class cannot be loaded here; leave the key out" },
    Refused { name: "metric.reporters", harmless: &[""], why: "a Java class cannot be loaded here; metrics go to CloudWatch" },
    Refused { name: "metrics.", harmless: &[], why: "librdkafka has no equivalent; metrics go to CloudWatch" },
    Refused { name: "compression.gzip.level", harmless: &[], why: "set compression.level, which holds for the chosen codec" },
    Refused { name: "compression.lz4.level", harmless: &[], why: "set compression.level, which holds for the chosen codec" },
    Refused { name: "compression.zstd.level", harmless: &[], why: "set compression.level, which holds for the chosen codec" },
    Refused {
        name: "transactional.id",
        harmless: &[],
        why: "there are no transactions: the cursor lives outside Kafka; leave the key out",
    },
    Refused {
        name: "transaction.timeout.ms",
        harmless: &[],
        why: "there are no transactions: the cursor lives outside Kafka; leave the key out",
    },
    Refused {
        name: "delivery.report.only.error",
        harmless: &["false"],
        why: "every acknowledgement is counted before the cursor moves; leave the key out",
    },
    Refused { name: "queuing.strategy", harmless: &["fifo"], why: "rows keep their order; leave the key out" },
    Refused {
        name: "sasl.jaas.config",
        harmless: &["software.amazon.msk.auth.iam.IAMLoginModule required;"],
        why: "JAAS is Java's; set sasl.mechanism, sasl.username and sasl.password, or the mechanism AWS_MSK_IAM alone",
    },
    Refused {
        name: "sasl.client.callback.handler.class",
        harmless: &["software.amazon.msk.auth.iam.IAMClientCallbackHandler"],
        why: "a Java class cannot be loaded here; for Amazon MSK the mechanism AWS_MSK_IAM is enough",
    },
    Refused { name: "sasl.login.", harmless: &[], why: "JAAS is Java's; set the mechanism and its credentials" },
    Refused {
        name: "sasl.oauthbearer.",
        harmless: &[],
        why: "tokens are made for Amazon MSK only, and the mechanism AWS_MSK_IAM alone is enough for that",
    },
    Refused { name: "sasl.kerberos.", harmless: &[], why: "Kerberos is not supported" },
    Refused { name: "ssl.truststore.location", harmless: &[], why: "Java trust stores cannot be read; set ssl.ca.location to a PEM file" },
    Refused { name: "ssl.truststore.password", harmless: &[], why: "Java trust stores cannot be read; set ssl.ca.location to a PEM file" },
    Refused { name: "ssl.truststore.type", harmless: &["PEM"], why: "Java trust stores cannot be read; set ssl.ca.location to a PEM file" },
    Refused {
        name: "ssl.keystore.type",
        harmless: &["PKCS12", "PEM"],
        why: "only PKCS#12 stores and PEM files can be read; convert the store",
    },
    Refused { name: "ssl.protocol", harmless: &[], why: "librdkafka has no equivalent; TLS 1.2 and 1.3 are used" },
    Refused { name: "ssl.enabled.protocols", harmless: &[], why: "librdkafka has no equivalent; TLS 1.2 and 1.3 are used" },
    Refused { name: "ssl.provider", harmless: &[], why: "Java security providers cannot be loaded; leave the key out" },
    Refused { name: "ssl.trustmanager.algorithm", harmless: &[], why: "it belongs to Java; leave the key out" },
    Refused { name: "ssl.keymanager.algorithm", harmless: &[], why: "it belongs to Java; leave the key out" },
    Refused { name: "ssl.secure.random.implementation", harmless: &[], why: "it belongs to Java; leave the key out" },
    Refused { name: "ssl.engine.factory.class", harmless: &[], why: "a Java class cannot be loaded here; leave the key out" },
];
