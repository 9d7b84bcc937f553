//! How a step is configured: plain builders. Required things are arguments of the step itself.

mod common;
mod connect;
mod consumed;
mod grouped;
mod joined;
mod materialized;
mod produced;
mod repartitioned;
mod stream_joined;
mod suppressed;
mod table_joined;

pub(crate) use common::{StoreSettings, store_settings};
pub use connect::Connect;
pub use consumed::Consumed;
pub use grouped::Grouped;
pub use joined::Joined;
pub use materialized::Materialized;
pub use produced::Produced;
pub use repartitioned::Repartitioned;
pub use stream_joined::StreamJoined;
pub use suppressed::Suppressed;
pub(crate) use suppressed::{Until, WhenFull};
pub(crate) use table_joined::KeyPartitioner;
pub use table_joined::TableJoined;
