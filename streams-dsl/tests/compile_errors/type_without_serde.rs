use streams_dsl::StreamsBuilder;

struct Usage;

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, Usage>("usage");
}
