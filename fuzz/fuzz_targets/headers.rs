#![no_main]
streams_fuzz::decoder!("headers");
