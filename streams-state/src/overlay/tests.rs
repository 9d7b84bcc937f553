#![allow(clippy::unwrap_used, missing_docs)]

use super::*;
use crate::conformance;
use crate::memory::MemoryStore;
use crate::store::KeyValueStoreExt;
use crate::window::{WindowLayout, Windowed};

fn overlay() -> Overlay<MemoryStore> {
    Overlay::new(MemoryStore::new())
}

/// An overlay with rows already committed below it and others frozen, all of them deleted again above.
fn used_overlay() -> Overlay<MemoryStore> {
    let mut store = overlay();
    for key in [&b""[..], b"\0", b"\xff\xff", b"\x01\x7f"] {
        store.put(key, Some(b"old")).unwrap();
    }
    store.freeze().unwrap();
    store.apply().unwrap();
    store.put(b"\x01", Some(b"frozen")).unwrap();
    store.freeze().unwrap();
    for key in [&b""[..], b"\0", b"\xff\xff", b"\x01\x7f", b"\x01"] {
        store.put(key, None).unwrap();
    }
    store
}

#[test]
fn an_overlay_conforms() {
    conformance::key_value_store(256, overlay).unwrap();
    conformance::key_value_store(256, used_overlay).unwrap();
}

#[test]
fn windows_over_an_overlay_conform() {
    let layout = WindowLayout {
        segment_interval_ms: 10,
        retain_duplicates: true,
    };
    conformance::window_store(256, true, || Windowed::new(overlay(), layout)).unwrap();
}

#[test]
fn an_iterator_seals_the_layer_and_is_merged_away_when_it_is_gone() {
    let mut store = overlay();
    store.put(b"a", Some(b"1")).unwrap();
    let rows = store.all(Direction::Forward).unwrap();
    store.put(b"a", Some(b"2")).unwrap();
    store.put(b"b", Some(b"2")).unwrap();
    assert_eq!(store.rows(), 3, "the sealed row and two above it");
    assert_eq!(
        rows.map(Result::unwrap).collect::<Vec<_>>(),
        [(b"a"[..].into(), b"1"[..].into())]
    );
    store.all(Direction::Forward).unwrap();
    assert_eq!(store.rows(), 2);
    assert_eq!(store.get_vec(b"a").unwrap(), Some(b"2".to_vec()));
}

#[test]
fn rule_1_10_a_failed_apply_keeps_the_frozen_epoch() {
    #[derive(Debug)]
    struct Failing(bool);
    impl CommittedStore for Failing {
        fn get(&self, _: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
            read(None);
            Ok(())
        }
        fn cursor(&self, range: &KeyRange, direction: Direction) -> Result<Box<dyn Cursor>, StateError> {
            MemoryStore::new().cursor(range, direction)
        }
        fn write(&mut self, _: &mut dyn FnMut(&mut dyn FnMut(Change<'_>))) -> Result<(), StateError> {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            if self.0 {
                Err(StateError::io("write", std::path::Path::new("x"), full))
            } else {
                Ok(())
            }
        }
    }
    let mut store = Overlay::new(Failing(true));
    store.put(b"a", Some(b"1")).unwrap();
    store.freeze().unwrap();
    assert!(store.apply().unwrap_err().is_disk_full());
    assert!(store.has_frozen());
    assert_eq!(store.get_vec(b"a").unwrap(), Some(b"1".to_vec()));
    store.base.0 = false;
    store.apply().unwrap();
    assert!(!store.has_frozen());
}

#[test]
fn overwriting_with_the_same_length_takes_no_more_memory() {
    let mut store = overlay();
    store.put(b"key", Some(&[0; 100])).unwrap();
    let bytes = store.bytes();
    for n in 0..10_000_u32 {
        store.put(b"key", Some(&[n as u8; 100])).unwrap();
        store.put(b"key", None).unwrap();
    }
    assert_eq!(store.bytes(), bytes);
}
