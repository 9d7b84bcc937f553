use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("balances")
        .group_by_key()
        .reduce(|_account, new, sum| Some(sum + new).filter(|sum| *sum != 0), "balance");
}
