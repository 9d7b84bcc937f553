#![no_main]
streams_fuzz::decoder!("join_side_value");
