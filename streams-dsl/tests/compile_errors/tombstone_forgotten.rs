use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder
        .table::<String, i64>("cents")
        .to_stream()
        .map_values(|_account, cents| cents / 100);
}
