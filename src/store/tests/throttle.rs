//! The disk of a merge in the background.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::throttle::Throttle;
use super::*;
use crate::fs::WriteFile;

fn file(store: &Idle) -> Box<dyn WriteFile> {
    Throttle::new(store.shared.clone()).create(&store.file("000099.ids.tmp")).unwrap()
}

fn set(store: &Idle, paused: bool, closing: bool) {
    let mut work = lock(&store.shared.work);
    (work.paused, work.closing) = (paused, closing);
    drop(work);
    store.shared.tell();
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
fn a_paused_write_goes_on_when_it_may() {
    let store = Idle::new(small());
    let mut file = file(&store);
    set(&store, true, false);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let written = file.write_all(b"x");
            done.store(true, Ordering::SeqCst);
            written
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!done.load(Ordering::SeqCst));
        set(&store, false, false);
        writing.join().unwrap().unwrap();
    });
}

#[test]
fn a_store_that_is_being_closed_ends_a_write() {
    let store = Idle::new(StoreOptions { compaction_rate: Some(1), ..small() });
    let mut file = file(&store);
    file.write_all(&[0; 100_000]).unwrap();
    // One that is paused, and one that waits for its turn, which comes in a day.
    for paused in [true, false] {
        set(&store, paused, false);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| file.write_all(b"y"));
            set(&store, paused, true);
            let error = writing.join().unwrap().unwrap_err();
            assert_eq!(error.to_string(), "the store is being closed");
        });
    }
}

#[test]
fn it_writes_no_faster_than_it_may() {
    let store = Idle::new(StoreOptions { compaction_rate: Some(1 << 20), ..small() });
    let (start, mut file) = (Instant::now(), file(&store));
    // Each waits for those before it: 2^15 bytes take a 32nd of a second.
    (0..4).for_each(|_| file.write_all(&[0; 1 << 15]).unwrap());
    assert!(start.elapsed() >= Duration::from_secs(3) / 32);
}
