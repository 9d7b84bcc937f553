use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    let prices = builder.table::<i64, i64>("prices");
    builder.stream::<String, i64>("orders").join_table(&prices, |_item, count, price| count * price);
}
