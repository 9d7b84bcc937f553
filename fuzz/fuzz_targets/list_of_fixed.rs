#![no_main]
streams_fuzz::decoder!("list_of_fixed");
