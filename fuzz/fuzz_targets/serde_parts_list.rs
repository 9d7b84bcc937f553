#![no_main]
streams_fuzz::decoder!("serde_parts_list");
