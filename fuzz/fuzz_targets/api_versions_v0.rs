#![no_main]
streams_fuzz::decoder!("api_versions_v0");
