#![no_main]
streams_fuzz::decoder!("serde_list_of_long");
