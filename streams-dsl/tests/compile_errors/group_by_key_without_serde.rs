use streams_dsl::StreamsBuilder;

struct Region(String);

fn main() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("visits")
        .select_key(|page, _visits| Region(page.clone()))
        .group_by_key();
}
