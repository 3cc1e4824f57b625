//! Compares a live store of simstore with the usual design of services on a key-value store or a database. Prints
//! Markdown.
//!
//! The usual design stores a fingerprint and its id under four keys: the four 16-bit blocks of the 64-bit
//! simhash. A new document is compared with all fingerprints that share a block with it, and stored if none is
//! within 3 bits. Commits wait for the disk neither in simstore nor in the other systems.
//!
//! `cargo run --release -p simstore-rivals --bin services -- 1000000` sets the number of fingerprints that are
//! stored first. Stores go to the folder TMPDIR and are removed at the end.

#[path = "../../../../tests/support/random.rs"]
mod random;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use random::random;
use redb::{Database, Durability as RedbDurability, ReadableTable, Table, TableDefinition};
use rusqlite::{CachedStatement, Connection, params};
use simstore::{Codec, Durability, Insertion, Store, StoreOptions};

const DISTANCE: u32 = 3;
/// Number of documents in a transaction.
const TRANSACTION_DOCUMENTS: usize = 1000;
/// Number of documents that are inserted with `insert_if_new`, after the initial inserts.
const NEW_DOCUMENTS: usize = 100_000;

/// A fingerprint and the id of its document.
type FingerprintId = (u64, u64);

/// Storage of a service that deduplicates documents: a simstore store, a key-value store or a database.
trait Service {
    /// Stores all pairs in one transaction.
    fn insert(&mut self, pairs: &[FingerprintId]) -> Result<()>;
    /// Stores each pair unless its fingerprint is near a stored fingerprint. Pairs stored earlier in the same call count
    /// too. Returns the number of pairs that were stored.
    fn insert_if_new(&mut self, pairs: &[FingerprintId]) -> Result<u64>;
    /// Waits until all background work is done.
    fn wait_for_background(&mut self) -> Result<()>;
}

/// Returns the block of 16 bits with index `number`. Block 0 has the lowest bits.
fn block(fingerprint: u64, number: u8) -> u16 {
    (fingerprint >> (16 * number)) as u16
}

fn is_near(a: u64, b: u64) -> bool {
    (a ^ b).count_ones() <= DISTANCE
}

/// Key of an entry in the key-value store. A fingerprint has four entries, one for each block of 16 bits. The parts of
/// the key are the index of the block, its 16 bits, the fingerprint, and the id.
type BlockKey = (u8, u16, u64, u64);
const BLOCKS_TABLE: TableDefinition<BlockKey, ()> = TableDefinition::new("blocks");

struct RedbService(Database);

impl RedbService {
    fn store(table: &mut Table<BlockKey, ()>, (fingerprint, id): FingerprintId) -> Result<()> {
        for number in 0..4 {
            table.insert((number, block(fingerprint, number), fingerprint, id), ())?;
        }
        Ok(())
    }

    fn is_new(table: &Table<BlockKey, ()>, fingerprint: u64) -> Result<bool> {
        for number in 0..4 {
            let block = block(fingerprint, number);
            for entry in table.range((number, block, 0, 0)..=(number, block, u64::MAX, u64::MAX))? {
                if is_near(entry?.0.value().2, fingerprint) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn write_transaction(&self, work: impl FnOnce(&mut Table<BlockKey, ()>) -> Result<u64>) -> Result<u64> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(RedbDurability::None)?;
        let result = work(&mut transaction.open_table(BLOCKS_TABLE)?)?;
        transaction.commit()?;
        Ok(result)
    }
}

impl Service for RedbService {
    fn insert(&mut self, pairs: &[FingerprintId]) -> Result<()> {
        self.write_transaction(|table| {
            pairs.iter().try_for_each(|&pair| RedbService::store(table, pair)).map(|()| 0)
        })?;
        Ok(())
    }

    fn insert_if_new(&mut self, pairs: &[FingerprintId]) -> Result<u64> {
        self.write_transaction(|table| {
            let mut inserted = 0;
            for &pair in pairs {
                if RedbService::is_new(table, pair.0)? {
                    RedbService::store(table, pair)?;
                    inserted += 1;
                }
            }
            Ok(inserted)
        })
    }

    fn wait_for_background(&mut self) -> Result<()> {
        Ok(self.0.begin_write()?.commit()?)
    }
}

struct SqliteService(Connection);

const INSERT_SQL: &str = "INSERT OR IGNORE INTO blocks VALUES (?1, ?2, ?3, ?4)";
const SELECT_SQL: &str = "SELECT fingerprint FROM blocks WHERE number = ?1 AND block = ?2";

impl SqliteService {
    fn create(path: &Path) -> Result<SqliteService> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -1048576;
             CREATE TABLE blocks (number INTEGER, block INTEGER, fingerprint INTEGER, id INTEGER,
                                  PRIMARY KEY (number, block, fingerprint, id)) WITHOUT ROWID;",
        )?;
        Ok(SqliteService(connection))
    }

    fn store(insert: &mut CachedStatement, (fingerprint, id): FingerprintId) -> Result<()> {
        for number in 0..4 {
            insert.execute(params![number, block(fingerprint, number), fingerprint as i64, id as i64])?;
        }
        Ok(())
    }

