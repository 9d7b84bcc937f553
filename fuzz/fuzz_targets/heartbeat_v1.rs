#![no_main]
streams_fuzz::decoder!("heartbeat_v1");
