use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").filter(|bytes| *bytes > 0);
}
