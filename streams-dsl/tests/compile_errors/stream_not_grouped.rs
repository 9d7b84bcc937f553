use streams_dsl::{HOUR, StreamsBuilder, TimeWindows};

fn main() {
    let builder = StreamsBuilder::new();
    let visits = builder.stream::<String, i64>("visits");
    visits.count("visits-by-page");
    visits.windowed_by(TimeWindows::of(HOUR)).count("visits-by-hour");
}
