#![no_main]
streams_fuzz::decoder!("buffered_value");
