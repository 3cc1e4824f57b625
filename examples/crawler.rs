//! The index of a crawler: it keeps a page only if no stored page is near it, while readers query the index.
//!
//! `cargo run --release --example crawler` crawls 200,000 generated pages, and removes the index at the end.
//! `cargo run --release --example crawler -- 50000 /data/index` crawls 50,000 pages and keeps the index in that folder. A
//! second run with this folder stores nothing, because the index already has all pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use simstore::{Durability, Error, Insertion, Snapshot, Store, StoreOptions};

/// Two pages are near if their fingerprints differ in at most this many bits.
const DISTANCE: u32 = 3;
const CRAWLING_THREADS: usize = 4;
/// Each thread makes its pages durable after this many pages.
const PAGES_PER_SYNC: u64 = 10_000;

/// Results of a crawl.
#[derive(Debug, Default)]
pub(crate) struct CrawlReport {
    /// Number of pages that were stored.
    pub(crate) stored: u64,
    /// Number of pages that were near a stored page.
    pub(crate) near: u64,
    /// Number of queries that were answered during the crawl.
    pub(crate) queries: u64,
    /// Number of queries that found a page.
    pub(crate) found: u64,
    /// Number of pages in the backup, which was made during the crawl.
    pub(crate) in_backup: u64,
}

/// Returns a number that looks random, the same one for the same argument (the hash function `SplitMix64`).
fn hash(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Changes up to [`DISTANCE`] bits of a fingerprint. `random` chooses the bits.
fn near(fingerprint: u64, random: u64) -> u64 {
    (0..random % (u64::from(DISTANCE) + 1))
        .fold(fingerprint, |near, i| near ^ 1 << (random >> (8 + 8 * i) & 63))
}

/// Fetches a page, and returns its address and its fingerprint. A real crawler computes the fingerprint from the text. Here
/// each fifth page is near an earlier one.
fn fetch(page: u64) -> (String, u64) {
    let address = format!("https://example.org/{page}");
    if page % 5 < 4 {
        return (address, hash(page));
    }
    let original = hash(page) % (page / 5 + 1) * 5;
    (address, near(hash(original), hash(page)))
}

/// Stores a page if it is new. Returns whether it was stored.
///
/// `commit_if_new` is atomic: it searches and inserts in one step. If two threads insert two near pages at the same time, one
/// of them is stored, and the other thread gets `DuplicateOf` with that page. So the index never has two near pages.
/// `query` followed by `insert` would not ensure this.
fn store_if_new(store: &Store<u64>, page: u64) -> Result<bool, Error> {
    let (address, fingerprint) = fetch(page);
    let mut transaction = store.transaction();
    // The page's number is its id. `commit_if_new` stores the address and the fingerprint, or none of the two.
    transaction.insert_named(fingerprint, page, &address)?;
    match transaction.commit_if_new(Durability::Os)? {
        Insertion::Inserted => Ok(true),
        Insertion::DuplicateOf(_) => Ok(false),
    }
}

/// Takes pages from the list until none is left, and stores the new ones. Returns the numbers of new and of near pages.
///
/// `Durability::Os` hands each write to the operating system: it survives a crash of the crawler, but perhaps not a power
/// loss. `sync` makes all earlier writes durable. A power loss then costs at most the pages since the last sync; the
/// crawler fetches these pages again. `Durability::Sync` instead of `Os` would make each page durable at once, which takes
/// as long as the disk needs for a sync.
fn crawl(store: &Store<u64>, next_page: &AtomicU64, pages: u64) -> Result<(u64, u64), Error> {
    let (mut stored, mut near) = (0, 0);
    loop {
        let page = next_page.fetch_add(1, Ordering::Relaxed);
        if page >= pages {
            store.sync()?;
            return Ok((stored, near));
        }
        match store_if_new(store, page)? {
            true => stored += 1,
            false => near += 1,
        }
        if (stored + near) % PAGES_PER_SYNC == 0 {
            store.sync()?;
        }
    }
}

/// Answers queries until the crawl ends. Returns the numbers of queries and of those that found a page.
///
/// Each round takes a snapshot, which does not change: all its queries see the same pages. Neither readers nor writers wait
/// for the other ones. A reader in another process opens the folder with `Snapshot::open`, and gets newer pages with
/// `refresh`.
fn answer_queries(store: &Store<u64>, is_done: &AtomicBool) -> Result<(u64, u64), Error> {
    let (mut queries, mut found) = (0, 0);
    let mut matches = Vec::new();
    while !is_done.load(Ordering::Relaxed) || queries == 0 {
        let snapshot = store.snapshot();
        let pages = snapshot.highest_id().unwrap_or(0) + 1;
        for _ in 0..1000 {
            let (_, fingerprint) = fetch(hash(queries) % pages);
            // The buffer is used again, so a query allocates nothing.
            snapshot.query_into(fingerprint, DISTANCE, &mut matches)?;
            queries += 1;
            found += u64::from(!matches.is_empty());
        }
    }
    Ok((queries, found))
}

/// Crawls the pages from 0 to `pages` into the index in `folder`, and backs up the index to `backup` meanwhile.
pub(crate) fn run(pages: u64, folder: &Path, backup: &Path) -> Result<CrawlReport, Error> {
    // Creates the index, or opens it. After a crash, this recovers all writes that the log has.
    let options = StoreOptions { distance: Some(DISTANCE), ..StoreOptions::default() };
    let store = Store::<u64>::open(folder, options)?;
    let (next_page, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut report = CrawlReport::default();
    std::thread::scope(|scope| {
        let crawlers: Vec<_> =
            (0..CRAWLING_THREADS).map(|_| scope.spawn(|| crawl(&store, &next_page, pages))).collect();
        let reader = scope.spawn(|| answer_queries(&store, &is_done));
        while next_page.load(Ordering::Relaxed) < pages / 2 && !crawlers.iter().any(|one| one.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A checkpoint is a store of its own, with the pages at this moment. The crawlers continue meanwhile.
        let snapshot = store.snapshot();
        let copied = snapshot.checkpoint(backup).and_then(|()| Snapshot::<u64>::open(backup));
        let crawled: Vec<_> = crawlers.into_iter().map(join).collect();
        is_done.store(true, Ordering::Relaxed);
        let answered = join(reader);
        for crawled in crawled {
            let (stored, near) = crawled?;
            report.stored += stored;
            report.near += near;
        }
        (report.queries, report.found) = answered?;
        report.in_backup = copied?.iter().count() as u64;
        Ok(report)
    })
    // Dropping the store ends its background threads, and syncs the log.
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Ok(pages), true) =
        (arguments.first().map_or(Ok(200_000), |pages| pages.parse()), arguments.len() < 3)
    else {
        eprintln!("usage: crawler [PAGES [FOLDER]]");
        return ExitCode::from(2);
    };
    let temporary = match tempfile::tempdir() {
        Ok(temporary) => temporary,
        Err(error) => {
            eprintln!("crawler: no temporary folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    let folder = arguments.get(1).map_or(temporary.path().join("index"), PathBuf::from);
    match run(pages, &folder, &temporary.path().join("backup")) {
        Ok(report) => {
            println!("{} of {pages} pages stored, {} are near a stored page", report.stored, report.near);
            println!("{} queries during the crawl, {} of them found a page", report.queries, report.found);
            println!("the backup, made during the crawl, has {} pages", report.in_backup);
            ExitCode::SUCCESS
        }
        // A message names the file, the problem, and often a remedy.
        Err(error) => {
            eprintln!("crawler: {error}");
            ExitCode::FAILURE
        }
    }
}
