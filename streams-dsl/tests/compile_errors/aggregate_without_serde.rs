use streams_dsl::StreamsBuilder;

#[derive(Default)]
struct Bill;

fn main() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("usage")
        .group_by_key()
        .aggregate(Bill::default, |_key, _bytes, bill| bill, "bills");
}
