#![no_main]
streams_fuzz::decoder!("serde_part_of_key");
