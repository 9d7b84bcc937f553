#![no_main]
streams_fuzz::decoder!("timestamped_value");
