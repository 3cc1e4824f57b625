//! The disk of a merge in the background.

use std::io::Write;
use std::time::{Duration, Instant};

use super::super::throttle::Throttle;
use super::*;
use crate::fs::WriteFile;

fn file(store: &Idle) -> Box<dyn WriteFile> {
    Throttle::new(store.shared.clone()).create(&store.file("000099.ids.tmp")).unwrap()
}

#[test]
fn it_writes_what_it_is_given_step_by_step() {
    let store = Idle::new(small());
    let (mut file, bytes) = (file(&store), vec![7; (1 << 18) + 5]);
    assert_eq!(file.write(&bytes).unwrap(), 1 << 18, "then it looks at what has changed");
    assert_eq!(file.write(&bytes[1 << 18..]).unwrap(), 5);
    file.sync().unwrap();
    assert!(std::fs::read(store.file("000099.ids.tmp")).unwrap() == bytes);
}

#[test]
fn a_store_that_is_being_closed_ends_a_write() {
    let store = Idle::new(StoreOptions { compaction_rate: Some(1), ..small() });
    let mut file = file(&store);
    file.write_all(&[0; 100_000]).unwrap();
    // It waits for its turn, which comes in a day.
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| file.write_all(b"y"));
        lock(&store.shared.work).closing = true;
        store.shared.tell();
        let error = writing.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the store is being closed");
    });
}

#[test]
fn it_writes_no_faster_than_it_may() {
    let store = Idle::new(StoreOptions { compaction_rate: Some(1 << 20), ..small() });
    let (start, mut file) = (Instant::now(), file(&store));
    // Each waits for those before it: 2^15 bytes take a 32nd of a second.
    (0..4).for_each(|_| file.write_all(&[0; 1 << 15]).unwrap());
    assert!(start.elapsed() >= Duration::from_secs(3) / 32);
}
