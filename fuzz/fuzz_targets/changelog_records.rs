#![no_main]
streams_fuzz::decoder!("changelog_records");
