#![no_main]
streams_fuzz::decoder!("offset_commit_v9");
