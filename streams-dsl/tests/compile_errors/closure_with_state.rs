use streams_dsl::StreamsBuilder;

fn main() {
    let mut sum = 0;
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").map_values(move |_key, value| {
        sum += value;
        sum
    });
}
