#![no_main]
streams_fuzz::decoder!("restored_timed_rows");
