#![no_main]
streams_fuzz::decoder!("list_of_variable");
