#![no_main]
streams_fuzz::decoder!("unmatched_list");
