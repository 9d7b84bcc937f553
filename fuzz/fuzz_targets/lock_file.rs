#![no_main]
streams_fuzz::decoder!("lock_file");
