use serde::{Deserialize, Serialize};
use streams_dsl::{DefaultSerde, Json, StreamsBuilder};

#[derive(Serialize, Deserialize)]
struct Price {
    cents: i64,
}

impl DefaultSerde for Price {
    type Serde = Json<Self>;
}

fn main() {
    let builder = StreamsBuilder::new();
    builder.table::<String, Price>("prices");
}
