#![no_main]
streams_fuzz::decoder!("serde_event_id");
