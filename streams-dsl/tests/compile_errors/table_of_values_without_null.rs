use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("prices").to_table("latest-prices");
}
