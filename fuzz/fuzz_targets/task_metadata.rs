#![no_main]
streams_fuzz::decoder!("task_metadata");
