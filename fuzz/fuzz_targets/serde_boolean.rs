#![no_main]
streams_fuzz::decoder!("serde_boolean");
