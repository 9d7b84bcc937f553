#![no_main]
streams_fuzz::decoder!("window_store_key");
