//! `relational-client`: Kafka's own relational smoke test against this library; see `benches::relational`.

fn main() -> anyhow::Result<()> {
    benches::relational::client()
}
