#![no_main]
streams_fuzz::decoder!("value_with_headers");
