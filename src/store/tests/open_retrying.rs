//! Test of [`Snapshot::open_retrying`], which waits a short time if the last record of a log is incomplete. In one case the
//! record is completed during this time, in the other case it stays incomplete.

use std::io::Write;

use crate::{Snapshot, Store, StoreOptions};

#[test]
fn a_log_that_is_being_written_becomes_whole_and_a_torn_one_stays_torn() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("s"), folder.path().join("copy"));
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    (0..10_u64).for_each(|i| store.insert(i << 32, i).unwrap());
    std::fs::create_dir(&copy).unwrap();
    for entry in path.read_dir().unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    drop(store);
    let log = copy.join(Snapshot::<u64>::open(&copy).unwrap().logs().last().unwrap().file_name());
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, &whole[..whole.len() - 3]).unwrap();
    let torn = |store: Snapshot<u64>| store.logs().iter().any(|log| log.torn_bytes > 0);
    assert!(torn(Snapshot::open(&copy).unwrap()) && torn(Snapshot::open_retrying(&copy).unwrap()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let mut log = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
            log.write_all(&whole[whole.len() - 3..]).unwrap();
        });
        let store = Snapshot::<u64>::open_retrying(&copy).unwrap();
        // On a busy machine, the retries may end before the log is complete.
        assert_eq!(store.len(), if torn(store.clone()) { 9 } else { 10 });
    });
    let store = Snapshot::<u64>::open_retrying(&copy).unwrap();
    assert_eq!((store.len(), torn(store.clone())), (10, false));
}
