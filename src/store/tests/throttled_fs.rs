//! Tests of [`ThrottledFs`], the file system with a limited write rate for background merges.

use std::io::Write;
use std::time::{Duration, Instant};

use super::super::throttled_fs::ThrottledFs;
use super::*;
use crate::fs::WriteFile;

fn file(store: &ManualStore) -> Box<dyn WriteFile> {
    ThrottledFs::new(store.shared.clone()).create(&store.file("000099.ids.tmp")).unwrap()
}

#[test]
fn it_writes_what_it_is_given_step_by_step() {
    let store = ManualStore::new(small());
    let (mut file, bytes) = (file(&store), vec![7; (1 << 18) + 5]);
    assert_eq!(file.write(&bytes).unwrap(), 1 << 18, "then it looks at what has changed");
    assert_eq!(file.write(&bytes[1 << 18..]).unwrap(), 5);
    file.sync().unwrap();
    assert!(std::fs::read(store.file("000099.ids.tmp")).unwrap() == bytes);
}

#[test]
fn a_store_that_is_being_closed_ends_a_write() {
    let store = ManualStore::new(StoreOptions { compaction_rate: Some(1), ..small() });
    let mut file = file(&store);
    file.write_all(&[0; 100_000]).unwrap();
    // At 1 byte a second, the next write is due in a day.
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| file.write_all(b"y"));
        lock(&store.shared.background).is_closing = true;
        store.shared.notify();
        let error = writing.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the store is being closed");
    });
}

#[test]
fn it_writes_no_faster_than_it_may() {
    let store = ManualStore::new(StoreOptions { compaction_rate: Some(1 << 20), ..small() });
    let (start, mut file) = (Instant::now(), file(&store));
    // Each write waits until the earlier ones are paid for: 2^15 bytes take 1/32 of a second.
    (0..4).for_each(|_| file.write_all(&[0; 1 << 15]).unwrap());
    assert!(start.elapsed() >= Duration::from_secs(3) / 32);
}
