use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    let prices = builder.table::<String, i64>("prices");
    builder.stream::<String, i64>("orders").join_global(&prices, |item, _count| item.clone(), |_item, count, price| count * price);
}
