//! A user's program imports everything and its own crates beside it: no public name of ours may hide one of them (E0659).
#![allow(clippy::unwrap_used, missing_docs)]

mod everything {
    use metrics::counter;
    use serde::{Deserialize, Serialize};
    use streams_dsl::*;
    use tracing::info;

    #[derive(Clone, Serialize, Deserialize)]
    pub(crate) struct Usage {
        bytes: u64,
    }
    impl DefaultSerde for Usage {
        type Serde = Json<Self>;
    }

    pub(crate) fn topology() -> Topology {
        let builder = StreamsBuilder::new();
        let usage = builder.stream::<String, Usage>("usage").peek(|tenant, _| {
            counter!("usage").increment(1);
            info!(tenant, "usage");
        });
        usage
            .map_values(|_, usage| serde_json::to_string(usage).unwrap())
            .to("text");
        builder.build().unwrap()
    }
}

mod prelude {
    use metrics::counter;
    use serde::{Deserialize, Serialize};
    use streams_dsl::prelude::*;

    /// A type of the user's wins over one of the prelude with its name.
    #[derive(Clone, Serialize, Deserialize)]
    pub(crate) struct Window {
        bytes: u64,
    }
    impl DefaultSerde for Window {
        type Serde = Json<Self>;
    }

    pub(crate) fn topology() -> Topology {
        let builder = StreamsBuilder::new();
        let usage = builder
            .stream::<String, Window>("usage")
            .filter(|_, usage| usage.bytes > 0)
            .peek(|_, _| counter!("usage").increment(1));
        usage
            .map_values(|_, usage| serde_json::to_string(usage).unwrap())
            .to("text");
        builder.build().unwrap()
    }
}

#[test]
fn a_program_may_import_everything_beside_its_own_crates() {
    assert!(everything::topology().describe().contains("topics: [usage]"));
    assert!(prelude::topology().describe().contains("topics: [usage]"));
}
