use streams_dsl::{DefaultSerde, Json};

struct Price;

impl DefaultSerde for Price {
    type Serde = Json<Self>;
}

fn main() {}
