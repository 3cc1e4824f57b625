//! Measures the time and memory of opening a store, and of replaying its log.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use simstore::{Snapshot, Store, StoreOptions};

use crate::{Result, both_codecs, load_store, stored_fingerprint};

/// Returns the resident anonymous memory of this process in MiB; 0 without Linux's `/proc`.
fn anonymous_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Start of the argument `--opened-as-KIND=PATH`, with which this program runs as a child process and opens one store.
/// KIND is `Snapshot` or `Store`.
pub(crate) const CHILD_ARGUMENT: &str = "--opened-as-";

/// Opens a store. Prints the time in milliseconds, and the growth of anonymous memory in MiB. `request` is
/// `Snapshot=PATH` or `Store=PATH`.
pub(crate) fn open_and_report(request: &str) -> Result<()> {
    let (kind, path) = request.split_once('=').ok_or("a path is missing")?;
    let (path, before, start) = (Path::new(path), anonymous_mib(), Instant::now());
    let report = || println!("{} {}", start.elapsed().as_secs_f64() * 1e3, anonymous_mib() - before);
    if kind == "Snapshot" {
        let _snapshot = Snapshot::<u64>::open(path)?;
        report();
    } else {
        let _store = Store::<u64>::open(path, StoreOptions::default())?;
        report();
    }
    Ok(())
}

/// Runs [`open_and_report`] in a child process, which has no memory left over from earlier work. Returns the time in
/// milliseconds and the growth of memory in MiB. `kind` is `Snapshot` or `Store`.
fn open_in_child(kind: &str, path: &Path) -> Result<(f64, f64)> {
    let argument = format!("{CHILD_ARGUMENT}{kind}={}", path.display());
    let output = Command::new(std::env::current_exe()?).arg(argument).stderr(Stdio::inherit()).output()?;
    let line = String::from_utf8(output.stdout)?;
    let (ms, memory) = line.trim().split_once(' ').ok_or("the store could not be opened")?;
    Ok((ms.parse()?, memory.parse()?))
}

/// Measures the time and memory of opening a store of `count` fingerprints, once as a [`Snapshot`] and once as a
/// [`Store`].
pub(crate) fn measure_open(count: u64) -> Result<()> {
    println!("| {count} stored, in the page cache | what is opened | ms | memory besides the map, MiB |");
    println!("|---|---|---|---|");
    for codec in both_codecs() {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store");
        drop(load_store(&path, count, StoreOptions { codec: Some(codec), ..StoreOptions::default() })?);
        for kind in ["Snapshot", "Store"] {
            let (ms, memory) = open_in_child(kind, &path)?;
            println!("| {codec} | {kind} | {ms:.1} | {memory:.1} |");
        }
    }
    Ok(())
}

/// Size of the log to replay, in bytes.
const LOG_BYTES: u64 = 256 << 20;

/// Measures the time and memory of opening a store that has only a log to replay, with one insert in each record of the
/// log.
pub(crate) fn measure_recovery() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store");
    // The memtable is never full, so all inserts stay in one log.
    let options = StoreOptions { memtable: 8 << 30, ..StoreOptions::default() };
    let store = Store::<u64>::open(&path, options)?;
    let log_bytes = || -> Result<u64> {
        let sizes = std::fs::read_dir(&path)?.map(|entry| {
            let entry = entry?;
            let is_log = entry.path().extension().is_some_and(|extension| extension == "log");
            Ok(if is_log { entry.metadata()?.len() } else { 0 })
        });
        sizes.sum()
    };
    let mut count = 0;
    while log_bytes()? < LOG_BYTES {
        for id in count..count + 10_000 {
            store.insert(stored_fingerprint(id), id)?;
        }
        count += 10_000;
    }
    drop(store);
    println!(
        "| a log of {} MiB, {count} single inserts: opened as | s | inserts/s | memory, MiB |",
        LOG_BYTES >> 20
    );
    println!("|---|---|---|---|");
    for kind in ["Snapshot", "Store"] {
        let (ms, memory) = open_in_child(kind, &path)?;
        println!("| {kind} | {:.2} | {:.0} | {memory:.0} |", ms / 1e3, count as f64 / ms * 1e3);
    }
    Ok(())
}
