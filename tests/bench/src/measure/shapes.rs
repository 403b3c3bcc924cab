//! What a shape of records costs: sweeps of the same table, in turn, one per shape, by their processor time.
//!
//! The whole sweep is measured and not the conversion alone. To look at a row at all costs several times what it costs to
//! pass it on untouched, and a ratio of the two would say nothing about what anybody pays.

use tablesweep_testbed::table_api::Generate;

use super::{Bed, say};
use crate::args::Options;
use crate::failed::Failed;
use crate::figure::{Bar, Figure, median};
use crate::registry::Registry;

const TABLE: &str = "bench_shapes";

/// A shape with the keys that choose it. The first is what the others are compared with.
struct Shape {
    name: &'static str,
    figure: &'static str,
    bar: Option<Bar>,
    keys: &'static [(&'static str, &'static str)],
}

const JSON: (&str, &str) = ("value.converter", "org.apache.kafka.connect.json.JsonConverter");

const SHAPES: &[Shape] = &[
    Shape { name: "schemaless", figure: "", bar: None, keys: &[] },
    Shape {
        name: "strings",
        figure: "strings to schemaless, processor time",
        bar: Some(Bar::AtMost(3.0)),
        keys: &[("snow.source.schema.mode", "strings"), JSON, ("value.converter.schemas.enable", "false")],
    },
    Shape {
        name: "strings-with-schema",
        figure: "strings with schema beside them to schemaless",
        bar: Some(Bar::AtMost(3.0)),
        keys: &[("snow.source.schema.mode", "strings"), JSON],
    },
    Shape {
        name: "typed",
        figure: "typed to schemaless, processor time",
        bar: None,
        keys: &[
            ("snow.source.schema.mode", "typed"),
            ("snow.source.schema.evolution", "backward"),
            (
                "snow.source.typed.fields",
                "sys_id:string,sys_updated_on:timestamp,sys_created_on:timestamp,sys_mod_count:int32,priority:int8,active:boolean",
            ),
            JSON,
            ("value.converter.schemas.enable", "false"),
        ],
    },
    // The registry is told where it is once it is there.
    Shape {
        name: "avro",
        figure: "Avro to schemaless, processor time",
        bar: Some(Bar::AtMost(5.0)),
        keys: &[("snow.source.schema.mode", "strings"), ("value.converter", "avro")],
    },
];

const REGISTRY_URL: &str = "value.converter.schema.registry.url";

fn topic(shape: &Shape, round: u32) -> String {
    format!("shape-{}-{round}", shape.name)
}

/// The topics, each written once.
pub fn topics(options: &Options) -> impl Iterator<Item = String> {
    (0..options.rounds).flat_map(|round| SHAPES.iter().map(move |shape| topic(shape, round)))
}

/// Sweeps the table in every shape, as often as there are rounds.
pub async fn measure(bed: &Bed<'_>) -> Result<Vec<Figure>, Failed> {
    let options = bed.options;
    let rows = options.shape_rows;
    say(&format!("making {rows} rows of {} bytes, and sweeping them in {} shapes", options.row_bytes, SHAPES.len()));
    let start = Some("2026-02-01 00:00:00".to_owned());
    bed.instance.generate(Generate { bytes_per_row: options.row_bytes, per_second: 25, start, ..Generate::rows(TABLE, rows) }).await?;
    let registry = Registry::start().await?;
    let mut spent = vec![Vec::new(); SHAPES.len()];
    for round in 0..options.rounds {
        for (shape, spent) in SHAPES.iter().zip(&mut spent) {
            let topic = topic(shape, round);
            let mut keys: Vec<(&str, &str)> = shape.keys.to_vec();
            if keys.contains(&("value.converter", "avro")) {
                keys.push((REGISTRY_URL, registry.url()));
            }
            let done = bed.sweep_with(TABLE, &topic, &bed.store(&topic).await?, &keys).await?;
            bed.check_count(&topic, rows).await?;
            spent.push(done.usage.cpu_seconds);
        }
    }
    let medians: Vec<f64> = spent.into_iter().map(median).collect();
    let ratio = |(shape, spent): (&Shape, &f64)| {
        let figure = Figure::of(shape.figure, spent / medians[0], "");
        shape.bar.map_or(figure.clone(), |bar| figure.bar(bar))
    };
    Ok(SHAPES.iter().zip(&medians).skip(1).map(ratio).collect())
}
