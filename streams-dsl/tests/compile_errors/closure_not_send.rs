use std::cell::Cell;
use std::rc::Rc;
use streams_dsl::StreamsBuilder;

fn main() {
    let seen = Rc::new(Cell::new(0));
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").for_each(move |_key, _value| seen.set(seen.get() + 1));
}
