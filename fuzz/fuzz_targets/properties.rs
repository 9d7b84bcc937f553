#![no_main]
streams_fuzz::decoder!("properties");
