#![no_main]
streams_fuzz::decoder!("table_change");
