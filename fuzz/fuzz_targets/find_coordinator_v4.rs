#![no_main]
streams_fuzz::decoder!("find_coordinator_v4");
