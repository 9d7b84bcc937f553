#![no_main]
streams_fuzz::decoder!("packed_headers");
