#![no_main]
streams_fuzz::decoder!("subscription_row");
