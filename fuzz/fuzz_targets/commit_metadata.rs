#![no_main]
streams_fuzz::decoder!("commit_metadata");
