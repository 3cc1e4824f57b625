//! Tests of the simulated disk itself.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simstore::fs::Fs;

use crate::support::disk::{
    Failure, Fault, OperationFilter, OperationKind, SECTOR_BYTES, SimulatedDisk, SurvivalChoice,
};

const FILE: &str = "folder/file";

fn write(disk: &SimulatedDisk, path: &str, bytes: &[u8], sync: bool) {
    let mut file = disk.create(Path::new(path)).unwrap();
    file.write_all(bytes).unwrap();
    if sync {
        file.sync().unwrap();
    }
}

/// Returns a disk with a durable folder.
fn disk_with_folder() -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    disk.create_dir(Path::new("folder")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    disk
}

/// Simulates power losses after the operations so far, and returns the contents of a file after each: first if no
/// unsynced data survives, then if all of it survives, then for 1000 random choices. A missing file is `None`.
fn contents(disk: &SimulatedDisk, path: &str) -> Vec<Option<Vec<u8>>> {
    let done = disk.operations();
    let random = (0..1000).map(|seed| SurvivalChoice::seeded(seed, done));
    let choices = [SurvivalChoice::Nothing, SurvivalChoice::Everything].into_iter().chain(random);
    choices.map(|mut choice| disk.crash(done, &mut choice).content(Path::new(path))).collect()
}

#[test]
fn a_name_that_was_not_synced_may_vanish() {
    let disk = disk_with_folder();
    write(&disk, FILE, b"synced", true);
    let found = contents(&disk, FILE);
    assert_eq!((&found[0], &found[1]), (&None, &Some(b"synced".to_vec())));
    assert!(found[2..].contains(&None) && found[2..].contains(&found[1]));
    disk.sync_dir(Path::new("folder")).unwrap();
    assert!(contents(&disk, FILE).iter().all(|content| content.as_deref() == Some(b"synced")));
}

#[test]
fn a_folder_that_was_not_synced_takes_its_files_with_it() {
    let disk = SimulatedDisk::default();
    disk.create_dir(Path::new("folder")).unwrap();
    write(&disk, FILE, b"synced", true);
    disk.sync_dir(Path::new("folder")).unwrap();
    let found = contents(&disk, FILE);
    assert!(found[0].is_none() && found[2..].contains(&None) && found[2..].contains(&found[1]));
    disk.sync_dir(Path::new(".")).unwrap();
    assert!(contents(&disk, FILE).iter().all(|content| content.as_deref() == Some(b"synced")));
}

#[test]
fn renames_and_removals_may_be_undone() {
    let disk = disk_with_folder();
    write(&disk, FILE, b"old", true);
    disk.sync_dir(Path::new("folder")).unwrap();
    write(&disk, "folder/new", b"new", true);
    disk.rename(Path::new("folder/new"), Path::new(FILE)).unwrap();
    let found = contents(&disk, FILE);
    assert_eq!((found[0].as_deref(), found[1].as_deref()), (Some(&b"old"[..]), Some(&b"new"[..])));
    assert!(found[2..].contains(&found[0]) && found[2..].contains(&found[1]));
    assert!(found.iter().all(|content| content == &found[0] || content == &found[1]));
    disk.sync_dir(Path::new("folder")).unwrap();
    disk.remove(Path::new(FILE)).unwrap();
    let found = contents(&disk, FILE);
    assert_eq!((found[0].as_deref(), &found[1]), (Some(&b"new"[..]), &None));
    disk.sync_dir(Path::new("folder")).unwrap();
    assert!(contents(&disk, FILE).iter().all(Option::is_none));
}

