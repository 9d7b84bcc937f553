#![no_main]
streams_fuzz::decoder!("describe_v0");
