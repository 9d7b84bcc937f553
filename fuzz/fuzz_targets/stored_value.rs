#![no_main]
streams_fuzz::decoder!("stored_value");
