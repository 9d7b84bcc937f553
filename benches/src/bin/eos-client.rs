//! `eos-client`: Kafka's own exactly-once system test against this library; see `benches::eos`.

fn main() -> anyhow::Result<()> {
    benches::eos::client()
}
