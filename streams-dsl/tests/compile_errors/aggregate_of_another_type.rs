use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("visits")
        .group_by_key()
        .aggregate(|| 0_i64, |_page, visits, sum| format!("{sum}, {visits}"), "sums");
}
