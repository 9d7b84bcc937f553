use streams_dsl::StreamsBuilder;

fn main() {
    let limits = vec![1, 2];
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").filter(|_key, value| limits.contains(value));
}
