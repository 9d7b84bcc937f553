#![no_main]
streams_fuzz::decoder!("serde_time_windowed_of_unknown_size");