/// A file with names in two folders is one file: a write by one name is seen by the other one. Each name has to be synced
/// in its folder.
#[test]
fn a_link_is_a_second_name_of_a_file() {
    let disk = disk_with_folder();
    let (file, second) = (Path::new(FILE), Path::new("second"));
    let mut open = disk.create(file).unwrap();
    disk.hard_link(file, second).unwrap();
    open.write_all(b"both").unwrap();
    assert_eq!(disk.content(second).as_deref(), Some(&b"both"[..]));
    disk.sync_file(second).unwrap();
    disk.sync_dir(Path::new("folder")).unwrap();
    let found = contents(&disk, "second");
    assert!(found[2..].contains(&None) && found[2..].contains(&Some(b"both".to_vec())));
    assert!(contents(&disk, FILE).iter().all(|content| content.as_deref() == Some(b"both")));
    disk.sync_dir(Path::new("")).unwrap();
    let image = disk.crash(disk.operations(), &mut SurvivalChoice::Nothing);
    image.remove(file).unwrap();
    assert_eq!((image.content(file), image.content(second)), (None, Some(b"both".to_vec())));
    assert_eq!(disk.hard_link(file, second).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(
        disk.hard_link(Path::new("none"), Path::new("folder/other")).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

/// A file is created and renamed twice, and then the power fails. Each of these three changes may be lost. So
/// afterwards, the file has one of its three names, or does not exist.
#[test]
fn a_rename_may_survive_the_loss_of_what_made_its_source() {
    let disk = disk_with_folder();
    write(&disk, "folder/a", b"1", true);
    disk.rename(Path::new("folder/a"), Path::new("folder/b")).unwrap();
    disk.rename(Path::new("folder/b"), Path::new("folder/c")).unwrap();
    let done = disk.operations();
    let mut seen = [0; 4];
    for seed in 0..1000 {
        let image = disk.crash(done, &mut SurvivalChoice::seeded(seed, done));
        let names = image.list(Path::new("folder")).unwrap();
        assert!(names.len() <= 1, "{names:?}");
        seen[names.first().map_or(3, |name| ["a", "b", "c"].iter().position(|one| one == name).unwrap())] +=
            1;
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn sectors_that_were_not_synced_are_old_new_or_garbage() {
    let disk = disk_with_folder();
    let old = vec![b'o'; 700];
    let new = vec![b'n'; 3 * SECTOR_BYTES];
    let mut file = disk.create(Path::new(FILE)).unwrap();
    file.write_all(&old).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("folder")).unwrap();
    file.write_all(&new).unwrap();
    let (mut zeros, mut news, mut garbage, mut cut, mut longer) = (0, 0, 0, 0, 0);
    for content in contents(&disk, FILE).into_iter().map(Option::unwrap) {
        assert_eq!(content[..old.len()], old, "what was synced survives");
        let whole = old.len() + new.len();
        cut += usize::from(content.len() < whole);
        longer += usize::from(content.len() > whole);
        // A sector without synced data.
        let Some(sector) = content.get(3 * SECTOR_BYTES..4 * SECTOR_BYTES) else { continue };
        zeros += usize::from(sector.iter().all(|&byte| byte == 0));
        news += usize::from(sector.iter().all(|&byte| byte == b'n'));
        garbage += usize::from(sector.iter().any(|&byte| byte != 0 && byte != b'n'));
    }
    for count in [zeros, news, garbage, cut, longer] {
        assert!(count > 20, "{zeros} {news} {garbage} {cut} {longer}");
    }
    file.sync().unwrap();
    let whole = [old, new].concat();
    assert!(contents(&disk, FILE).iter().all(|content| content.as_ref() == Some(&whole)));
}

/// A file is created at the path of an existing file, and replaces it. After a power loss, the path leads to the whole
/// old file, to a file without any bytes of the old file, or to no file.
#[test]
fn a_file_that_takes_the_place_of_another_has_nothing_of_it() {
    let disk = disk_with_folder();
    write(&disk, FILE, &[b'o'; 600], true);
    disk.sync_dir(Path::new("folder")).unwrap();
    write(&disk, FILE, &[b'n'; 600], false);
    let found = contents(&disk, FILE);
    assert_eq!(found[0].as_deref(), Some(&[b'o'; 600][..]));
    assert_eq!(found[1].as_deref(), Some(&[b'n'; 600][..]));
    assert!(found.contains(&None) && found[2..].contains(&found[0]));
    // Random garbage may contain the byte, but not 16 times in a row.
    let has_old = |content: &&Vec<u8>| content.windows(16).any(|some| some == [b'o'; 16]);
    assert!(found.iter().flatten().filter(has_old).all(|content| *content == [b'o'; 600]));
}

#[test]
fn an_image_is_the_same_again_and_can_crash_itself() {
    let disk = disk_with_folder();
    write(&disk, FILE, &[b'n'; 3000], false);
    let done = disk.operations();
    let content = |disk: &SimulatedDisk| (disk.paths(), disk.content(Path::new(FILE)));
    for seed in 0..100 {
        let image = || disk.crash(done, &mut SurvivalChoice::seeded(seed, done));
        assert_eq!(content(&image()), content(&image()));
        let image = image();
        let before = content(&image);
        write(&image, "folder/other", b"more", false);
        assert_eq!(content(&image.crash(0, &mut SurvivalChoice::Nothing)), before);
        assert_eq!(content(&image.crash(image.operations(), &mut SurvivalChoice::Nothing)), before);
    }
}

#[test]
fn planned_operations_fail() {
    let disk = disk_with_folder();
    let plan = |counted, lasting, failure| {
        disk.clear_faults();
        disk.plan(Fault { counted, n: disk.count(counted), lasting, failure });
    };
    let raw = |result: io::Result<()>| result.err().and_then(|error| error.raw_os_error());
    plan(OperationFilter::Kind(OperationKind::Create), false, Failure::NoSpace);
    assert_eq!(raw(disk.create(Path::new(FILE)).map(|_| ())), Some(28));
    let mut file = disk.create(Path::new(FILE)).unwrap();
    plan(OperationFilter::Changes, false, Failure::Short(3));
    assert_eq!(file.write(b"abcdef").unwrap(), 3);
    assert_eq!(file.write(b"def").unwrap(), 3);
    plan(OperationFilter::Kind(OperationKind::Write), true, Failure::Interrupted);
    assert_eq!(file.write(b"ghi").unwrap_err().kind(), io::ErrorKind::Interrupted);
    assert_eq!(file.write(b"ghi").unwrap(), 3);
    assert_eq!(disk.content(Path::new(FILE)).unwrap(), b"abcdefghi");
    for (kind, failure) in [
        (OperationKind::Map, Failure::IoError),
        (OperationKind::Open, Failure::IoError),
        (OperationKind::List, Failure::NoSpace),
    ] {
        plan(OperationFilter::Kind(kind), true, failure);
        for _ in 0..2 {
            let failed = [
                disk.map(Path::new(FILE)).is_err(),
                disk.open(Path::new(FILE)).is_err(),
                disk.list(Path::new("folder")).is_err(),
            ];
            assert_eq!(
                failed,
                [kind == OperationKind::Map, kind == OperationKind::Open, kind == OperationKind::List]
            );
        }
    }
    plan(OperationFilter::All, false, Failure::IoError);
    assert_eq!(raw(disk.rename(Path::new(FILE), Path::new("folder/b"))), Some(5));
    plan(OperationFilter::All, false, Failure::DoneButIoError);
    assert_eq!(raw(disk.rename(Path::new(FILE), Path::new("folder/b"))), Some(5));
    assert!(disk.content(Path::new("folder/b")).is_some());
    assert!(disk.listing().contains("#4 write folder/file +3 at 0\n"), "{}", disk.listing());
}

/// A failed sync of a file may lose unsynced data. A successful sync later does not restore this data.
#[test]
fn a_failed_sync_loses_pages() {
    let disk = disk_with_folder();
    let mut file = disk.create(Path::new(FILE)).unwrap();
    file.write_all(&[b'a'; 700]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("folder")).unwrap();
    file.write_all(&[b'b'; 20 * SECTOR_BYTES]).unwrap();
    let n = disk.count(OperationFilter::Kind(OperationKind::SyncFile));
    disk.plan(Fault {
        counted: OperationFilter::Kind(OperationKind::SyncFile),
        n,
        lasting: false,
        failure: Failure::LosePages { percent: 50, seed: 1 },
    });
    assert!(file.sync().is_err());
    file.sync().unwrap();
    let left = disk.content(Path::new(FILE)).unwrap();
    assert_eq!((left.len(), &left[..700]), (700 + 20 * SECTOR_BYTES, &[b'a'; 700][..]));
    assert!(left[700..].contains(&0) && left[700..].contains(&b'b'));
    assert!(contents(&disk, FILE).iter().all(|content| content.as_ref() == Some(&left)));
}

#[test]
fn locks_are_exclusive_until_dropped_or_the_power_fails() {
    let disk = disk_with_folder();
    let path = Path::new("folder/LOCK");
    let lock = disk.lock(path).unwrap();
    assert!(lock.is_some() && disk.clone().lock(path).unwrap().is_none());
    let image = disk.crash(disk.operations(), &mut SurvivalChoice::Everything);
    assert!(image.lock(path).unwrap().is_some());
    drop(lock);
    assert!(disk.lock(path).unwrap().is_some());
}

#[test]
fn a_hook_may_use_the_disk() {
    let disk = disk_with_folder();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let first = disk.operations();
    disk.set_hook(move |disk, kind| {
        let before = counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(disk.operations(), first + 2 * before);
        assert_eq!(kind, [OperationKind::Create, OperationKind::Write, OperationKind::SyncFile][before]);
        disk.sync_dir(Path::new("folder")).unwrap();
    });
    write(&disk, FILE, b"abc", true);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn threads_share_a_disk() {
    let disk = disk_with_folder();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let disk = disk.clone();
            scope.spawn(move || {
                (0..100).for_each(|_| write(&disk, &format!("folder/{thread}"), b"abc", true));
            });
        }
    });
    assert_eq!(disk.operations(), 2 + 4 * 300);
    let last = disk.crash(disk.operations(), &mut SurvivalChoice::Everything);
    assert_eq!(last.paths(), disk.paths());
}

#[test]
fn a_sync_that_is_ignored_makes_nothing_durable() {
    let disk = disk_with_folder();
    disk.plan(Fault {
        counted: OperationFilter::Kind(OperationKind::SyncDir),
        n: 1,
        lasting: true,
        failure: Failure::Ignored,
    });
    write(&disk, FILE, b"abc", true);
    disk.sync_dir(Path::new("folder")).unwrap();
    assert_eq!(contents(&disk, FILE)[0], None);
    assert!(disk.listing().ends_with("sync folder folder, ignored\n"), "{}", disk.listing());
}
