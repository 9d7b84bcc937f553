use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").filter(|bytes: &i64, key: &String| *bytes > 0 && !key.is_empty());
}
