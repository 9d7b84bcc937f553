#![no_main]
streams_fuzz::decoder!("record_context");
