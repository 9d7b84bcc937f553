#![no_main]
streams_fuzz::decoder!("expiring_row");
