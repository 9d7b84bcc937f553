//! The processor of cases.

use std::time::Duration;

use streams_dsl::{BoxError, Processor, ProcessorContext, PunctuationType, PunctuatorId, Record};

use super::functions::Text;

/// `punct-stream:N`, `punct-wall:N`, `meta`, `addheader`, `streamtime`, `ts-minus-100`, `swallow`; anything else forwards.
pub(crate) struct CaseProcessor(pub(crate) String);

type Context<'a> = ProcessorContext<'a, Text, Text>;

impl Processor<Text, Text, Text, Text> for CaseProcessor {
    fn init(&mut self, cx: &mut Context<'_>) -> Result<(), BoxError> {
        let Some((kind, interval)) = self.0.split_once(':') else {
            return Ok(());
        };
        let kind = match kind {
            "punct-stream" => PunctuationType::StreamTime,
            "punct-wall" => PunctuationType::WallClockTime,
            _ => return Ok(()),
        };
        cx.schedule_every(Duration::from_millis(interval.parse()?), kind);
        Ok(())
    }

    fn process(&mut self, cx: &mut Context<'_>, record: Record<'_, Text, Text>) -> Result<(), BoxError> {
        match self.0.as_str() {
            "swallow" => Ok(()),
            "streamtime" => {
                let time = Some(cx.stream_time_ms().to_string());
                Ok(cx.forward(record.with_value(&time))?)
            }
            // Java's Record refuses it.
            "ts-minus-100" if record.timestamp_ms < 100 => Err("IllegalArgumentException: a negative time".into()),
            "ts-minus-100" => Ok(cx.forward(record.with_timestamp(record.timestamp_ms - 100))?),
            "meta" => {
                let place = cx.record_context();
                let place = Some(format!("{}:{}:{}", place.topic, place.partition, place.offset));
                Ok(cx.forward(record.with_value(&place))?)
            }
            "addheader" => {
                let mut headers = record.headers.clone();
                headers.add("x", record.value.as_deref().map(str::as_bytes));
                Ok(cx.forward(record.with_headers(&headers))?)
            }
            _ => Ok(cx.forward(record)?),
        }
    }

    fn punctuate(&mut self, cx: &mut Context<'_>, _id: PunctuatorId, timestamp_ms: i64) -> Result<(), BoxError> {
        let (key, value) = (Some("punct".to_owned()), Some(timestamp_ms.to_string()));
        Ok(cx.forward(Record::new(&key, &value, timestamp_ms))?)
    }
}
