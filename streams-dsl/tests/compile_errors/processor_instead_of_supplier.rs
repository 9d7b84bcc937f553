use streams_dsl::{BoxError, Processor, ProcessorContext, Record, StreamsBuilder};

struct Twice;

impl Processor<String, i64, String, i64> for Twice {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        cx.forward(record)?;
        Ok(cx.forward(record)?)
    }
}

fn main() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in").process(Twice).to("out");
}
