//! Keys that may be null, by type.

use streams_dsl::prelude::*;

fn described(build: impl FnOnce(KStream<Option<String>, i64>) -> KStream<String, i64>) -> String {
    let builder = StreamsBuilder::new();
    let keyed = build(builder.stream::<Option<String>, i64>("in"));
    keyed.group_by_key().count("counts").to_stream().to("out");
    builder.build().unwrap().describe()
}

#[test]
fn dropping_null_keys_moves_no_record_and_replacing_them_does() {
    let dropped = described(|stream| stream.drop_null_keys().named("with-key"));
    assert!(
        !dropped.contains("repartition") && dropped.contains("Processor: with-key"),
        "{dropped}"
    );
    let replaced = described(|stream| stream.replace_null_keys(|_| "nobody".to_owned()));
    assert!(replaced.contains("counts-repartition"), "{replaced}");
}

#[test]
fn keys_that_were_changed_before_stay_changed() {
    let builder = StreamsBuilder::new();
    let stream = builder
        .stream::<String, i64>("in")
        .select_key(|key, value| (*value > 0).then(|| key.clone()));
    stream
        .drop_null_keys()
        .group_by_key()
        .count("counts")
        .to_stream()
        .to("out");
    let described = builder.build().unwrap().describe();
    assert!(described.contains("counts-repartition"), "{described}");
}
