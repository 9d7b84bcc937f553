#![no_main]
streams_fuzz::decoder!("format_marker");
