#![no_main]
streams_fuzz::decoder!("session_store_key");
