#![no_main]
streams_fuzz::decoder!("identity_file");
