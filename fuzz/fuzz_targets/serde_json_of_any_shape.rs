#![no_main]
streams_fuzz::decoder!("serde_json_of_any_shape");
