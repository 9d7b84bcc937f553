#![no_main]
streams_fuzz::decoder!("window_key");
