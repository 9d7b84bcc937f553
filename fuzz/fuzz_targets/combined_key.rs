#![no_main]
streams_fuzz::decoder!("combined_key");