    fn is_new(select: &mut CachedStatement, fingerprint: u64) -> Result<bool> {
        for number in 0..4 {
            let mut rows = select.query(params![number, block(fingerprint, number)])?;
            while let Some(row) = rows.next()? {
                if is_near(row.get::<_, i64>(0)? as u64, fingerprint) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Service for SqliteService {
    fn insert(&mut self, pairs: &[FingerprintId]) -> Result<()> {
        let transaction = self.0.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT_SQL)?;
        pairs.iter().try_for_each(|&pair| SqliteService::store(&mut insert, pair))?;
        drop(insert);
        Ok(transaction.commit()?)
    }

    fn insert_if_new(&mut self, pairs: &[FingerprintId]) -> Result<u64> {
        let transaction = self.0.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT_SQL)?;
        let mut select = transaction.prepare_cached(SELECT_SQL)?;
        let mut inserted = 0;
        for &pair in pairs {
            if SqliteService::is_new(&mut select, pair.0)? {
                SqliteService::store(&mut insert, pair)?;
                inserted += 1;
            }
        }
        drop((insert, select));
        transaction.commit()?;
        Ok(inserted)
    }

    fn wait_for_background(&mut self) -> Result<()> {
        Ok(self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}

struct SimstoreService(Store<u64>);

impl Service for SimstoreService {
    fn insert(&mut self, pairs: &[FingerprintId]) -> Result<()> {
        let mut batch = self.0.transaction();
        pairs.iter().for_each(|&(fingerprint, id)| batch.insert(fingerprint, id));
        Ok(batch.commit(Durability::Os)?)
    }

    fn insert_if_new(&mut self, pairs: &[FingerprintId]) -> Result<u64> {
        let mut inserted = 0;
        for &(fingerprint, id) in pairs {
            inserted += u64::from(self.0.insert_if_new(fingerprint, id)? == Insertion::Inserted);
        }
        Ok(inserted)
    }

    fn wait_for_background(&mut self) -> Result<()> {
        self.0.flush()?;
        Ok(self.0.wait_for_background()?)
    }
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let metadata = entry?.metadata()?;
        bytes += metadata.len();
    }
    Ok(bytes)
}

fn open_service(name: &str, folder: &Path) -> Result<Box<dyn Service>> {
    let store = |codec| -> Result<Box<dyn Service>> {
        Ok(Box::new(SimstoreService(Store::open(
            folder,
            StoreOptions { distance: Some(DISTANCE), codec: Some(codec), ..StoreOptions::default() },
        )?)))
    };
    match name {
        "redb 4.1.0" => Ok(Box::new(RedbService(Database::create(folder.join("redb"))?))),
        "SQLite" => Ok(Box::new(SqliteService::create(&folder.join("sqlite"))?)),
        "simstore, elias-fano" => store(Codec::EliasFano),
        _ => store(Codec::FirstDifference),
    }
}

fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let mut state = 1;
    let stored: Vec<FingerprintId> = (0..count as u64).map(|id| (random(&mut state), id)).collect();
    // Half are near stored fingerprints, half are random.
    let documents: Vec<FingerprintId> = (0..NEW_DOCUMENTS)
        .map(|i| {
            let near = stored[random(&mut state) as usize % count].0;
            let flips = random(&mut state) as u32 % (DISTANCE + 1);
            let near = (0..flips).fold(near, |x, _| x ^ 1 << (random(&mut state) % 64));
            (if i % 2 == 0 { near } else { random(&mut state) }, (count + i) as u64)
        })
        .collect();
    println!(
        "{count} random fingerprints with ids, transactions of {TRANSACTION_DOCUMENTS}, none waits for the disk\n"
    );
    println!(
        "| | inserts/s | settled, s | bytes each on disk | insert_if_new/s, {NEW_DOCUMENTS} documents, half near | stored |"
    );
    println!("|---|---|---|---|---|---|");
    let mut expected = None;
    for name in ["redb 4.1.0", "SQLite", "simstore, elias-fano", "simstore, first-difference"] {
        let folder = tempfile::tempdir()?;
        let mut service = open_service(name, folder.path())?;
        let start = Instant::now();
        stored.chunks(TRANSACTION_DOCUMENTS).try_for_each(|pairs| service.insert(pairs))?;
        let inserts = count as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        service.wait_for_background()?;
        let settled = start.elapsed().as_secs_f64();
        let bytes = folder_bytes(folder.path())? as f64 / count as f64;
        let start = Instant::now();
        let mut inserted = 0;
        for pairs in documents.chunks(TRANSACTION_DOCUMENTS) {
            inserted += service.insert_if_new(pairs)?;
        }
        let if_new = NEW_DOCUMENTS as f64 / start.elapsed().as_secs_f64();
        println!("| {name} | {inserts:.0} | {settled:.2} | {bytes:.1} | {if_new:.0} | {inserted} |");
        ensure!(*expected.get_or_insert(inserted) == inserted, "{name} stores {inserted} of the documents");
    }
    Ok(())
}
