#![no_main]
streams_fuzz::decoder!("session_with_headers");
