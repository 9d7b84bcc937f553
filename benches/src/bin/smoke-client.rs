//! `smoke-client`: Kafka's own smoke test against this library; see `benches::smoke`.

fn main() -> anyhow::Result<()> {
    benches::smoke::client()
}
