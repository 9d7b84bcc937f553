use streams_dsl::StreamsBuilder;

fn main() {
    let builder = StreamsBuilder::new();
    let names = builder.stream::<String, String>("names");
    names.map_values(|_id, name| name.trim()).for_each(|_id, name| println!("{name}"));
}
