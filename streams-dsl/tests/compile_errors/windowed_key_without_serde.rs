use streams_dsl::serdes::{Long, Utf8};
use streams_dsl::{BoxError, Grouped, HOUR, Serde, SerdeError, StreamsBuilder, TimeWindows};

#[derive(Clone)]
struct Tenant(String);

struct TenantSerde;

impl Serde<Tenant> for TenantSerde {
    fn serialize(&self, topic: &str, value: &Tenant, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        Utf8.serialize(topic, &value.0, out)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Tenant, SerdeError> {
        Utf8.deserialize(topic, bytes).map(Tenant)
    }
}

fn main() -> Result<(), BoxError> {
    let builder = StreamsBuilder::new();
    let by_tenant = builder
        .stream::<String, i64>("usage")
        .group_by_with(|name, _bytes| Tenant(name.clone()), Grouped::with(TenantSerde, Long));
    by_tenant.windowed_by(TimeWindows::of(HOUR)).count("counts").to_stream().to("counts-by-hour");
    Ok(())
}
