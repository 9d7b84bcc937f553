#![no_main]
streams_fuzz::decoder!("version_row");
