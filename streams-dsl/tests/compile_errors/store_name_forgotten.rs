use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("visits").group_by_key().count();
}
