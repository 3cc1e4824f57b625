//! What looks torn because it is being written.

use std::io::Write;

use crate::{Snapshot, Store, StoreOptions};

#[test]
fn a_log_that_is_being_written_settles_and_a_torn_one_stays_torn() {
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
    assert!(torn(Snapshot::open(&copy).unwrap()) && torn(Snapshot::open_settled(&copy).unwrap()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let mut log = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
            log.write_all(&whole[whole.len() - 3..]).unwrap();
        });
        let settled = Snapshot::<u64>::open_settled(&copy).unwrap();
        // On a machine that is busy enough it may have given up before the log was whole.
        assert_eq!(settled.len(), if torn(settled.clone()) { 9 } else { 10 });
    });
    let settled = Snapshot::<u64>::open_settled(&copy).unwrap();
    assert_eq!((settled.len(), torn(settled.clone())), (10, false));
}
