use streams_dsl::{BoxError, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, StreamsBuilder};

struct Length;

impl FixedKeyProcessor<String, String, i64> for Length {
    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, i64>,
        record: FixedKeyRecord<'_, String, String>,
    ) -> Result<(), BoxError> {
        Ok(cx.forward(record.with_value(&(record.value().len() as i64)))?)
    }
}

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, Vec<u8>>("in").process_values(|| Length).to("out");
}
